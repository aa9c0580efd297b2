"""Self-tests: whether a backend computes what it must, and whether a loaded key holds together.

`known_answers` compares every stage on small keys with results known by integer arithmetic, then
verifies a proof: before a circuit of that curve and family is offered. `consistency` looks at a
real key in the backend's memory: each query is linear, Σ(s_i + t_i)·P_i = Σ s_i·P_i + Σ t_i·P_i
with random s and t, and the two B queries hold the same exponents, e(Σ s_i·B1_i, G2) =
e(G1, Σ s_i·B2_i). A wrong kernel, a damaged mapping or a torn upload does not pass either, but
for an error of about 2^-128.

Both are streams of steps, so that a person can watch them; `require` makes an error of the first
step that does not hold.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from partita.groth16 import known_key
from partita.groth16.backend import Backend, LoadedKey, Vector
from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.errors import ComputeError, EncodingError, Groth16Error
from partita.groth16.keys import KeyFamily, Query
from partita.groth16.proof import Proof
from partita.groth16.prover import prove
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey

_HALF = SCALAR_SIZE_BYTES // 2
_TOP_BITS = 0x1F
"""What is kept of a random scalar's highest byte: it stays below r on both curves."""


@dataclass(frozen=True, slots=True)
class Step:
    """One finished step.

    Attributes:
        name: what was tested.
        ok: whether it holds.
        detail: what was found.
    """

    name: str
    ok: bool
    detail: str = ""


def require(steps: Iterable[Step]) -> None:
    """Run all steps.

    Raises:
        ComputeError: names the first step that does not hold.
        ResourceError: memory was refused; nothing is known.
    """
    for step in steps:
        if not step.ok:
            raise ComputeError(f"self-test: {step.name}: {step.detail}")


class KnownAnswers:
    """The known answers of one backend, asked once for each curve and family; for any thread."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._told: dict[tuple[str, KeyFamily], Groth16Error | None] = {}

    def require(self, curve: str, family: KeyFamily) -> None:
        """Return if the backend gives the known answers.

        Raises:
            ComputeError: it does not; the same at every later call.
            ResourceError: memory was refused; asked again at the next call.
        """
        with self._lock:
            if (curve, family) not in self._told:
                try:
                    require(known_answers(self._backend, curve, family))
                except ComputeError as error:
                    self._told[(curve, family)] = error
                else:
                    self._told[(curve, family)] = None
            known = self._told[(curve, family)]
        if known is not None:
            raise ComputeError(str(known)) from known


def known_answers(backend: Backend, curve: str, family: KeyFamily) -> Iterator[Step]:
    """Compare a backend with known answers for the keys of a curve and family."""
    sums = known_key.sums_key(curve)
    key = backend.load(sums.key, check=True)
    try:
        vector = key.witness(sums.witness.values)
        for query, expected in sums.sums.items():
            start = int(query is Query.C)  # its first point belongs to wire 1
            found = key.msm(query, vector, start, key.head.count(query)).result()
            yield _same(f"{curve} sum over edge values, query {query.value}", found, expected)
        vector.release()
    finally:
        key.release()
    known = known_key.proving_key(curve, family)
    key = backend.load(known.key, check=True)
    try:
        yield from _stages(key, known)
        proof = prove(backend, key, known.witness).to_bytes()
    finally:
        key.release()
    verifier = Verifier(VerifyingKey.of_proving_key(known.key))
    statement = known.witness.statement(known.key.n_public)
    other = bytes([statement[0] ^ 1]) + bytes(statement[1:])
    name = f"{curve} {family.value} proof"
    good, bad = verifier.verify(bytes(statement), proof), verifier.verify(other, proof)
    yield Step(f"{name} verifies", good, "" if good else "the pairing equation does not hold")
    yield Step(f"{name} of another statement", not bad, "it verifies, too" if bad else "")


def _stages(key: LoadedKey, known: known_key.KnownKey) -> Iterator[Step]:
    """Rows, quotient and sums of the small key that proves."""
    head = key.head
    w = key.witness(known.witness.values)
    h = key.quotient(*key.evaluate(w))
    starts: dict[Query, tuple[Vector, int]] = {
        Query.H: (h, 0),
        Query.A: (w, 0),
        Query.B1: (w, 0),
        Query.B2: (w, 0),
        Query.C: (w, head.n_public + 1),
    }
    for query, (vector, start) in starts.items():
        found = key.msm(query, vector, start, head.count(query)).result()
        what = "rows, transforms and sum" if query is Query.H else "sum"
        name = f"{head.curve} {head.family.value} {what}, query {query.value}"
        yield _same(name, found, known.sums[query])
    w.release()
    h.release()


def _same(name: str, found: bytes, expected: bytes) -> Step:
    if found == expected:
        return Step(name, ok=True)
    return Step(name, False, f"found {found.hex()[:32]}…, known is {expected.hex()[:32]}…")


def consistency(backend: Backend, key: LoadedKey) -> Iterator[Step]:
    """Check that each query of a loaded key is linear, and that its B queries agree.

    Scratch: 80 bytes for each scalar of the longest query, beside the backend's own.
    """
    head = key.head
    count = max(head.count(query) for query in Query)
    scalars = np.frombuffer(
        bytearray(secrets.token_bytes(count * SCALAR_SIZE_BYTES)), dtype=np.uint8
    ).reshape(count, SCALAR_SIZE_BYTES)
    scalars[:, -1] &= _TOP_BITS
    # The random s and t are the lower and the upper half of the scalars, so s + t has no carry.
    whole = _sums(key, scalars)
    lower = scalars[:, :_HALF].copy()
    scalars[:, :_HALF] = 0
    uppers = _sums(key, scalars)
    scalars[:, _HALF:] = 0
    scalars[:, :_HALF] = lower
    lowers = _sums(key, scalars)
    for query in Query:
        group = "g2" if query is Query.B2 else "g1"
        parts = [lowers[query], uppers[query]]
        added = backend.lincomb(head.curve, group, parts, [1, 1])
        ok = added == whole[query]
        why = "" if ok else "the sum for s + t is not the sum for s plus the sum for t"
        yield Step(f"query {query.value} is linear", ok, why)
    ok = _same_multiple(head.curve, whole[Query.B1], whole[Query.B2])
    yield Step("queries b1 and b2 agree", ok, "" if ok else "their points are not the same ones")


def _sums(
    key: LoadedKey, scalars: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
) -> dict[Query, bytes]:
    vector = key.witness(scalars.reshape(-1).data)
    try:
        return {query: key.msm(query, vector, 0, key.head.count(query)).result() for query in Query}
    finally:
        vector.release()


def _same_multiple(curve_name: str, in_g1: bytes, in_g2: bytes) -> bool:
    """Whether e(P, G2) = e(G1, Q), for points in device form.

    The verifier's equation e(A, B) = e(α, β)·e(IC, γ)·e(C, δ) says just that with A = P + 2·G1,
    B = γ = δ = G2, α = IC = C = G1 and β = Q.
    """
    curve = curve_named(curve_name)
    g1, g2 = curve.g1, curve.g2
    p = g1.from_device(in_g1, "sum of query b1")
    q = g2.from_device(in_g2, "sum of query b2")
    if p is None or q is None:
        return p is None and q is None
    a = g1.add(g1.add(p, g1.generator), g1.generator)
    if a is None:
        return q == g2.neg(g2.add(g2.generator, g2.generator))
    equation = VerifyingKey(
        curve_name, g1.generator, q, g2.generator, g2.generator, (g1.generator,)
    )
    try:
        proof = Proof(curve_name, a, g2.generator, g1.generator).to_bytes()
        return Verifier(equation).verify(b"", proof)
    except EncodingError:
        return False  # a sum that is off the curve or outside the subgroup
