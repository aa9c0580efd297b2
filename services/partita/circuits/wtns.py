"""Witness files of snarkjs (.wtns version 2): read in full, written, or only their statement.

A witness is read without a copy. Every value is compared with the modulus and wire 0 with one,
so what this module returns is a vector of field elements; whether it satisfies a circuit is
decided by proving it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from partita.circuits.container import read_container, write_container
from partita.circuits.elements import ELEMENT_BYTES, first_not_below, words_of
from partita.circuits.snarkjs_curves import read_scalar_prime
from partita.groth16.curves import curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.witness import Witness

if TYPE_CHECKING:
    from partita.circuits.container import Section
    from partita.groth16.curves import Curve

MAGIC: Final = b"wtns"
VERSION: Final = 2
_HEADER, _VALUES = 1, 2
_NAMES: Final = {_HEADER: "header", _VALUES: "values"}
_ONE: Final = (1).to_bytes(ELEMENT_BYTES, "little")
_OVERHEAD_BYTES: Final = 12 + 12 + (4 + ELEMENT_BYTES + 4) + 12


def wtns_size_bytes(n_wires: int) -> int:
    """The size of a witness file of so many wires, as snarkjs and this module write it."""
    return _OVERHEAD_BYTES + n_wires * ELEMENT_BYTES


def read_wtns(source: str, data: bytes | memoryview) -> Witness:
    """Read a witness file.

    Args:
        source: the name of the file, for errors.
        data: all its bytes; the values of the result are a view of them.

    Raises:
        FormatError: the file is malformed, cut off or too long; a value is not below the
            modulus; wire 0 is not one.
    """
    curve, n_wires, values = _open(source, data)
    _check_values(curve, values, n_wires)
    return Witness(curve=curve.name, values=values.data)


def write_wtns(witness: Witness) -> bytes:
    """The file of a witness, byte for byte as snarkjs writes it."""
    prime = curve_named(witness.curve).r.to_bytes(ELEMENT_BYTES, "little")
    size = ELEMENT_BYTES.to_bytes(4, "little")
    count = witness.n_wires.to_bytes(4, "little")
    return write_container(
        magic=MAGIC,
        version=VERSION,
        sections=[(_HEADER, size + prime + count), (_VALUES, witness.values)],
    )


def statement_of_wtns(
    source: str, data: bytes | memoryview, *, curve: str, n_wires: int, n_public: int
) -> bytes:
    """The public inputs that a witness file states, touching only the head of its values.

    Args:
        source: the name of the file, for errors.
        data: all its bytes.
        curve, n_wires, n_public: what the circuit demands.

    Returns:
        n_public x 32 bytes.

    Raises:
        FormatError: the file is malformed, or a public value is not below the modulus.
        MismatchError: it is the witness of another curve or of a circuit of another size.
    """
    found_curve, found_wires, values = _open(source, data)
    hint = f"{source} is the witness of another circuit"
    if found_curve.name != curve:
        raise MismatchError("curve", curve, found_curve.name, hint)
    if found_wires != n_wires:
        raise MismatchError("number of wires", n_wires, found_wires, hint)
    _check_values(found_curve, values, n_public + 1)
    return bytes(values.data[ELEMENT_BYTES : ELEMENT_BYTES * (n_public + 1)])


def _open(source: str, data: bytes | memoryview) -> tuple[Curve, int, Section]:
    container = read_container(source, data, magic=MAGIC, version=VERSION, names=_NAMES)
    header = container.section(_HEADER)
    curve = read_scalar_prime(header, "prime")
    n_wires = header.u32("number of wires")
    header.done()
    if n_wires == 0:
        raise header.error("claims no wires; the constant wire 0 is always there")
    values = container.section(_VALUES)
    values.expect_size(n_wires * ELEMENT_BYTES, f"a count of {n_wires} wires")
    return curve, n_wires, values


def _check_values(curve: Curve, values: Section, n_checked: int) -> None:
    if values.data[:ELEMENT_BYTES] != _ONE:
        found = int.from_bytes(values.data[:ELEMENT_BYTES], "little")
        raise values.error(f"wire 0 is {found}; it must be 1", at=0)
    bad = first_not_below(words_of(values.data[: n_checked * ELEMENT_BYTES]), curve.r)
    if bad is not None:
        raise values.error(
            f"wire {bad} is not below the modulus of {curve.name}; reduce it",
            at=bad * ELEMENT_BYTES,
        )
