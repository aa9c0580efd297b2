"""Errors of circuits and their witness programs; they extend the tree of `groth16.errors`.

InputError (groth16)
├── CircuitInputError        an input of the circuit is missing, unknown, misshapen or no number
├── CircuitAssertError       the circuit itself refused the inputs
├── ProgramError             the witness program is no usable program, or broke down
│   └── ProgramLimitError    it used more time or memory than it may
└── CatalogueError           the catalogue refuses a change, or an entry is unusable
    ├── UnknownCircuitError
    ├── CircuitExistsError   the name is bound to other files
    └── BrokenCircuitError   a file of the entry is missing, was altered or contradicts another
PackingError                 a packed key cannot be written here: disk, permission or quota
SynthesisStoppedError        the caller no longer wants the witness
"""

from __future__ import annotations

from pathlib import Path

from partita.groth16.errors import Groth16Error, InputError


class CircuitInputError(InputError):
    """An input of the circuit is missing, unknown, misshapen or no field element.

    Args:
        what: the inputs, what is wrong with them and what to change.
        signals: the names of the inputs concerned, where they are known.
    """

    def __init__(self, what: str, signals: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.signals = signals


class CircuitAssertError(InputError):
    """An assertion of the circuit failed: it does not accept these inputs.

    Args:
        message: the circuit's own words: what it logged, then template and line. Values that it
            logged are left out: they are part of the witness.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"the circuit does not accept the inputs: {message}")
        self.message = message


class ProgramError(InputError):
    """A witness program that cannot be used, or that broke down while running."""

    def __init__(self, source: str, what: str) -> None:
        super().__init__(f"{source}: {what}")
        self.source = source


class ProgramLimitError(ProgramError):
    """A witness program used more time or memory than its circuit's limits allow."""


class PackingError(Groth16Error):
    """A packed key cannot be written; the circuit itself is not to blame.

    Args:
        path: the file that was to be.
        what: why, and how much room it needs.
    """

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path}: {what}; free disk space there, or raise packed_quota if that is the limit"
        )
        self.path = path
        self.what = what


class SynthesisStoppedError(Groth16Error):
    """The caller stopped the synthesis; nothing is wrong with the input."""

    def __init__(self) -> None:
        super().__init__("the synthesis was stopped")


class CatalogueError(InputError):
    """Base of what the catalogue refuses."""


class UnknownCircuitError(CatalogueError):
    """No circuit has this name."""

    def __init__(self, circuit_id: str) -> None:
        super().__init__(f"no circuit is called {circuit_id!r}; `partita circuits list` shows them")
        self.circuit_id = circuit_id


class CircuitExistsError(CatalogueError):
    """The name is bound to another manifest."""

    def __init__(self, circuit_id: str, bound_sha256: str, offered_sha256: str) -> None:
        super().__init__(
            f"circuit {circuit_id!r} is bound to other files (manifest {bound_sha256}, "
            f"not {offered_sha256}); use another name, or remove it first"
        )
        self.circuit_id = circuit_id
        self.bound_sha256 = bound_sha256
        self.offered_sha256 = offered_sha256


class BrokenCircuitError(CatalogueError):
    """An entry of the catalogue cannot be used.

    Args:
        circuit_id: the entry.
        what: which file, what was expected, what was found.
    """

    def __init__(self, circuit_id: str, what: str) -> None:
        super().__init__(f"circuit {circuit_id!r}: {what}; remove it and add it again")
        self.circuit_id = circuit_id
        self.what = what
