"""Identity is content: what shares a job, and what never does."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from partita.v1 import proving_pb2
from partita_client import AsyncClient
from tests.system.cluster import EDGE, Cluster, product_input, product_statement
from tests.system.faulty_prover import Fault


def start(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    for name in ("a", "b"):
        cluster.prover(name)
    cluster.until_offered("product", "a", "b")


def test_two_jobs_under_one_request_id_with_different_inputs_each_get_their_own_proofs(
    cluster: Cluster,
) -> None:
    start(cluster)
    asked = {0: range(4), 1: range(2, 6)}

    def prove(caller: int) -> list[proving_pb2.Partition]:
        client = cluster.new_client()
        inputs = [product_input(number) for number in asked[caller]]
        return client.prove("product", inputs, "circom.json", request_id="sector 7")

    with ThreadPoolExecutor(2) as pool:
        proved = list(pool.map(prove, asked))
    for caller, partitions in enumerate(proved):
        assert [x.statement for x in partitions] == [product_statement(n) for n in asked[caller]]
    jobs = list(cluster.client.jobs(request_id="sector 7"))
    assert len(jobs) == 2
    for job in jobs:
        cluster.verified("product", cluster.client.get(job.job_id))
    # Equal partitions of the two jobs are not shared either: each job proved its own four.
    assert len(cluster.begun()) == 8


def test_64_callers_of_the_same_job_at_once_make_one_run(cluster: Cluster) -> None:
    cluster.add("product", EDGE / "one-constraint-bn254")
    cluster.scheduler()
    gate = cluster.gate()
    cluster.prover("a", Fault(gate=str(gate.path)))
    cluster.until_offered("product", "a")
    inputs = [product_input(number) for number in range(3)]

    async def ask_all() -> tuple[list[proving_pb2.SubmitJobResponse], list[proving_pb2.Job]]:
        clients = [AsyncClient(cluster.address) for _ in range(64)]
        try:
            answers = await asyncio.gather(
                *(c.submit("product", inputs, "circom.json", request_id="one") for c in clients)
            )
            gate.open()
            ends = await asyncio.gather(
                *(c.wait(x.job.job_id, 60) for c, x in zip(clients, answers, strict=True))
            )
            return answers, ends
        finally:
            await asyncio.gather(*(client.close() for client in clients))

    answers, ends = asyncio.run(ask_all())
    assert len({answer.job.job_id for answer in answers}) == 1
    assert sum(not answer.attached for answer in answers) == 1
    for end in ends:
        assert end.state == proving_pb2.JOB_STATE_COMPLETED
    assert sorted(cluster.begun()) == sorted(product_statement(number) for number in range(3))


def test_a_finished_job_sent_again_is_answered_from_what_was_kept(cluster: Cluster) -> None:
    start(cluster)
    first = cluster.completed(cluster.submit([1, 2], request_id="again"))
    again = cluster.client.submit(
        "product", [product_input(1), product_input(2)], "circom.json", request_id="again"
    )
    assert again.attached
    assert again.job.state == proving_pb2.JOB_STATE_COMPLETED
    kept = cluster.verified("product", again.job)
    assert [x.proof for x in kept] == [x.proof for x in first]
    assert len(cluster.begun()) == 2


def test_the_same_job_under_no_request_id_is_proved_each_time(cluster: Cluster) -> None:
    start(cluster)
    jobs = [cluster.submit([5], request_id="") for _ in range(2)]
    proofs = {cluster.completed(job_id)[0].proof for job_id in jobs}
    assert len(proofs) == 2
