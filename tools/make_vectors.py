"""Make the compiled circuits, keys, witnesses and proofs of the examples and the tests.

Run by a developer when a circuit changes, never by the tests: it needs Node and the npm registry.
circom2 (the WASM build of circom) compiles, snarkjs makes keys and proofs and checks each proof.
Keys come from powers of tau and contributions that are fixed beacons, published right here: the
files are the same bytes at every run, and anyone can forge proofs for these keys. They are for
development only. Proofs are randomised, so proof.json differs from run to run.

    .venv/bin/python tools/make_vectors.py [--work DIR] [--only NAME ...]

`--work DIR` keeps the tools and the powers of tau between runs; without it a temporary folder is
used. `--only` limits the run to the folders whose name contains one of the words.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wasmtime

ROOT = Path(__file__).resolve().parents[1]
MERKLE = ROOT / "examples" / "merkle"
VECTORS = ROOT / "tests" / "vectors"
EDGE = VECTORS / "edge"
HOSTILE = VECTORS / "hostile"

CIRCOM = "circom2@0.2.23"
SNARKJS = "snarkjs@0.7.6"
POWER = 13
BEACON = b"partita development-only beacon.".hex()
BEACON_ROUNDS = "10"  # 2^10 hashes

CIRCOM_PRIME = {"bn254": "bn128", "bls12-381": "bls12381"}
PTAU_CURVE = {"bn254": "bn128", "bls12-381": "bls12-381"}


@dataclass(frozen=True)
class Circuit:
    """A circuit to make on both curves.

    `failing` are inputs the witness program must refuse; `endless` are inputs it never ends on, so
    they are written and not run. `flip` is a wire that unsatisfied.wtns has one higher.
    """

    name: str
    inputs: dict[str, Any]
    options: tuple[str, ...] = ()
    failing: dict[str, dict[str, Any]] = field(default_factory=dict)
    endless: dict[str, dict[str, Any]] = field(default_factory=dict)
    flip: int | None = None
    append_empty_row: bool = False


POINT = {"x": "3", "y": "5"}
SEGMENT = {"ends": [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}], "weight": ["5", "6", "7"]}
CIRCUITS = (
    Circuit("one-constraint", {"left": "3", "right": "11"}, flip=1),
    Circuit("no-public", {"left": "3", "right": "11", "product": "33"}),
    Circuit("many-public", {"values": [str(2 * i + 1) for i in range(300)], "root": "300"}),
    Circuit("power-of-two", {"start": "2"}, flip=40),
    Circuit("power-of-two-and-one", {"start": "2"}),
    Circuit("linear-only", {"x": "8", "y": "-2"}, ("--O0",)),
    Circuit(
        "empty-rows",
        {"only_a": "2", "only_b": "3", "nowhere": "4", "both": "5"},
        ("--O0",),
        append_empty_row=True,
    ),
    Circuit(
        "shapes",
        {
            "scalar": "1",
            "row": ["2", "3", "4"],
            "table": [["1", "2", "3"], ["4", "5", "6"]],
            "point": POINT,
            "segment": SEGMENT,
        },
    ),
    Circuit(
        "assertion",
        {"age": "42", "limit": "7"},
        failing={"young": {"age": "18", "limit": "7"}, "old": {"age": "256", "limit": "7"}},
    ),
    Circuit("collatz", {"start": "27"}, endless={"endless": {"start": "0"}}),
    Circuit("recursion", {"depth": "12"}, failing={"deep": {"depth": "1000000"}}),
)


class Tools:
    """circom2 and snarkjs at their fixed versions in a work folder, and the powers of tau there."""

    def __init__(self, work: Path) -> None:
        """Install what `work` lacks."""
        self.work = work
        if not (work / "node_modules" / "snarkjs").is_dir():
            work.mkdir(parents=True, exist_ok=True)
            (work / "package.json").write_text('{"private": true}\n')
            self._run("npm", "install", "--no-audit", "--no-fund", CIRCOM, SNARKJS)

    def _run(self, *command: str | Path, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd or self.work,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            call = " ".join(map(str, command))
            raise SystemExit(f"{call}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _program(self, package: str, script: str) -> tuple[str, Path]:
        return "node", self.work / "node_modules" / package / script

    def snarkjs(self, *arguments: str | Path) -> str:
        """Run a snarkjs command."""
        return self._run(*self._program("snarkjs", "build/cli.cjs"), *arguments)

    def compile(self, sources: Path, main: str, curve: str, options: Sequence[str]) -> Path:
        """Compile `main`.circom among the sources; returns the folder of circom's results."""
        folder = self.work / "compile" / f"{main}-{curve}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for source in sources.glob("*.circom"):
            shutil.copyfile(source, folder / source.name)
        prime = CIRCOM_PRIME[curve]
        arguments = ("--r1cs", "--wasm", "--sym", "--prime", prime, *options)
        program = self._program("circom2", "cli.js")
        self._run(*program, f"{main}.circom", *arguments, cwd=folder)
        return folder

    def witness(self, compiled: Path, main: str, wasm: Path, inputs: Path, target: Path) -> str:
        """Run circom's own witness calculator; returns its error text, empty when it succeeded."""
        script = compiled / f"{main}_js" / "generate_witness.js"
        done = subprocess.run(
            ["node", script, wasm, inputs, target], capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr).strip() or "?" if done.returncode else ""

    def powers_of_tau(self, curve: str) -> Path:
        """The prepared powers of tau of a curve, 2^POWER, made at the first call."""
        target = self.work / f"{PTAU_CURVE[curve]}.ptau"
        if not target.exists():
            new, beacon = (target.with_suffix(f".{stage}.ptau") for stage in ("new", "beacon"))
            prepared = target.with_suffix(".prepared.ptau")
            self.snarkjs("powersoftau", "new", PTAU_CURVE[curve], str(POWER), new)
            self.snarkjs(
                "powersoftau", "beacon", new, beacon, BEACON, BEACON_ROUNDS, "-n=development"
            )
            self.snarkjs("powersoftau", "prepare", "phase2", beacon, prepared)
            prepared.rename(target)
        return target


@dataclass(frozen=True)
class R1cs:
    """The parts of an .r1cs that the generator needs, and its raw sections in file order."""

    sections: list[tuple[int, bytes]]
    prime: int
    wires: int
    outputs: int
    public_inputs: int
    constraints: int

    def rows(self) -> Iterator[list[dict[int, int]]]:
        """A, B and C of every row: wire to value."""
        body = next(data for kind, data in self.sections if kind == 2)
        width = (self.prime.bit_length() + 63) // 64 * 8
        at = 0
        for _ in range(self.constraints):
            row = []
            for _ in range(3):
                (count,) = struct.unpack_from("<I", body, at)
                at += 4
                terms = {}
                for _ in range(count):
                    (wire,) = struct.unpack_from("<I", body, at)
                    terms[wire] = int.from_bytes(body[at + 4 : at + 4 + width], "little")
                    at += 4 + width
                row.append(terms)
            yield row


def sections_of(path: Path) -> list[tuple[int, bytes]]:
    """The sections of an iden3 container, in file order."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<I", data, 8)
    found, at = [], 12
    for _ in range(count):
        kind, length = struct.unpack_from("<IQ", data, at)
        found.append((kind, data[at + 12 : at + 12 + length]))
        at += 12 + length
    return found


def write_sections(path: Path, sections: Sequence[tuple[int, bytes]]) -> None:
    """Replace the sections of an iden3 container, keeping its magic and version."""
    head = path.read_bytes()[:8]
    body = b"".join(struct.pack("<IQ", kind, len(data)) + data for kind, data in sections)
    path.write_bytes(head + struct.pack("<I", len(sections)) + body)


def read_r1cs(path: Path) -> R1cs:
    """Parse an .r1cs."""
    sections = sections_of(path)
    header = next(data for kind, data in sections if kind == 1)
    (width,) = struct.unpack_from("<I", header)
    wires, outputs, public_inputs, _, _, constraints = struct.unpack_from(
        "<IIIIQI", header, 4 + width
    )
    prime = int.from_bytes(header[4 : 4 + width], "little")
    return R1cs(sections, prime, wires, outputs, public_inputs, constraints)


def append_empty_row(path: Path) -> None:
    """Add a row 0 * 0 = 0, which circom itself never writes."""
    sections = []
    for kind, data in sections_of(path):
        if kind == 1:
            (count,) = struct.unpack_from("<I", data, len(data) - 4)
            data = data[:-4] + struct.pack("<I", count + 1)
        if kind == 2:
            data += bytes(12)
        sections.append((kind, data))
    write_sections(path, sections)


def first_bad_row(r1cs: R1cs, witness: Path) -> int | None:
    """The first row that the witness does not satisfy, from 0; none when it satisfies all."""
    raw = next(data for kind, data in sections_of(witness) if kind == 2)
    width = len(raw) // r1cs.wires
    values = [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]
    for index, row in enumerate(r1cs.rows()):
        a, b, c = (sum(v * values[wire] for wire, v in terms.items()) for terms in row)
        if (a * b - c) % r1cs.prime:
            return index
    return None


def flip_wire(witness: Path, target: Path, wire: int, prime: int) -> None:
    """Copy a .wtns with one wire's value raised by 1."""
    shutil.copyfile(witness, target)
    sections = []
    for kind, data in sections_of(witness):
        if kind == 2:
            width = (prime.bit_length() + 63) // 64 * 8
            at = wire * width
            value = (int.from_bytes(data[at : at + width], "little") + 1) % prime
            data = data[:at] + value.to_bytes(width, "little") + data[at + width :]
        sections.append((kind, data))
    write_sections(target, sections)


def infinities(zkey: Path, wires: int) -> dict[str, int]:
    """How many points at infinity the per-wire sections of a Groth16 .zkey hold."""
    found = {}
    for kind, data in sections_of(zkey):
        if kind in (5, 6, 7):
            size = len(data) // wires
            points = (data[i : i + size] for i in range(0, len(data), size))
            found[{5: "A", 6: "B1", 7: "B2"}[kind]] = sum(not any(point) for point in points)
    return found


def write_json(path: Path, value: object) -> None:
    """Write JSON as every generated file has it."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def make_circuit(
    tools: Tools, circuit: Circuit, curve: str, sources: Path, main: str, folder: Path
) -> dict[str, object]:
    """Make one folder: compile, key, witness, proof; returns what the manifest says of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compiled = tools.compile(sources, main, curve, circuit.options)
    shutil.copyfile(compiled / f"{main}.r1cs", folder / "circuit.r1cs")
    shutil.copyfile(compiled / f"{main}.sym", folder / "circuit.sym")
    shutil.copyfile(compiled / f"{main}_js" / f"{main}.wasm", folder / "circuit.wasm")
    if circuit.append_empty_row:
        append_empty_row(folder / "circuit.r1cs")

    write_json(folder / "input.json", circuit.inputs)
    for name, value in {**circuit.failing, **circuit.endless}.items():
        write_json(folder / f"{name}.json", value)
    wasm, wtns = folder / "circuit.wasm", folder / "witness.wtns"
    if error := tools.witness(compiled, main, wasm, folder / "input.json", wtns):
        raise SystemExit(f"{folder.name}: no witness: {error}")
    refused = tools.work / "refused.wtns"
    for name in circuit.failing:
        if not tools.witness(compiled, main, wasm, folder / f"{name}.json", refused):
            raise SystemExit(f"{folder.name}: the witness program accepts {name}.json")

    draft, zkey = tools.work / "draft.zkey", folder / "circuit.zkey"
    vkey = folder / "verification_key.json"
    tools.snarkjs("groth16", "setup", folder / "circuit.r1cs", tools.powers_of_tau(curve), draft)
    tools.snarkjs("zkey", "beacon", draft, zkey, BEACON, BEACON_ROUNDS, "-n=development")
    tools.snarkjs("zkey", "export", "verificationkey", zkey, vkey)
    proof, public = folder / "proof.json", folder / "public.json"
    tools.snarkjs("groth16", "prove", zkey, wtns, proof, public)
    tools.snarkjs("groth16", "verify", vkey, public, proof)

    r1cs = read_r1cs(folder / "circuit.r1cs")
    header = next(data for kind, data in sections_of(zkey) if kind == 2)
    base_bytes = struct.unpack_from("<I", header)[0]
    at = 4 + base_bytes
    at += 4 + struct.unpack_from("<I", header, at)[0]
    wires, n_public, domain_size = struct.unpack_from("<III", header, at)
    described: dict[str, object] = {
        "curve": curve,
        "constraints": r1cs.constraints,
        "wires": wires,
        "public_outputs": r1cs.outputs,
        "public_inputs": r1cs.public_inputs,
        "n_public": n_public,
        "domain_size": domain_size,
        "infinity_points": infinities(zkey, wires),
    }
    if (bad := first_bad_row(r1cs, wtns)) is not None:
        raise SystemExit(f"{folder.name}: the witness does not satisfy row {bad}")
    if circuit.flip is not None:
        unsatisfied = folder / "unsatisfied.wtns"
        flip_wire(wtns, unsatisfied, circuit.flip, r1cs.prime)
        described["unsatisfied_first_bad_row"] = first_bad_row(r1cs, unsatisfied)
    return described


def make_hostile(tools: Tools) -> None:
    """Keys of other protocols for one-constraint-bn254, and the hand-written programs."""
    r1cs = EDGE / "one-constraint-bn254" / "circuit.r1cs"
    for protocol in ("plonk", "fflonk"):
        zkey = HOSTILE / f"{protocol}.zkey"
        tools.snarkjs(protocol, "setup", r1cs, tools.powers_of_tau("bn254"), zkey)
    for source in sorted(HOSTILE.glob("*.wat")):
        source.with_suffix(".wasm").write_bytes(wasmtime.wat2wasm(source.read_text()))


def make_all(tools: Tools, only: Sequence[str]) -> None:
    """Make every folder that `only` selects, and bring the manifest up to date."""
    manifest_path = VECTORS / "vectors.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}

    def wanted(name: str) -> bool:
        return not only or any(word in name for word in only)

    for curve, prime in CIRCOM_PRIME.items():
        for circuit in CIRCUITS:
            folder = EDGE / f"{circuit.name}-{curve}"
            if wanted(folder.name):
                key = folder.relative_to(ROOT).as_posix()
                sources, main = EDGE / "sources", circuit.name
                manifest[key] = make_circuit(tools, circuit, curve, sources, main, folder)
        folder = MERKLE / curve
        if wanted(f"merkle-{curve}"):
            # The constants' files name the curve as circom does its prime, with bn254 for bn128.
            main = "main_" + prime.replace("bn128", "bn254")
            inputs = tools.work / "inputs"
            arguments = ["--curve", curve, "--count", "10", "--out", str(inputs)]
            subprocess.run([sys.executable, MERKLE / "tree.py", *arguments], check=True)
            merkle = Circuit("merkle", json.loads((inputs / "input-00.json").read_text()))
            key = folder.relative_to(ROOT).as_posix()
            manifest[key] = make_circuit(tools, merkle, curve, MERKLE, main, folder)
    if wanted("hostile"):
        make_hostile(tools)
    write_json(manifest_path, dict(sorted(manifest.items())))


def main() -> None:
    """Parse the arguments and make the vectors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, help="folder to keep tools and powers of tau in")
    parser.add_argument("--only", nargs="*", default=[], help="words of the folders to make")
    arguments = parser.parse_args()
    if arguments.work is not None:
        make_all(Tools(arguments.work.resolve()), arguments.only)
        return
    with tempfile.TemporaryDirectory() as work:
        make_all(Tools(Path(work)), arguments.only)


if __name__ == "__main__":
    main()
