"""Manifests: one text for one circuit."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from partita.circuits.manifest import Manifest, SynthesisLimits
from partita.groth16.errors import FormatError
from partita.groth16.keys import KeyFamily

MANIFEST = Manifest(
    curve="bn254",
    family=KeyFamily.SNARKJS,
    n_public=1,
    n_wires=4,
    n_constraints=1,
    domain_size=4,
    input_formats={"wtns": 204, "circom.json": 1000},
    limits=SynthesisLimits(memory_bytes=1 << 20, time_ms=1000),
    files={"zkey": "a" * 64, "vk": "b" * 64, "wasm": "c" * 64},
)
TEXT = (
    b'{"counts":{"domain_size":4,"n_constraints":1,"n_public":1,"n_wires":4},"curve":"bn254",'
    b'"family":"snarkjs","files":{"vk":"' + b"b" * 64 + b'","wasm":"' + b"c" * 64 + b'","zkey":"'
    + b"a" * 64 + b'"},"input_formats":{"circom.json":1000,"wtns":204},'
    b'"limits":{"synthesis_memory_bytes":1048576,"synthesis_time_ms":1000}}'
)  # fmt: skip


def test_a_manifest_has_one_canonical_text() -> None:
    assert MANIFEST.to_json() == TEXT
    assert MANIFEST.sha256() == hashlib.sha256(TEXT).digest()
    assert Manifest.from_json("m", TEXT) == MANIFEST
    turned = dataclasses.replace(
        MANIFEST,
        files=dict(sorted(MANIFEST.files.items(), reverse=True)),
        input_formats=dict(sorted(MANIFEST.input_formats.items())),
    )
    assert turned.to_json() == TEXT


def test_a_circuit_without_a_program_has_no_limits() -> None:
    plain = dataclasses.replace(
        MANIFEST,
        limits=None,
        input_formats={"wtns": 204},
        files={"zkey": "a" * 64, "vk": "b" * 64},
    )
    assert Manifest.from_json("m", plain.to_json()) == plain


def test_an_insecure_key_is_named_and_changes_the_digest() -> None:
    insecure = dataclasses.replace(MANIFEST, insecure=True)
    assert json.loads(insecure.to_json()) == {**json.loads(TEXT), "insecure": True}
    assert Manifest.from_json("m", insecure.to_json()) == insecure
    assert insecure.sha256() != MANIFEST.sha256()
    for value in (False, 1, "true", None):
        text = json.dumps(
            {**json.loads(TEXT), "insecure": value}, sort_keys=True, separators=(",", ":")
        )
        with pytest.raises(FormatError):
            Manifest.from_json("m", text.encode())


def test_a_key_of_bellperson_needs_params_and_constraints() -> None:
    files = {"params": "a" * 64, "r1cs": "d" * 64, "vk": "b" * 64, "wasm": "c" * 64}
    manifest = dataclasses.replace(MANIFEST, family=KeyFamily.BELLPERSON, files=files)
    assert Manifest.from_json("m", manifest.to_json()) == manifest


@pytest.mark.parametrize(
    "text", [TEXT + b"\n", TEXT.replace(b",", b", ", 1), TEXT.replace(b'"wtns"', b'"\\u0077tns"')]
)
def test_a_text_that_is_not_canonical_is_refused(text: bytes) -> None:
    assert json.loads(text) == json.loads(TEXT)
    with pytest.raises(FormatError, match="m: is not canonical"):
        Manifest.from_json("m", text)


def with_changes(**changes: Any) -> bytes:
    value = {**json.loads(TEXT), **changes}
    return json.dumps(
        {k: v for k, v in value.items() if v is not None}, sort_keys=True, separators=(",", ":")
    ).encode()


COUNTS = {"domain_size": 4, "n_constraints": 1, "n_public": 1, "n_wires": 4}
FILES = dict(MANIFEST.files)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curve": "bn128"}, "curve: is 'bn128', not bn254 or bls12-381"),
        ({"curve": None}, "missing: curve"),
        ({"name": "x"}, "unknown fields: 'name'"),
        ({"family": "plonk"}, "family: is 'plonk'"),
        ({"family": ["snarkjs"]}, "family: is"),
        ({"counts": {**COUNTS, "n_public": 4}}, "counts: 4 public inputs do not fit 4 wires"),
        ({"counts": {**COUNTS, "n_public": True}}, "counts: n_public is True, no count"),
        ({"counts": {**COUNTS, "n_wires": -1}}, "counts: n_wires is -1, no count"),
        ({"counts": {**COUNTS, "n_wires": "4"}}, "counts: n_wires is '4', no count"),
        ({"counts": {"n_wires": 4}}, "counts: missing: domain_size, n_constraints, n_public"),
        ({"counts": []}, "counts: is not a JSON object"),
        ({"files": {"zkey": "a" * 64}}, "files: missing: vk"),
        ({"files": {"vk": "a" * 64}}, "files: missing: zkey; a key of family snarkjs needs zkey"),
        ({"files": {**FILES, "params": "a" * 64}}, "files: has params; a key of family snarkjs"),
        ({"family": "bellperson"}, "files: missing: params, missing: r1cs, has zkey"),
        ({"files": {**FILES, "exe": "a" * 64}}, "files: unknown fields: 'exe'"),
        ({"files": {**FILES, "vk": "B" * 64}}, "files: vk is no SHA-256"),
        ({"files": {**FILES, "vk": 7}}, "files: vk is no SHA-256"),
        ({"input_formats": {}}, "input_formats: is empty"),
        ({"input_formats": {"filecoin": 1}}, "input_formats: unknown fields: 'filecoin'"),
        ({"input_formats": {"wtns": 204}}, r"circom\.json is there iff"),
        ({"limits": {}}, "limits: a circuit has them iff it has a wasm file"),
        ({"limits": {"synthesis_time_ms": 1}}, "limits: has only synthesis_time_ms"),
    ],
)
def test_a_malformed_manifest_is_refused_by_field(changes: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Manifest.from_json("m", with_changes(**changes))


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"\xff"])
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        Manifest.from_json("m", text)
