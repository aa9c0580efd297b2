"""Verification of proofs against statements, in native code.

A verdict is about bytes: a malformed proof is as invalid as a well-formed one whose pairing does
not hold, and says why. Batches are checked together under a random combination whose coefficients
come from the system's CSPRNG for each call, after the proofs are fixed, and bisected on failure
(Bellare, Garay and Rabin, EUROCRYPT 1998); the answer per proof is that of `verify`, but for an
error of about 2^-128.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partita.groth16.curves import curve_named
from partita.groth16.native import NativeVerifyingKey
from partita.groth16.statement import decode_statement
from partita.groth16.verifying_key import VerifyingKey

_EQUATION = "the pairing equation does not hold for this statement"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier says of one proof.

    Attributes:
        valid: whether it proves its statement.
        reason: why not; empty if it does.
    """

    valid: bool
    reason: str = ""


VALID = Verdict(valid=True)


class Verifier:
    """A verifying key prepared for use; safe to share between threads.

    Args:
        vk: the key; its points are checked.

    Raises:
        EncodingError: names the point of the key that is malformed.
    """

    def __init__(self, vk: VerifyingKey) -> None:
        self._curve = curve_named(vk.curve)
        self._n_public = vk.n_public
        self._native = NativeVerifyingKey(vk.curve, vk.to_bytes())

    @property
    def n_public(self) -> int:
        """The number of values of a statement."""
        return self._n_public

    def verify(self, statement: bytes, proof: bytes) -> bool:
        """Whether a proof proves a statement.

        Args:
            statement: n_public x 32 bytes (`partita.groth16.statement`).
            proof: the wire form (`partita.groth16.proof`).

        Raises:
            MismatchError, EncodingError: the statement is malformed.
            FormatError, EncodingError: the proof is malformed: names the element.
            ComputeError: the native code failed; nothing is known of the proof.
        """
        decode_statement(self._curve, statement, self._n_public)
        return self._native.verify(statement, proof)

    def verify_batch(self, items: Sequence[tuple[bytes, bytes]]) -> list[Verdict]:
        """A verdict for each (statement, proof), in order; malformed bytes are a verdict too.

        Raises:
            ResourceError, ComputeError: the native code failed; nothing is known of any proof.
        """
        return [
            VALID if answer is True else Verdict(valid=False, reason=answer or _EQUATION)
            for answer in self._native.verify_batch(items)
        ]
