"""Errors of the Groth16 library, drawn as a tree.

    Groth16Error
    ├── InputError                 the caller's bytes are wrong: never retried
    │   ├── FormatError            a file or message is malformed; names source, section, offset
    │   ├── EncodingError          a point or field element is not what it claims to be
    │   ├── MismatchError          two inputs do not belong together (curve, counts, domain)
    │   └── UnsatisfiedError       the witness breaks a row of the constraint system
    ├── ResourceError              memory was refused; nothing was computed
    └── ComputeError               the backend failed (a panic, a device error): try elsewhere

Nothing here names gRPC; the services map these classes to their own failures.
"""

from __future__ import annotations


class Groth16Error(Exception):
    """Base of every error of this library; never raised itself."""


class InputError(Groth16Error):
    """The caller's input is wrong; another try with the same bytes cannot help."""


class FormatError(InputError):
    """Bytes that do not follow their format.

    Args:
        source: what was read: a path or a role such as "proving key".
        what: what is wrong and, where it is known, what to change.
        section: the section or field inside the source, or "".
        offset: the byte offset in the source, or None.
    """

    def __init__(
        self, source: str, what: str, *, section: str = "", offset: int | None = None
    ) -> None:
        place = source + (f", {section}" if section else "")
        place += f", byte {offset}" if offset is not None else ""
        super().__init__(f"{place}: {what}")
        self.source = source
        self.what = what
        self.section = section
        self.offset = offset


class EncodingError(InputError):
    """A point off its curve or outside its subgroup, or an element not below the modulus.

    Args:
        where: the name of the value, such as "query a[17]" or "statement[2]".
        what: "off the curve", "wrong subgroup", "not below the modulus", ...
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


class MismatchError(InputError):
    """Two inputs that do not belong together.

    Args:
        field: what differs, such as "curve" or "number of wires".
        expected: the value the first input demands.
        found: the value of the other.
        hint: what to change.
    """

    def __init__(self, field: str, expected: object, found: object, hint: str = "") -> None:
        text = f"{field} differs: expected {expected}, found {found}"
        super().__init__(f"{text}; {hint}" if hint else text)
        self.field = field
        self.expected = expected
        self.found = found


class UnsatisfiedError(InputError):
    """The witness does not satisfy a row of the constraint system."""

    def __init__(self, row: int, n_rows: int) -> None:
        super().__init__(f"the witness does not satisfy row {row} of {n_rows} of the circuit")
        self.row = row
        self.n_rows = n_rows


class ResourceError(Groth16Error):
    """Memory was refused; nothing was computed."""


class ComputeError(Groth16Error):
    """The backend failed in its own code; the input is not to blame."""
