"""The main job through a real scheduler: submitted, dispatched, proved, verified, returned."""

from __future__ import annotations

import asyncio

from partita.v1 import proving_pb2
from tests.scheduler.conftest import Connect, Running
from tests.scheduler.peer import product_statement

COMPLETED = proving_pb2.JOB_STATE_COMPLETED


async def test_each_input_comes_back_as_its_own_verified_proof_in_order(
    service: Running, connect: Connect
) -> None:
    await connect()
    pairs = [(3, index + 2) for index in range(10)]
    answer = await service.submit(pairs, request_id="r", labels={"sector": "7"})
    assert not answer.attached
    job = await service.end_of(answer.job.job_id)
    assert job.state == COMPLETED
    assert (job.partitions_done, job.partitions_total, job.labels["sector"]) == (10, 10, "7")
    parts = await service.results(job.job_id)
    assert [part.index for part in parts] == list(range(10))
    assert [part.statement for part in parts] == [product_statement(*pair) for pair in pairs]
    assert all(part.statement_source == proving_pb2.STATEMENT_SOURCE_INPUT for part in parts)
    assert len({part.proof for part in parts}) == 10
