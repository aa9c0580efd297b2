"""Announced bytes are bounds of what native code holds."""

from __future__ import annotations

import dataclasses

import pytest

from partita.groth16.curves import CURVES, Curve
from partita.groth16.errors import MismatchError
from partita.groth16.footprint import CircuitShape, footprint
from partita.groth16.keys import KeyFamily
from partita.groth16.native import NativeBackend
from tests.groth16.test_native import long_circuit
from tests.groth16.tiny_setup import edge_circuits, set_up

CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
FAMILY = pytest.mark.parametrize("family", KeyFamily, ids=lambda f: f.value)

_SLACK = 2 << 20


@CURVE
@FAMILY
def test_the_key_formula_is_what_the_native_key_holds_plus_slack(
    curve: Curve, family: KeyFamily
) -> None:
    for circuit in [*edge_circuits(), long_circuit(40)]:
        key = set_up(circuit, curve.name, family)
        loaded = NativeBackend().load(key, check=False)
        announced = footprint("native", CircuitShape.of(key), cores=2).key_host_bytes
        # One twiddle fewer than the domain has elements.
        assert announced - _SLACK - loaded.size_bytes == 32


@CURVE
def test_the_peak_covers_the_vectors_and_the_release_gives_two_of_three_back(curve: Curve) -> None:
    m = 1 << 20
    shape = CircuitShape(
        curve=curve.name,
        family=KeyFamily.SNARKJS,
        n_public=10,
        n_wires=m,
        domain_size=m,
        n_rows=m - 1,
        n_matrices=2,
        n_entries=4 * m,
        n_coefficients=3,
    )
    fp = footprint("native", shape, cores=2)
    assert fp.peak_host_bytes >= 32 * m * 5
    assert fp.after_release_host_bytes >= 32 * m * 3
    assert fp.after_release_host_bytes <= fp.peak_host_bytes
    assert fp.load_host_bytes >= fp.key_host_bytes + shape.matrices_size_bytes
    assert footprint("native", shape, cores=4).expected_ns == fp.expected_ns // 2
    larger = dataclasses.replace(shape, domain_size=2 * m)
    assert footprint("native", larger, cores=2).key_host_bytes > fp.key_host_bytes
    assert footprint("native", larger, cores=2).expected_ns > fp.expected_ns


def test_the_reference_is_slower_and_larger_and_others_are_refused() -> None:
    shape = CircuitShape.of(set_up(long_circuit(10), "bn254", KeyFamily.SNARKJS))
    native, reference = (footprint(n, shape, cores=1) for n in ("native", "reference"))
    assert reference.expected_ns > 10 * native.expected_ns
    assert reference.key_host_bytes > shape.matrices_size_bytes
    assert reference.after_release_host_bytes < reference.peak_host_bytes
    with pytest.raises(MismatchError, match="backend differs: expected native or reference"):
        footprint("cuda", shape, cores=1)
