"""The manifest of a circuit: what it is, apart from its name, in one canonical text.

Everything that decides whether two parties mean the same circuit is in it: curve, key family,
counts, input formats with their limits, the digest of every file by role, and whether its key is
insecure. Its own SHA-256 is the identity that jobs and proving keys carry.

Canonical: JSON with sorted keys and no spaces, ASCII. A text that is not canonical is refused, so
that one circuit has one digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from partita.circuits.strict_json import load_json, require_fields
from partita.groth16.curves import CURVES
from partita.groth16.errors import FormatError
from partita.groth16.keys import KeyFamily

if TYPE_CHECKING:
    from partita.circuits.strict_json import Json

ROLES: Final = ("zkey", "params", "vk", "wasm", "r1cs", "sym")
"""What a file is for. `vk` is the binary verifying key (`VerifyingKey.to_bytes`)."""

KEY_ROLES: Final = {
    KeyFamily.SNARKJS: ("zkey",),
    KeyFamily.BELLPERSON: ("params", "r1cs"),
}
"""The files that a proving key of each family is made of."""
INPUT_FORMATS: Final = ("wtns", "circom.json")

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_FIELDS: Final = ("counts", "curve", "family", "files", "input_formats", "limits")
_INSECURE: Final = "insecure"
_COUNTS: Final = ("domain_size", "n_constraints", "n_public", "n_wires")
_LIMITS: Final = ("synthesis_memory_bytes", "synthesis_time_ms")
_MAX_COUNT: Final = 1 << 48


@dataclass(frozen=True, slots=True)
class SynthesisLimits:
    """What one run of the circuit's witness program may use.

    Attributes:
        memory_bytes: its linear memory.
        time_ms: wall time.
    """

    memory_bytes: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A circuit without its name.

    Attributes:
        curve: a key of `CURVES`.
        family: the conventions of the proving key.
        n_public: the length of a statement.
        n_wires: the length of a witness, the constant wire included.
        n_constraints: the rows of the constraint system.
        domain_size: the domain of the proving key.
        input_formats: for each format that partitions may come in, the most bytes of an input.
        limits: of the witness program; None for a circuit without one.
        files: the SHA-256 of each file by role, lower-case hex.
        insecure: whether the key comes from a development set-up, so that somebody may be able
            to prove false statements. The text names it only where it is true.
    """

    curve: str
    family: KeyFamily
    n_public: int
    n_wires: int
    n_constraints: int
    domain_size: int
    input_formats: Mapping[str, int]
    limits: SynthesisLimits | None
    files: Mapping[str, str]
    insecure: bool = False

    def to_json(self) -> bytes:
        """The canonical text."""
        limits: dict[str, int] = {}
        if self.limits is not None:
            limits = {
                "synthesis_memory_bytes": self.limits.memory_bytes,
                "synthesis_time_ms": self.limits.time_ms,
            }
        value: dict[str, object] = {
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "curve": self.curve,
            "family": self.family.value,
            "files": dict(self.files),
            "input_formats": dict(self.input_formats),
            "limits": limits,
        }
        if self.insecure:
            value[_INSECURE] = True
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    def sha256(self) -> bytes:
        """The digest of the canonical text: 32 bytes."""
        return hashlib.sha256(self.to_json()).digest()

    @classmethod
    def from_json(cls, source: str, data: bytes) -> Manifest:
        """Read a canonical text.

        Args:
            source: its name, for errors.
            data: the text.

        Raises:
            FormatError: malformed, contradictory, or not canonical; names the field.
        """
        fields = require_fields(source, load_json(source, data), _FIELDS, (_INSECURE,))
        counts = _numbers(source, "counts", fields["counts"], _COUNTS, _COUNTS)
        limits = _numbers(source, "limits", fields["limits"], _LIMITS, ())
        if len(limits) == 1:
            raise FormatError(source, f"has only {next(iter(limits))}", section="limits")
        curve, family = fields["curve"], fields["family"]
        insecure = fields.get(_INSECURE)
        if insecure is not None and insecure is not True:
            raise FormatError(
                source, f"is {insecure!r:.40}; write true, or leave it out", section=_INSECURE
            )
        if curve not in CURVES:
            raise FormatError(source, f"is {curve!r}, not {' or '.join(CURVES)}", section="curve")
        families = {known.value: known for known in KeyFamily}
        if not isinstance(family, str) or family not in families:
            raise FormatError(
                source, f"is {family!r}, not one of {list(families)}", section="family"
            )
        manifest = cls(
            curve=str(curve),
            family=families[family],
            **counts,
            input_formats=_numbers(
                source, "input_formats", fields["input_formats"], INPUT_FORMATS, ()
            ),
            limits=(
                SynthesisLimits(limits["synthesis_memory_bytes"], limits["synthesis_time_ms"])
                if limits
                else None
            ),
            files=_digests(source, fields["files"]),
            insecure=insecure is True,
        )
        manifest._check(source)
        if manifest.to_json() != bytes(data):
            raise FormatError(source, "is not canonical: sort the keys and leave out all spaces")
        return manifest

    def _check(self, source: str) -> None:
        if not 0 <= self.n_public < self.n_wires:
            raise FormatError(
                source,
                f"{self.n_public} public inputs do not fit {self.n_wires} wires",
                section="counts",
            )
        of_another = [
            role
            for family, roles in KEY_ROLES.items()
            for role in roles[:1]
            if family is not self.family and role in self.files
        ]
        missing = [role for role in KEY_ROLES[self.family] if role not in self.files]
        if missing or of_another:
            what = [*(f"missing: {role}" for role in missing), *(f"has {r}" for r in of_another)]
            needs = " and ".join(KEY_ROLES[self.family])
            raise FormatError(
                source,
                f"{', '.join(what)}; a key of family {self.family.value} needs {needs}",
                section="files",
            )
        if not self.input_formats:
            raise FormatError(source, "is empty", section="input_formats")
        has_program = "wasm" in self.files
        if has_program != (self.limits is not None):
            raise FormatError(source, "a circuit has them iff it has a wasm file", section="limits")
        if has_program != ("circom.json" in self.input_formats):
            raise FormatError(
                source,
                "circom.json is there iff the circuit has a wasm file",
                section="input_formats",
            )


def _numbers(
    source: str, section: str, value: Json, known: tuple[str, ...], required: tuple[str, ...]
) -> dict[str, int]:
    fields = require_fields(f"{source}, {section}", value, required, known)
    numbers: dict[str, int] = {}
    for name, number in fields.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MAX_COUNT:
            raise FormatError(source, f"{name} is {number!r:.40}, no count", section=section)
        numbers[name] = number
    return numbers


def _digests(source: str, value: Json) -> dict[str, str]:
    fields = require_fields(f"{source}, files", value, ("vk",), ROLES)
    digests: dict[str, str] = {}
    for role, digest in fields.items():
        if not isinstance(digest, str) or _SHA256.fullmatch(digest) is None:
            raise FormatError(source, f"{role} is no SHA-256 in lower-case hex", section="files")
        digests[role] = digest
    return digests
