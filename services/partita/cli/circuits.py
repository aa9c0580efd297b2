"""`partita circuits`: the catalogue of the data directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli.errors import CheckFailedError, UsageError
from partita.cli.options import (
    BackendName,
    ConfigOption,
    DataDirOption,
    JsonFlag,
    data_dir_of,
    running_scheduler,
)
from partita.cli.output import note, progress, show
from partita.cli.proving import INSECURE, backend_named, packed_keys, write_text, write_whole

if TYPE_CHECKING:
    from partita.circuits.catalogue import Catalogue, Entry
    from partita.circuits.packed import PackedKeys

app = typer.Typer(
    help="Add, set up, list, show, verify and remove circuits.",
    rich_markup_mode=None,
)

_PROBE_S = 2.0

WasmOption = Annotated[
    Path | None, typer.Option("--wasm", metavar="F", help="The witness program.")
]
SymOption = Annotated[
    Path | None, typer.Option("--sym", metavar="F", help="The names, for better errors.")
]


class FamilyName(StrEnum):
    """The conventions of a proving key."""

    SNARKJS = "snarkjs"
    BELLPERSON = "bellperson"


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: a-z 0-9 . _ -")],
    zkey: Annotated[
        Path | None, typer.Option("--zkey", metavar="F", help="The proving key, of snarkjs.")
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option("--params", metavar="F", help="The proving key, of bellperson; needs --r1cs."),
    ] = None,
    wasm: WasmOption = None,
    r1cs: Annotated[
        Path | None, typer.Option("--r1cs", metavar="F", help="The constraints, for diagnosis.")
    ] = None,
    sym: SymOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Check the files of a circuit, add them under NAME, and pack its key for provers."""
    from partita.circuits.intake import CircuitSources, add_circuit

    if (zkey is None) == (params is None):
        raise UsageError("give exactly one of --zkey and --params; `circuits setup` makes a key")
    if params is not None and r1cs is None:
        raise UsageError("--params: bellperson's keys are read with their circuit; give --r1cs")
    root = data_dir_of(data_dir, config)
    sources = CircuitSources(zkey=zkey, params=params, wasm=wasm, r1cs=r1cs, sym=sym)
    backend, packed = backend_named(BackendName.NATIVE), packed_keys(root, config)
    with progress(f"packing {zkey or params}", "bytes") as step:
        entry = add_circuit(_catalogue(root), name, sources, backend, packed, step)
    _show_added(entry, "added", as_json)


@app.command("setup")
def setup(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: a-z 0-9 . _ -")],
    r1cs: Annotated[Path, typer.Option("--r1cs", metavar="F", help="The constraints.")],
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Required: you know that such a key proves nothing.")
    ] = False,
    family: Annotated[
        FamilyName, typer.Option(help="The conventions of the key; bellperson: BLS12-381 only.")
    ] = FamilyName.SNARKJS,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="The same key each time; who knows N can forge proofs."),
    ] = None,
    wasm: WasmOption = None,
    sym: SymOption = None,
    zkey: Annotated[
        Path | None,
        typer.Option("--zkey", metavar="OUT", help="Write the key as a .zkey here too."),
    ] = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a proving key for DEVELOPMENT ONLY, add the circuit under NAME, and pack its key.

    Whoever makes a key this way could keep its secrets and prove false statements: the circuit is
    marked insecure for good. A key for production comes from a ceremony of several people.
    """
    from partita.circuits.intake import CircuitSources, set_up_circuit
    from partita.groth16.keys import KeyFamily

    if not insecure:
        raise UsageError(
            "a key that one party makes proves nothing to anyone else: that party could keep the "
            "secrets of the set-up and prove false statements; add --insecure to make one for "
            "development, or add a key of a ceremony with `circuits add`"
        )
    if zkey is not None and family is not FamilyName.SNARKJS:
        raise UsageError("--zkey: only keys of family snarkjs can be written as a .zkey")
    if zkey is not None:
        _require_writable(zkey)
    sources = CircuitSources(r1cs=r1cs, wasm=wasm, sym=sym)
    root = data_dir_of(data_dir, config)
    packed = packed_keys(root, config)
    with progress(f"setting up {r1cs}", "bytes") as step:
        entry = set_up_circuit(
            _catalogue(root),
            name,
            sources,
            KeyFamily(family.value),
            None if seed is None else str(seed).encode(),
            packed,
            step,
        )
    seeded = "" if seed is None else f"; anyone who knows the seed {seed} can forge its proofs"
    note(f"warning: the key of {name} is INSECURE, for development only{seeded}")
    if zkey is not None:
        _export(entry, zkey)
    _show_added(entry, "set up", as_json)


@app.command("list")
def list_circuits(
    config: ConfigOption = None, data_dir: DataDirOption = None, as_json: JsonFlag = False
) -> None:
    """List the circuits of the data directory."""
    from rich.table import Table

    state = _catalogue(data_dir_of(data_dir, config)).scan()
    why = {name: entry.contradictions() for name, entry in state.circuits.items()}
    circuits = [entry for name, entry in state.circuits.items() if not why[name]]
    unusable = {**state.broken, **{name: "; ".join(found) for name, found in why.items() if found}}
    names = ("circuit", "curve", "constraints", "public", "inputs", "manifest", "note")
    table = Table(*names, box=None)
    for entry in circuits:
        manifest = entry.manifest
        table.add_row(
            entry.circuit_id,
            manifest.curve,
            str(manifest.n_constraints),
            str(manifest.n_public),
            " ".join(manifest.input_formats),
            entry.manifest_sha256.hex()[:12],
            INSECURE if manifest.insecure else "",
        )
    broken = [f"{name}: unusable: {text}" for name, text in unusable.items()]
    value = {"circuits": [_entry(entry) for entry in circuits], "broken": unusable}
    empty = [] if unusable else ["no circuits; `partita circuits add` adds one"]
    show(as_json, value, *([table] if circuits else empty), *broken)


@app.command("show")
def show_circuit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The circuit.")],
    vkey: Annotated[
        Path | None,
        typer.Option(
            "--vkey",
            metavar="OUT",
            help="Write the verifying key here: OUT.json as snarkjs, OUT.vk as bellperson.",
        ),
    ] = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show one circuit and write its verifying key."""
    entry = _catalogue(data_dir_of(data_dir, config)).show(name)
    if vkey is not None:
        _write_verifying_key(entry, vkey)
    problems = entry.contradictions()
    value = {**_entry(entry), "problems": problems}
    lines = [f"unusable: {problem}" for problem in problems]
    lines += [INSECURE] if entry.manifest.insecure else []
    lines += [f"{key}: {text}" for key, text in value.items() if isinstance(text, str | int)]
    lines += [
        f"{group}.{key}: {text}"
        for group in ("input_formats", "limits", "files")
        for key, text in value[group].items()
    ]
    show(as_json, value, *lines)


@app.command("verify")
def verify_circuits(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One circuit; default: all.")
    ] = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare files with their digests, manifests with keys; exit code 1 if something is wrong."""
    catalogue = _catalogue(data_dir_of(data_dir, config))
    with progress("reading files"):
        faults = catalogue.verify(name)
    problems = [f"{fault.circuit_id}: {fault.what}" for fault in faults]
    circuits = catalogue.scan()
    if name is None:
        problems += [f"{circuit}: {why}" for circuit, why in circuits.broken.items()]
    checked = [name] if name is not None else list(circuits.circuits)
    value = {"checked": checked, "problems": problems}
    if problems:
        show(as_json, value)
        text = "; ".join(problems) + "; remove the circuit and add it again"
        raise CheckFailedError(text, shown=True)
    show(as_json, value, f"{len(checked)} circuits are intact")


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The circuit.")],
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Remove a circuit; refused while a job of the running scheduler needs it.

    Its packed key goes too, unless another circuit has the same or a prover uses it.
    """
    from partita_client import Client, RetryPolicy, UnavailableError

    root = data_dir_of(data_dir, config)
    packed, catalogue = packed_keys(root, config), _catalogue(root)
    entry = catalogue.scan().circuits.get(name)
    address = running_scheduler(root)
    removed = False
    if address is not None:
        # Only the scheduler knows which jobs are open; one that is gone left its address behind.
        with Client(address, retry=RetryPolicy(give_up_after_s=_PROBE_S)) as client:
            try:
                client.remove_circuit(name)
                removed = True
            except UnavailableError:
                pass
    if not removed:
        catalogue.remove(name)
    if entry is not None:
        _discard_packed(entry, catalogue, packed)
    show(as_json, {"removed": name}, f"removed {name}")


def _require_writable(out: Path) -> None:
    """Find out before the work whether its copy can be written; nothing is left behind."""
    try:
        if out.exists() and not out.is_file():
            raise UsageError(f"--zkey {out}: is there and is no file; name a file")
        temporary = _temporary(out)
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as error:
        raise UsageError(
            f"--zkey {out}: cannot be written: {error.strerror}; name a file in a folder that is "
            "there and may be written to"
        ) from None


def _export(entry: Entry, out: Path) -> None:
    """Write a copy of an entry's .zkey, whole or not at all."""
    from partita.circuits.durable import copy_synced, renaming

    try:
        temporary = _temporary(out)
        with renaming(temporary, out):
            copy_synced(entry.file("zkey"), temporary)
    except OSError as error:
        raise UsageError(
            f"--zkey {out}: cannot be written: {error.strerror}; {entry.circuit_id} is set up, "
            f"its key is {entry.file('zkey')}"
        ) from None


def _temporary(out: Path) -> Path:
    """Where a file is written before it gets its name; nothing is there."""
    temporary = out.with_name(f".{out.name}.tmp")
    temporary.unlink(missing_ok=True)
    return temporary


def _discard_packed(entry: Entry, catalogue: Catalogue, packed: PackedKeys) -> None:
    from partita.circuits.key_source import source_sha256

    source = source_sha256(entry.manifest.files)
    others = catalogue.scan().circuits.values()
    if all(source_sha256(other.manifest.files) != source for other in others):
        packed.discard(source)


def _write_verifying_key(entry: Entry, out: Path) -> None:
    from partita.circuits.bellperson import read_params_vk
    from partita.circuits.container import map_file
    from partita.circuits.snarkjs_json import write_verifying_key_json

    if out.suffix != ".vk":
        write_text(out, write_verifying_key_json(entry.verifying_key()))
        return
    if "params" not in entry.manifest.files:
        raise UsageError(
            f"{out}: {entry.circuit_id} has a key of snarkjs, which lacks points that a .vk "
            "holds; write a .json"
        )
    source = entry.file("params")
    write_whole(out, read_params_vk(str(source), map_file(source)).to_bytes())


def _catalogue(root: Path) -> Catalogue:
    from partita.circuits.catalogue import Catalogue

    return Catalogue(root / "circuits")


def _show_added(entry: Entry, what: str, as_json: bool) -> None:
    manifest = entry.manifest
    show(
        as_json,
        _entry(entry),
        f"{what} {entry.circuit_id}: {manifest.curve}, {manifest.n_constraints} constraints, "
        f"{manifest.n_public} public inputs, takes {' and '.join(manifest.input_formats)}"
        + (f"; {INSECURE}" if manifest.insecure else ""),
    )


def _entry(entry: Entry) -> dict[str, Any]:
    manifest = entry.manifest
    limits = manifest.limits
    return {
        "circuit_id": entry.circuit_id,
        "manifest_sha256": entry.manifest_sha256.hex(),
        "curve": manifest.curve,
        "family": manifest.family.value,
        "insecure": manifest.insecure,
        "n_public": manifest.n_public,
        "n_wires": manifest.n_wires,
        "n_constraints": manifest.n_constraints,
        "domain_size": manifest.domain_size,
        "path": str(entry.path),
        "input_formats": dict(manifest.input_formats),
        "limits": {}
        if limits is None
        else {"memory_bytes": limits.memory_bytes, "time_ms": limits.time_ms},
        "files": dict(manifest.files),
    }
