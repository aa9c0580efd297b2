"""Statements: the public inputs of one proof as bytes.

The values are in the order of IC[1..] without the constant one (circom: outputs first, as in
public.json), each 32 bytes little-endian and below r.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from partita.groth16.curves import SCALAR_SIZE_BYTES, Curve
from partita.groth16.errors import EncodingError, MismatchError


def encode_statement(curve: Curve, values: Sequence[int]) -> bytes:
    """len(values) x 32 bytes; EncodingError naming `statement[i]` for a value outside [0, r)."""
    for i, value in enumerate(values):
        if not 0 <= value < curve.r:
            raise EncodingError(f"statement[{i}]", f"{value} is not in [0, r)")
    return b"".join(v.to_bytes(SCALAR_SIZE_BYTES, "little") for v in values)


def decode_statement(curve: Curve, data: bytes, n_public: int) -> list[int]:
    """The n_public values of a statement.

    Raises:
        MismatchError: the length is not n_public x 32 bytes.
        EncodingError: names the first `statement[i]` that is not below r.
    """
    if len(data) != n_public * SCALAR_SIZE_BYTES:
        raise MismatchError(
            "statement length",
            f"{n_public * SCALAR_SIZE_BYTES} bytes ({n_public} public inputs)",
            f"{len(data)} bytes",
            "give the public inputs of this circuit without the constant one, 32 bytes each",
        )
    values = [
        int.from_bytes(data[i : i + SCALAR_SIZE_BYTES], "little")
        for i in range(0, len(data), SCALAR_SIZE_BYTES)
    ]
    for i, value in enumerate(values):
        if value >= curve.r:
            raise EncodingError(f"statement[{i}]", "the value is not below r")
    return values


def require_statement(found: bytes, expected_sha256: bytes) -> None:
    """Raise MismatchError unless the witness' own statement is the one that was asked for.

    Args:
        found: the statement of the witness (`Witness.statement`).
        expected_sha256: the digest of the statement the proof will be verified against.
    """
    digest = hashlib.sha256(found).digest()
    if digest != expected_sha256:
        raise MismatchError(
            "statement (SHA-256)",
            expected_sha256.hex(),
            digest.hex(),
            "the input proves other public inputs than the job states",
        )
