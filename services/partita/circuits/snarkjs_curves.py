"""How circom's and snarkjs' files say which curve they are of: by prime or by their own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from partita.groth16.curves import CURVES

if TYPE_CHECKING:
    from partita.circuits.container import Section
    from partita.groth16.curves import Curve

SNARKJS_NAMES: Final = {"bn254": "bn128", "bls12-381": "bls12381"}
"""snarkjs' name of each curve of this library."""

CURVE_OF_SNARKJS_NAME: Final = {theirs: ours for ours, theirs in SNARKJS_NAMES.items()}

_KNOWN_OTHERS: Final = {
    0xFFFFFFFF00000001: "Goldilocks",
    0x40000000000000000000000000000000224698FC0994A8DD8C46EB2100000001: "Vesta's",
    0x40000000000000000000000000000000224698FC094CF91B992D30ED00000001: "Pallas'",
    0x12AB655E9A2CA55660B44D1E5C37B00159AA76FED00000010A11800000000001: "BLS12-377's",
    0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF: "P-256's",
}


def curve_of_scalar_modulus(modulus: int) -> Curve | None:
    """The curve whose scalar field has this prime, or None."""
    return next((curve for curve in CURVES.values() if curve.r == modulus), None)


def describe_modulus(modulus: int) -> str:
    """What to say of a prime that no curve of this library has as its scalar field."""
    name = _KNOWN_OTHERS.get(modulus)
    which = f"is {name}" if name is not None else f"is {modulus}"
    primes = "BN254's (--prime bn128) or BLS12-381's (--prime bls12381)"
    return f"the prime {which}; it must be {primes}"


def read_prime(section: Section, what: str) -> int:
    """Read a length in bytes (u32) and a prime of that length.

    Raises:
        FormatError: the length is not that of any prime that could be meant.
    """
    at = section.offset_of_cursor
    size_bytes = section.u32(f"the size of {what}")
    if size_bytes not in (8, 32, 48):
        raise section.error(f"{what} claims {size_bytes} bytes, known curves have 32 or 48", at=at)
    return int.from_bytes(section.take(size_bytes, what), "little")


def read_scalar_prime(section: Section, what: str) -> Curve:
    """Read the prime of the scalar field and tell the curve from it.

    Raises:
        FormatError: it is the prime of no curve of this library.
    """
    at = section.offset_of_cursor
    modulus = read_prime(section, what)
    curve = curve_of_scalar_modulus(modulus)
    if curve is None:
        raise section.error(describe_modulus(modulus), at=at)
    return curve
