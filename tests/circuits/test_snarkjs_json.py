"""snarkjs' JSON: its own files come back byte for byte; anything else is refused by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.circuits.snarkjs_json import (
    read_proof_json,
    read_public_json,
    read_verifying_key_json,
    write_proof_json,
    write_public_json,
    write_verifying_key_json,
)
from partita.circuits.wtns import read_wtns
from partita.circuits.zkey import read_zkey
from partita.groth16.curves import curve_named
from partita.groth16.errors import EncodingError, FormatError, InputError, MismatchError
from partita.groth16.verifying_key import VerifyingKey
from tests.circuits.circuit_vectors import ALL, CircuitVector, edge

VECTOR = edge("one-constraint")
PROOF = json.loads(VECTOR.text("proof.json"))
KEY = json.loads(VECTOR.text("verification_key.json"))


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_files_of_snarkjs_come_back_byte_for_byte(vector: CircuitVector) -> None:
    curve = vector.facts["curve"]
    proof = vector.text("proof.json")
    assert write_proof_json(read_proof_json("proof.json", proof)) == proof
    public = vector.text("public.json")
    statement = read_public_json("public.json", public, curve_name=curve)
    assert write_public_json(curve, statement) == public

    text = vector.text("verification_key.json")
    key = read_verifying_key_json("vk.json", text)
    written = write_verifying_key_json(key)
    assert written == text
    assert read_verifying_key_json("vk.json", written, check_subgroups=False) == key


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_the_json_files_agree_with_key_and_witness(vector: CircuitVector) -> None:
    key = VerifyingKey.of_proving_key(read_zkey("k", vector.read("circuit.zkey")))
    text = vector.text("verification_key.json")
    assert read_verifying_key_json("vk", text, check_subgroups=False) == key
    statement = read_wtns("w", vector.read("witness.wtns")).statement(key.n_public)
    assert write_public_json(key.curve, statement) == vector.text("public.json")


def proof_with(**changes: Any) -> str:
    return json.dumps({**PROOF, **changes})


def key_with(**changes: Any) -> str:
    return json.dumps({**KEY, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"pi_a": 1, "pi_a": 2}', "'pi_a'.*occurs twice"),
        (json.dumps({k: v for k, v in PROOF.items() if k != "pi_b"}), "missing: pi_b"),
        (proof_with(extra=1), "unknown fields: 'extra'"),
        (proof_with(protocol="plonk"), "protocol: is 'plonk'; only 'groth16'"),
        (proof_with(curve="bn254"), "curve: is 'bn254'; it must be 'bn128' or 'bls12381'"),
        (proof_with(curve=["bn128"]), "curve: is"),
        (proof_with(pi_a=["1", "2"]), "pi_a: is not a list of 3"),
        (proof_with(pi_a=[1, "2", "1"]), r"pi_a\[0\]: 1 is not a decimal string"),
        (proof_with(pi_a=["0x1", "2", "1"]), r"pi_a\[0\]: '0x1' is not a decimal string"),
        (proof_with(pi_a=["-1", "2", "1"]), r"pi_a\[0\]: '-1' is not a decimal string"),
        (proof_with(pi_a=["01", "2", "1"]), r"pi_a\[0\]: has leading zeros"),
        (proof_with(pi_a=["٣", "2", "1"]), r"pi_a\[0\]: '٣' is not a decimal string"),
        (proof_with(pi_a=["9" * 5000, "2", "1"]), r"pi_a\[0\]: 9{80} is not below"),
        (proof_with(pi_a=["1", "2", "3"]), "pi_a: the third coordinate is not one"),
        (proof_with(pi_a=["0", "1", "0"]), "pi_a: is the point at infinity"),
        (proof_with(pi_b=[["1"], ["1", "0"], ["1", "0"]]), r"pi_b\[0\]: is not a list of 2"),
    ],
)
def test_a_malformed_proof_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_proof_json("proof.json", text)


def test_a_point_off_its_curve_or_outside_its_subgroup_is_refused_by_field() -> None:
    with pytest.raises(EncodingError, match=r"proof\.json, pi_c: the point is off the curve"):
        read_proof_json("proof.json", proof_with(pi_c=["1", "3", "1"]))
    turned = [PROOF["pi_b"][0][::-1], *PROOF["pi_b"][1:]]
    with pytest.raises(EncodingError, match=r"proof\.json, pi_b: the point is off"):
        read_proof_json("proof.json", proof_with(pi_b=turned))


def test_a_point_outside_its_subgroup_is_refused_unless_a_verifier_will_check() -> None:
    group = curve_named("bls12-381").g1
    x = next(
        x
        for x in range(1, 100)
        if (y := group.field.sqrt(group.right_side(x))) is not None
        and not group.is_in_subgroup((x, y))
    )
    y = group.field.sqrt(group.right_side(x))
    key = json.loads(edge("one-constraint", "bls12-381").text("verification_key.json"))
    key["IC"][0] = [str(x), str(y), "1"]
    with pytest.raises(EncodingError, match=r"vk, IC\[0\]: the point is outside the subgroup"):
        read_verifying_key_json("vk", json.dumps(key))
    unchecked = read_verifying_key_json("vk", json.dumps(key), check_subgroups=False)
    assert unchecked.ic[0] == (x, y)
    key["IC"][0] = ["1", "1", "1"]
    with pytest.raises(EncodingError, match=r"vk, IC\[0\]: the point is off the curve"):
        read_verifying_key_json("vk", json.dumps(key), check_subgroups=False)


@pytest.mark.parametrize("curve", ["bn254", "bls12-381"])
def test_public_values_must_be_below_the_modulus(curve: str) -> None:
    r = curve_named(curve).r
    assert read_public_json("p", json.dumps([str(r - 1)]), curve_name=curve) == (r - 1).to_bytes(
        32, "little"
    )
    with pytest.raises(FormatError, match=r"p, \[1\]: .* is not below the modulus"):
        read_public_json("p", json.dumps(["1", str(r)]), curve_name=curve)


@pytest.mark.parametrize("text", ["{}", "[1]", "[null]", '["1.5"]', "[1.5]", '[["1"]]', "[NaN]"])
def test_public_values_must_be_decimal_strings(text: str) -> None:
    with pytest.raises(FormatError):
        read_public_json("p", text, curve_name="bn254")


def test_another_number_of_public_values_is_refused() -> None:
    with pytest.raises(MismatchError, match="public inputs differs: expected 2, found 1"):
        read_public_json("p", '["1"]', curve_name="bn254", n_public=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (key_with(nPublic=2), "nPublic: is 2, but IC has 2 points"),
        (key_with(nPublic=True), "nPublic: is True"),
        (key_with(nPublic="1"), "nPublic: is 1"),
        (key_with(IC=[]), "IC: is not a list of points"),
        (key_with(IC=[KEY["IC"][0], ["1", "3", "1"]]), r"IC\[1\]: the point is off the curve"),
        (key_with(vk_gamma_2=[["0", "0"], ["1", "0"], ["0", "0"]]), "vk_gamma_2: is the point at"),
        (key_with(vk_alpha=1), "unknown fields: 'vk_alpha'"),
    ],
)
def test_a_malformed_verifying_key_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_verifying_key_json("vk.json", text)


def test_a_point_of_ic_may_be_infinity() -> None:
    text = key_with(IC=[KEY["IC"][0], ["0", "1", "0"]])
    key = read_verifying_key_json("vk.json", text)
    assert key.ic[1] is None
    assert json.loads(write_verifying_key_json(key))["IC"][1] == ["0", "1", "0"]
