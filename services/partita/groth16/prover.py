"""Groth16 proving, once, against any backend.

With the notation of Groth, "On the Size of Pairing-Based Non-interactive Arguments", eprint
2016/260, section 3.2, for witness w (w_0 = 1), h = (u·v - w) / t and random r, s:

    A = α + Σ w_i·u_i(x) + r·δ                                       in G1
    B = β + Σ w_i·v_i(x) + s·δ                                       in G2
    C = Σ_private w_i·(β·u_i(x) + α·v_i(x) + w_i(x))/δ
        + h(x)·t(x)/δ + s·A + r·B - r·s·δ                            in G1

r and s come from the system's CSPRNG, once per proof; they are never returned, logged or reused:
two proofs of one witness under equal r and s, or a known r, give the witness away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum

from partita.groth16.backend import Backend, KeyHead, LoadedKey
from partita.groth16.curves import SCALAR_SIZE_BYTES, curve_named
from partita.groth16.errors import FormatError, MismatchError
from partita.groth16.keys import Query
from partita.groth16.proof import Proof
from partita.groth16.witness import Witness

_ONE = (1).to_bytes(SCALAR_SIZE_BYTES, "little")


class Stage(Enum):
    """The stages of a proof in order; a stop takes effect when one would begin."""

    EVALUATE = "evaluate"
    QUOTIENT = "quotient"
    MSM_H = "msm_h"
    MSM_A = "msm_a"
    MSM_B1 = "msm_b1"
    MSM_B2 = "msm_b2"
    MSM_C = "msm_c"
    FINISH = "finish"

    @property
    def on_device(self) -> bool:
        """Whether the stage holds the device: a service's PROVING; otherwise its FINISHING."""
        return self is not Stage.FINISH


class Stopped(Exception):  # noqa: N818 - an answer to the caller's own wish, not an error
    """The caller's stop took effect; everything the proof held is released.

    Args:
        before: the stage that did not begin.
    """

    def __init__(self, before: Stage) -> None:
        super().__init__(f"stopped before {before.value}")
        self.before = before


def prove(
    backend: Backend,
    key: LoadedKey,
    witness: Witness,
    *,
    stop: Callable[[], bool] | None = None,
    stage: Callable[[Stage], None] | None = None,
    released: Callable[[], None] | None = None,
) -> Proof:
    """Prove that a witness satisfies the circuit of a key.

    Whether it does is not checked: a witness that does not gives a proof that does not verify.

    Args:
        backend: computes.
        key: a key this backend loaded.
        witness: all wires; the caller has compared its statement with the one asked for
            (`statement.require_statement`).
        stop: asked when a stage would begin; True ends the proof with `Stopped`.
        stage: told each stage as it begins, from the calling thread.
        released: told once, when the vectors of the evaluation (a, b, c) are given back.

    Returns:
        The proof, not verified.

    Raises:
        InputError: witness and key do not belong together, or a value is not below r.
        ResourceError, ComputeError: as the backend says.
        Stopped: see above.
    """
    order = curve_named(key.head.curve).r
    r, s = secrets.randbelow(order), secrets.randbelow(order)
    return _prove_with(backend, key, witness, r, s, stop=stop, stage=stage, released=released)


def check_witness(head: KeyHead, witness: Witness) -> None:
    """Raise unless a witness has the curve and the wires of a key and its wire 0 is one."""
    if witness.curve != head.curve:
        raise MismatchError("curve of the witness", head.curve, witness.curve)
    if len(witness.values) % SCALAR_SIZE_BYTES:
        raise FormatError("witness", f"{len(witness.values)} bytes are no 32-byte values")
    if witness.n_wires != head.n_wires:
        raise MismatchError(
            "number of wires of the witness",
            head.n_wires,
            witness.n_wires,
            "the witness is of another circuit than the key",
        )
    if bytes(witness.values[:SCALAR_SIZE_BYTES]) != _ONE:
        found = int.from_bytes(witness.values[:SCALAR_SIZE_BYTES], "little")
        raise MismatchError("wire 0 of the witness", 1, found)


def _prove_with(
    backend: Backend,
    key: LoadedKey,
    witness: Witness,
    r: int,
    s: int,
    *,
    stop: Callable[[], bool] | None = None,
    stage: Callable[[Stage], None] | None = None,
    released: Callable[[], None] | None = None,
) -> Proof:
    """`prove` with given randomness: the same r and s give the same bytes on every backend."""
    head = key.head
    check_witness(head, witness)

    def begin(next_stage: Stage) -> None:
        if stop is not None and stop():
            raise Stopped(next_stage)
        if stage is not None:
            stage(next_stage)

    with ExitStack() as held:
        begin(Stage.EVALUATE)
        w = key.witness(witness.values)
        held.callback(w.release)
        with ExitStack() as evaluated:
            rows = key.evaluate(w)
            for vector in rows:
                if vector is not None:
                    evaluated.callback(vector.release)
            begin(Stage.QUOTIENT)
            h = key.quotient(*rows)
            held.callback(h.release)
        if released is not None:
            released()

        begin(Stage.MSM_H)
        h_sum = key.msm(Query.H, h, 0, head.count(Query.H))
        begin(Stage.MSM_A)
        a_sum = key.msm(Query.A, w, 0, head.count(Query.A))
        begin(Stage.MSM_B1)
        b1_sum = key.msm(Query.B1, w, 0, head.count(Query.B1))
        begin(Stage.MSM_B2)
        b2_sum = key.msm(Query.B2, w, 0, head.count(Query.B2))
        begin(Stage.MSM_C)
        c_sum = key.msm(Query.C, w, head.n_public + 1, head.count(Query.C))
        sums = _Sums(
            h=h_sum.result(),
            a=a_sum.result(),
            b1=b1_sum.result(),
            b2=b2_sum.result(),
            c=c_sum.result(),
        )
    begin(Stage.FINISH)
    return _finish(backend, head, sums, r, s)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The multi-scalar sums of a proof by query, in device form."""

    h: bytes
    a: bytes
    b1: bytes
    b2: bytes
    c: bytes


def _finish(backend: Backend, head: KeyHead, sums: _Sums, r: int, s: int) -> Proof:
    """Put the sums, the single points and the randomness together."""
    order = curve_named(head.curve).r

    def lincomb(group: str, points: list[bytes], scalars: list[int]) -> bytes:
        return backend.lincomb(head.curve, group, points, scalars)

    a = lincomb("g1", [head.alpha_g1, sums.a, head.delta_g1], [1, 1, r])
    b_g1 = lincomb("g1", [head.beta_g1, sums.b1, head.delta_g1], [1, 1, s])
    b = lincomb("g2", [head.beta_g2, sums.b2, head.delta_g2], [1, 1, s])
    c = lincomb("g1", [sums.c, sums.h, a, b_g1, head.delta_g1], [1, 1, s, r, -r * s % order])
    return Proof.from_device(head.curve, a, b, c)
