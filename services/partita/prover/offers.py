"""What this prover offers for one circuit: its memory, its times, its synthesizers.

Built once from the circuit's manifest and files, on a thread. A circuit that cannot be used here
becomes an offer with `unusable_reason`; it never takes the prover down.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from partita.circuits.key_source import key_source, source_sha256
from partita.circuits.manifest import Manifest
from partita.circuits.synthesis import open_synthesizer, peak_bytes
from partita.groth16.errors import FormatError, Groth16Error
from partita.groth16.footprint import CircuitShape, footprint
from partita.prover.core.model import NOTHING, Bytes
from partita.service import logs

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.packed import PackedKeys
    from partita.circuits.synthesis import Synthesizer

_log = logs.get("offers")
_ELEMENT_BYTES = 32
_R1CS_FACTOR = 3
"""A constraint system being read takes at most so many times its file."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One circuit as this prover offers it; memory as in the wire's CircuitOffer."""

    circuit_id: str
    manifest_sha256: bytes
    key: Bytes = NOTHING
    peak: Bytes = NOTHING
    after_release: Bytes = NOTHING
    input_formats: tuple[str, ...] = ()
    unusable_reason: str = ""
    load_ns: int = 0
    expected_ns: int = 0


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit of the catalogue on this prover.

    Attributes:
        offer: what is announced; its load time is that of a packed key that was checked before.
        manifest: what it is; None if the manifest itself is broken.
        synthesizers: by input format.
        rows_always: whether every witness is checked row by row: small circuits with an r1cs.
        pack_ns: what a load that has to pack the key first takes longer.
        check_ns: what the first load in a process takes longer.
    """

    offer: Offer
    manifest: Manifest | None = None
    synthesizers: Mapping[str, Synthesizer] = field(default_factory=dict)
    rows_always: bool = False
    pack_ns: int = 0
    check_ns: int = 0

    @property
    def source_sha256(self) -> str:
        """What its packed key is named by; empty if the manifest itself is broken."""
        return "" if self.manifest is None else source_sha256(self.manifest.files)

    def offer_now(self, packed_keys: PackedKeys, checked: Container[bytes]) -> Offer:
        """The offer with the time that the next load takes.

        Args:
            packed_keys: where the key is packed, or not.
            checked: manifests of the keys that this process has checked as a whole.
        """
        if self.offer.unusable_reason:
            return self.offer
        load_ns = self.offer.load_ns
        if not packed_keys.path_of(self.source_sha256).exists():
            load_ns += self.pack_ns
        if self.offer.manifest_sha256 not in checked:
            load_ns += self.check_ns
        return replace(self.offer, load_ns=load_ns)


@dataclass(frozen=True, slots=True)
class OfferRules:
    """What offers depend on beside the circuit.

    Attributes:
        backend_name: as in `partita.groth16.footprint`.
        cores: cores the backend uses.
        check_rows_below: circuits with fewer rows have every witness checked.
    """

    backend_name: str
    cores: int
    check_rows_below: int


def build_circuit(
    circuit_id: str,
    manifest_json: bytes,
    manifest_sha256: bytes,
    files: CircuitFiles,
    packed_keys: PackedKeys,
    rules: OfferRules,
) -> Circuit:
    """Return the circuit, usable or with the reason why it is not. Reads its files: slow."""
    try:
        return _build(circuit_id, manifest_json, manifest_sha256, files, packed_keys, rules)
    except (Groth16Error, OSError, MemoryError) as error:
        return broken_circuit(circuit_id, manifest_sha256, str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001  (one circuit never takes the others down)
        _log.error("offers.unforeseen", circuit_id=circuit_id, exc_info=error)
        return broken_circuit(circuit_id, manifest_sha256, f"{type(error).__name__}: {error}")


def broken_circuit(circuit_id: str, manifest_sha256: bytes, reason: str) -> Circuit:
    """Return a circuit that is only shown."""
    return Circuit(Offer(circuit_id, manifest_sha256, unusable_reason=reason))


def r1cs_bytes(size_bytes: int) -> int:
    """The most memory that reading a constraint system from a file of this size takes."""
    return _R1CS_FACTOR * size_bytes


def _build(
    circuit_id: str,
    manifest_json: bytes,
    manifest_sha256: bytes,
    files: CircuitFiles,
    packed_keys: PackedKeys,
    rules: OfferRules,
) -> Circuit:
    found = hashlib.sha256(manifest_json).digest()
    if found != manifest_sha256:
        raise FormatError(
            "manifest", f"has SHA-256 {found.hex()}, the catalogue says {manifest_sha256.hex()}"
        )
    manifest = Manifest.from_json("manifest", manifest_json)
    header = packed_keys.find(source_sha256(manifest.files))
    shape = header.shape if header else CircuitShape.of(key_source(manifest, files).frame)
    need = footprint(rules.backend_name, shape, cores=rules.cores)
    synthesizers = {
        name: open_synthesizer(manifest, name, files) for name in sorted(manifest.input_formats)
    }
    rows_bytes = 0
    if "r1cs" in manifest.files:
        rows_bytes = r1cs_bytes(len(files.open("r1cs", manifest.files["r1cs"])))
    rows_always = bool(rows_bytes) and manifest.n_constraints < rules.check_rows_below
    largest_input = max(manifest.input_formats.values())
    witness_bytes = _ELEMENT_BYTES * manifest.n_wires
    # A .wtns is used where it lies and is the witness as it arrives, which `need` counts.
    beside = max((n for name, n in manifest.input_formats.items() if name != "wtns"), default=0)
    peak = max(
        need.peak_host_bytes + beside,
        *(peak_bytes(manifest, name) for name in synthesizers),
        largest_input + 2 * witness_bytes + (0 if rows_always else rows_bytes),
    )
    offer = Offer(
        circuit_id=circuit_id,
        manifest_sha256=manifest_sha256,
        key=Bytes(need.load_host_bytes + (rows_bytes if rows_always else 0)),
        peak=Bytes(peak),
        after_release=Bytes(min(peak, need.after_release_host_bytes + beside)),
        input_formats=tuple(synthesizers),
        load_ns=need.load_ns,
        expected_ns=need.expected_ns,
    )
    # Three random sums of each query, two of them over scalars of half the length.
    check_ns = 2 * need.expected_ns
    return Circuit(offer, manifest, synthesizers, rows_always, need.pack_ns, check_ns)
