"""What waits for one key is one batch; only the verifier's own word is a verdict."""

from __future__ import annotations

import asyncio

from partita.circuits.zkey import read_zkey
from partita.groth16.verifying_key import VerifyingKey
from partita.scheduler.core.effects import VerifyProof
from partita.scheduler.core.events import ProofChecked
from partita.scheduler.core.model import Verdict
from partita.scheduler.verification import Verification
from tests.scheduler.peer import PRODUCT, Prover, product_statement, product_witness

MANIFEST = b"m" * 32
UNFORESEEN = b"u" * 32


def vk() -> VerifyingKey:
    path = PRODUCT / "circuit.zkey"
    return VerifyingKey.of_proving_key(read_zkey(str(path), path.read_bytes()))


async def answers(requests: list[VerifyProof], loads: list[bytes]) -> dict[int, ProofChecked]:
    found: dict[int, ProofChecked] = {}
    all_there = asyncio.Event()

    def take(answer: ProofChecked) -> None:
        assert answer.check_id not in found
        found[answer.check_id] = answer
        if len(found) == len(requests):
            all_there.set()

    def key(manifest: bytes) -> VerifyingKey:
        loads.append(manifest)
        if manifest == UNFORESEEN:
            raise RuntimeError("nobody thought of this")
        return {MANIFEST: vk()}[manifest]

    verification = Verification(key, take, lambda n_proofs, spent_ns: None)
    for request in requests:
        verification.check(request)
    await all_there.wait()
    await verification.close()
    return found


async def test_each_proof_of_a_batch_gets_its_own_verdict(prover: Prover) -> None:
    proof = prover.proof(product_witness(3, 4))
    good, bad = product_statement(3, 4), product_statement(3, 5)
    loads: list[bytes] = []
    found = await answers(
        [
            VerifyProof(1, "product", MANIFEST, good, proof),
            VerifyProof(2, "product", MANIFEST, bad, proof),
            VerifyProof(3, "product", MANIFEST, good, proof[:-1]),
            VerifyProof(4, "product", MANIFEST, good + bytes(32), proof),
            VerifyProof(5, "product", MANIFEST, b"\xff" * 32, proof),
            VerifyProof(6, "product", MANIFEST, good, proof),
        ],
        loads,
    )
    verdicts = [found[number].verdict for number in range(1, 7)]
    invalid = Verdict.INVALID
    assert verdicts == [Verdict.VALID, invalid, invalid, invalid, invalid, Verdict.VALID]
    assert all(found[number].detail for number in range(2, 6))
    assert loads == [MANIFEST], "the key is prepared once"


async def test_a_verifier_that_cannot_work_says_unchecked_and_goes_on(prover: Prover) -> None:
    proof = prover.proof(product_witness(3, 4))
    statement = product_statement(3, 4)
    found = await answers(
        [
            VerifyProof(1, "gone", b"g" * 32, statement, proof),
            VerifyProof(2, "broken", UNFORESEEN, statement, proof),
            VerifyProof(3, "product", MANIFEST, statement, proof),
        ],
        [],
    )
    assert found[1].verdict is found[2].verdict is Verdict.UNCHECKED
    assert found[3].verdict is Verdict.VALID
