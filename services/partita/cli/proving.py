"""`partita prove` and `partita verify`: proofs on this machine, without any service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from partita.cli.errors import CheckFailedError, UsageError
from partita.cli.options import BackendName, ConfigOption, DataDirOption, JsonFlag, data_dir_of
from partita.cli.output import note, progress, show

if TYPE_CHECKING:
    from partita.circuits.catalogue import Entry
    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.packed import PackedKeys
    from partita.cli.output import Step
    from partita.groth16.backend import Backend, LoadedKey
    from partita.groth16.verifying_key import VerifyingKey
    from partita.groth16.witness import Witness

INSECURE: Final = "INSECURE key, for development only"


def register(app: typer.Typer) -> None:
    """Add the verbs to the application."""
    app.command("prove")(prove)
    app.command("verify")(verify)


def backend_named(name: BackendName) -> Backend:
    """Return a backend of this machine."""
    if name is BackendName.REFERENCE:
        from partita.groth16.reference import ReferenceBackend

        return ReferenceBackend()
    from partita.groth16.native import NativeBackend

    return NativeBackend()


def packed_keys(root: Path, config: Path | None) -> PackedKeys:
    """Return the packed keys of a data directory, under the quota of this machine's provers.

    Raises:
        ConfigError: `config` or the environment are wrong.
    """
    from partita.circuits.packed import PackedKeys
    from partita.prover.config import ProverConfig
    from partita.service.config import load_file

    return PackedKeys(root / "packed", load_file(ProverConfig, config).packed_quota)


def prove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The circuit.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")],
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="F.json", help="The inputs by name.")
    ] = None,
    witness_file: Annotated[
        Path | None, typer.Option("--witness", metavar="F.wtns", help="A finished witness.")
    ] = None,
    backend: Annotated[BackendName, typer.Option(help="What computes.")] = BackendName.NATIVE,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Prove one input here and write DIR/proof.json and DIR/public.json, verified."""
    if (input_file is None) == (witness_file is None):
        raise UsageError("give exactly one of --input and --witness")
    from partita.circuits.catalogue import Catalogue
    from partita.circuits.circuit_files import CircuitFiles
    from partita.circuits.snarkjs_json import write_proof_json, write_public_json
    from partita.groth16 import prover
    from partita.groth16.verifier import Verifier

    start_s = time.perf_counter()
    root = data_dir_of(data_dir, config)
    packed = packed_keys(root, config)
    entry = Catalogue(root / "circuits").show(name)
    if entry.manifest.insecure:
        note(f"warning: {name}: {INSECURE}")
    files = CircuitFiles(root / "circuits")
    out.mkdir(parents=True, exist_ok=True)
    witness = _witness(entry, files, input_file, witness_file)
    computer = backend_named(backend)
    with progress("loading the proving key", "bytes") as packing:
        key = _load_key(entry, files, computer, packed, packing)
    done = 0

    with progress("proving") as step:

        def stage(_: prover.Stage) -> None:
            nonlocal done
            step(done, len(prover.Stage))
            done += 1

        proof = prover.prove(computer, key, witness, stage=stage)
    statement = witness.statement(entry.manifest.n_public)
    if not Verifier(entry.verifying_key()).verify(statement, proof.to_bytes()):
        raise _misfit(entry, computer, witness)
    write_text(out / "proof.json", write_proof_json(proof))
    write_text(out / "public.json", write_public_json(entry.manifest.curve, statement))
    seconds = time.perf_counter() - start_s
    value = {
        "circuit_id": name,
        "curve": entry.manifest.curve,
        "insecure": entry.manifest.insecure,
        "backend": backend.value,
        "proof": str(out / "proof.json"),
        "public": str(out / "public.json"),
        "verified": True,
        "total_s": round(seconds, 3),
    }
    show(as_json, value, f"proved and verified in {seconds:.2f} s: {out / 'proof.json'}")


def verify(
    vkey: Annotated[
        Path,
        typer.Option("--vkey", metavar="F", help="verification_key.json, or bellperson's .vk."),
    ],
    public: Annotated[Path, typer.Option("--public", metavar="F.json", help="public.json.")],
    proof: Annotated[Path, typer.Option("--proof", metavar="F.json", help="proof.json.")],
    as_json: JsonFlag = False,
) -> None:
    """Verify a proof of snarkjs' format; exit code 1 if it does not verify."""
    from partita.circuits.snarkjs_json import read_proof_json, read_public_json
    from partita.groth16.errors import MismatchError
    from partita.groth16.verifier import Verifier

    key = _read_verifying_key(vkey)
    statement = read_public_json(
        str(public), public.read_bytes(), curve_name=key.curve, n_public=key.n_public
    )
    read = read_proof_json(str(proof), proof.read_bytes())
    if read.curve != key.curve:
        raise MismatchError("curve", key.curve, read.curve, f"{proof} and {vkey} do not fit")
    verified = Verifier(key).verify(statement, read.to_bytes())
    value = {"verified": verified, "curve": key.curve}
    if not verified:
        show(as_json, value)
        text = f"{proof}: the proof does not verify for {public} under {vkey}"
        raise CheckFailedError(text, shown=True)
    show(as_json, value, "the proof verifies")


def write_text(path: Path, text: str) -> None:
    """Write a text as `write_whole` writes bytes."""
    write_whole(path, text.encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new one, never half of it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def _read_verifying_key(path: Path) -> VerifyingKey:
    """A verifying key of snarkjs or, by the name's ending, of bellperson."""
    from partita.circuits.bellperson import read_vk
    from partita.circuits.snarkjs_json import read_verifying_key_json

    data = path.read_bytes()
    if path.suffix == ".vk":
        return read_vk(str(path), data).verifying_key()
    return read_verifying_key_json(str(path), data)


def _load_key(
    entry: Entry, files: CircuitFiles, backend: Backend, packed: PackedKeys, packing: Step
) -> LoadedKey:
    """The circuit's key, from its packed file or, where there is no room for one, from its own."""
    from partita.circuits.errors import PackingError
    from partita.circuits.key_source import key_source, require_counts, source_sha256

    manifest = entry.manifest
    try:
        found = packed.obtain(
            source_sha256(manifest.files), lambda: key_source(manifest, files), packing
        )
    except PackingError as error:
        note(f"the key is read from the circuit's own files: {error}")
        # Every point was checked when the circuit was added; the digest says it is that file.
        return backend.load(key_source(manifest, files).whole(), check=False)
    try:
        key = found.key()
        require_counts(manifest, key)
        return backend.load(key, check=False)
    finally:
        found.close()


def _witness(
    entry: Entry, files: CircuitFiles, input_file: Path | None, witness_file: Path | None
) -> Witness:
    from partita.circuits.container import map_file
    from partita.circuits.synthesis import open_synthesizer

    path = input_file or witness_file
    assert path is not None
    data = map_file(path)
    with progress("running the circuit" if input_file else "reading the witness"):
        input_format = "circom.json" if input_file else "wtns"
        synthesizer = open_synthesizer(entry.manifest, input_format, files)
        return synthesizer.synthesize(data, source=str(path))


def _misfit(entry: Entry, backend: Backend, witness: Witness) -> Exception:
    """Why a proof does not verify: the row of the circuit that the witness breaks."""
    from partita.circuits.container import map_file
    from partita.circuits.r1cs_file import read_r1cs
    from partita.groth16.errors import UnsatisfiedError

    if "r1cs" not in entry.manifest.files:
        return UsageError(
            f"witness or key of {entry.circuit_id!r} does not fit; add --r1cs to see where"
        )
    source = entry.file("r1cs")
    r1cs = read_r1cs(str(source), map_file(source))
    row = backend.check_rows(r1cs, witness)
    if row is None:
        return CheckFailedError(
            f"the proof does not verify though the witness satisfies every row: "
            f"the key and {source} are of different circuits"
        )
    return UnsatisfiedError(row, r1cs.n_rows)
