"""The reference backend against definitions: transforms, quotients, rows."""

from __future__ import annotations

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.errors import EncodingError
from partita.groth16.keys import KeyFamily, Query
from partita.groth16.reference import (
    ReferenceBackend,
    dft,
    interpolate,
    odd_coset_evaluations,
    quotient_coefficients,
)
from tests.groth16.tiny_setup import edge_circuits, product_circuit, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


def _at(coefficients: list[int], x: int, modulus: int) -> int:
    return sum(c * pow(x, i, modulus) for i, c in enumerate(coefficients)) % modulus


@CURVE
@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_transform_evaluates_at_the_powers_of_the_root(curve: Curve, size: int) -> None:
    root = curve.root_of_unity(KeyFamily.SNARKJS, size)
    coefficients = [7 * i + 3 for i in range(size)]
    values = dft(coefficients, root, curve.r)
    assert values == [_at(coefficients, pow(root, i, curve.r), curve.r) for i in range(size)]
    assert interpolate(values, root, curve.r) == coefficients


@CURVE
def test_the_quotient_times_the_vanishing_polynomial_is_ab_minus_c(curve: Curve) -> None:
    m, r = 8, curve.r
    a, b = [3 * i + 1 for i in range(m)], [i * i + 5 for i in range(m)]
    c = [x * y % r for x, y in zip(a, b, strict=True)]
    h = quotient_coefficients(curve, a, b, c)
    assert len(h) == m - 1
    root = curve.root_of_unity(KeyFamily.BELLPERSON, m)
    polynomials = [interpolate(v, root, r) for v in (a, b, c)]
    x = 123456789
    at_a, at_b, at_c = (_at(p, x, r) for p in polynomials)
    assert _at(h, x, r) * (pow(x, m, r) - 1) % r == (at_a * at_b - at_c) % r


@CURVE
def test_snarkjs_h_scalars_are_values_on_the_odd_coset(curve: Curve) -> None:
    m, r = 4, curve.r
    a, b, c = [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]
    h = odd_coset_evaluations(curve, a, b, c)
    root = curve.root_of_unity(KeyFamily.SNARKJS, m)
    double = curve.root_of_unity(KeyFamily.SNARKJS, 2 * m)
    polynomials = [interpolate(v, root, r) for v in (a, b, c)]
    for i, value in enumerate(h):
        x = pow(double, 2 * i + 1, r)
        at_a, at_b, at_c = (_at(p, x, r) for p in polynomials)
        assert value == (at_a * at_b - at_c) % r


@CURVE
def test_a_released_vector_is_gone_and_the_quotient_consumes_its_inputs(curve: Curve) -> None:
    circuit = product_circuit()
    key = ReferenceBackend().load(set_up(circuit, curve.name, KeyFamily.BELLPERSON), check=False)
    w = key.witness(circuit.witness_of(curve.name).values)
    a, b, c = key.evaluate(w)
    assert [len(a), len(b)] == [8, 8]
    assert len(key.quotient(a, b, c)) == 7
    for vector in (a, b, c):
        assert vector is not None
        with pytest.raises(ValueError, match="released"):
            len(vector)
    assert key.msm(Query.A, w, 0, 0).result() == bytes(curve.g1.point_size_bytes)


@CURVE
def test_every_edge_circuit_satisfies_its_rows_and_a_broken_one_names_the_first(
    curve: Curve,
) -> None:
    backend = ReferenceBackend()
    for circuit in edge_circuits():
        assert backend.check_rows(circuit.r1cs(curve.name), circuit.witness_of(curve.name)) is None
    circuit = product_circuit()
    for wire, row in ((2, 0), (3, 0), (4, 1), (1, 2)):
        values = list(circuit.witness)
        values[wire] += 1
        found = backend.check_rows(circuit.r1cs(curve.name), circuit.witness_of(curve.name, values))
        assert found == row


@CURVE
def test_a_witness_value_not_below_r_is_named(curve: Curve) -> None:
    circuit = product_circuit()
    key = ReferenceBackend().load(set_up(circuit, curve.name, KeyFamily.SNARKJS), check=False)
    values = bytes(circuit.witness_of(curve.name).values)
    with pytest.raises(EncodingError, match=r"witness\[3\]"):
        key.witness(values[:96] + curve.r.to_bytes(32, "little") + values[128:])
