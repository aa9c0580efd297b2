"""Every wrong request gets a typed error that names the field, and the server goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.groth16.curves import BN254
from partita.v1 import blobs_pb2, proving_pb2, types_pb2
from tests.scheduler.peer import Connect, Prover, product_statement, product_wtns
from tests.scheduler.running import Running, blob_ref, refused, request_of, running

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
Request = proving_pb2.SubmitJobRequest
Part = proving_pb2.PartitionInput
GOOD = product_wtns(2, 3)
MODULUS = BN254.r.to_bytes(32, "little")


def _good(count: int = 4) -> list[Part]:
    return [Part(inline=GOOD) for _ in range(count)]


def _fourth(part: Part) -> Request:
    return request_of([], partitions=[*_good(3), part])


def _with_deadline(seconds: int) -> Request:
    request = request_of([(2, 3)])
    request.deadline.FromSeconds(seconds)
    return request


def _with_length(name: str, seconds: int) -> Request:
    request = request_of([(2, 3)])
    getattr(request, name).FromSeconds(seconds)
    return request


def _json(part: Part) -> Request:
    return Request(circuit_id="product", input_format="circom.json", partitions=[part])


CASES: dict[str, tuple[Callable[[], Request], grpc.StatusCode, str, str]] = {
    "no partitions": (lambda: request_of([]), INVALID, "BAD_INPUT", "partitions"),
    "1025 partitions": (
        lambda: request_of([], partitions=[Part(inline=b"x")] * 1025),
        INVALID,
        "TOO_MANY_PARTITIONS",
        "partitions",
    ),
    "unknown circuit": (
        lambda: request_of([(2, 3)], circuit_id="nobody"),
        NOT_FOUND,
        "UNKNOWN_CIRCUIT",
        "circuit_id",
    ),
    "unknown format": (
        lambda: request_of([(2, 3)], input_format="csv"),
        INVALID,
        "UNKNOWN_FORMAT",
        "input_format",
    ),
    "request id of 10 kB": (
        lambda: request_of([(2, 3)], request_id="x" * 10_000),
        INVALID,
        "BAD_INPUT",
        "request_id",
    ),
    "statement too short": (
        lambda: _fourth(Part(inline=GOOD, statement=b"x" * 31)),
        INVALID,
        "STATEMENT_LENGTH",
        "partitions[3].statement",
    ),
    "statement empty": (
        lambda: _fourth(Part(inline=GOOD, statement=b"")),
        INVALID,
        "STATEMENT_LENGTH",
        "partitions[3].statement",
    ),
    "statement too long": (
        lambda: _fourth(Part(inline=GOOD, statement=bytes(64))),
        INVALID,
        "STATEMENT_LENGTH",
        "partitions[3].statement",
    ),
    "statement not below the modulus": (
        lambda: _fourth(Part(inline=GOOD, statement=MODULUS)),
        INVALID,
        "BAD_INPUT",
        "partitions[3].statement",
    ),
    "statement differs from the witness": (
        lambda: _fourth(Part(inline=GOOD, statement=product_statement(3, 3))),
        INVALID,
        "BAD_INPUT",
        "partitions[3].statement",
    ),
    "no input": (lambda: _fourth(Part()), INVALID, "BAD_INPUT", "partitions[3]"),
    "inline over 64 KiB": (
        lambda: _fourth(Part(inline=bytes(65_537))),
        INVALID,
        "BAD_INPUT",
        "partitions[3].inline",
    ),
    "digest of 31 bytes": (
        lambda: _fourth(Part(blob=types_pb2.BlobRef(sha256=b"x" * 31, size_bytes=1))),
        INVALID,
        "BAD_INPUT",
        "partitions[3].blob.sha256",
    ),
    "blob over the circuit's limit": (
        lambda: _fourth(Part(blob=types_pb2.BlobRef(sha256=b"x" * 32, size_bytes=1 << 40))),
        INVALID,
        "BAD_INPUT",
        "partitions[3]",
    ),
    "truncated witness": (
        lambda: _fourth(Part(inline=GOOD[:-1])),
        INVALID,
        "BAD_INPUT",
        "partitions[3]",
    ),
    "witness that is garbage": (
        lambda: _fourth(Part(inline=b"garbage")),
        INVALID,
        "BAD_INPUT",
        "partitions[3]",
    ),
    "empty witness": (lambda: _fourth(Part(inline=b"")), INVALID, "BAD_INPUT", "partitions[3]"),
    "17 labels": (
        lambda: request_of([(2, 3)], labels={str(i): "" for i in range(17)}),
        INVALID,
        "BAD_INPUT",
        "labels",
    ),
    "label too long": (
        lambda: request_of([(2, 3)], labels={"a": "x" * 300}),
        INVALID,
        "BAD_INPUT",
        "labels[a]",
    ),
    "deadline before 1970": (lambda: _with_deadline(-5), INVALID, "BAD_INPUT", "deadline"),
    "negative retention": (lambda: _with_length("retain", -1), INVALID, "BAD_INPUT", "retain"),
    "abandon after a century": (
        lambda: _with_length("abandon_after", 1 << 32),
        INVALID,
        "BAD_INPUT",
        "abandon_after",
    ),
    "statement of circom input too short": (
        lambda: _json(Part(inline=b"{}", statement=b"x")),
        INVALID,
        "STATEMENT_LENGTH",
        "partitions[0].statement",
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_wrong_submission_names_its_field_and_the_server_goes_on(
    service: Running, connect: Connect, name: str
) -> None:
    make, code, reason, field = CASES[name]
    with refused(code, reason) as refusal:
        await service.proving.SubmitJob(make())
    assert refusal.fields == (field,)
    assert refusal.message.startswith(field)
    assert not (await service.proving.ListJobs(proving_pb2.ListJobsRequest())).jobs
    await connect()
    answer = await service.submit([(2, 3)])
    job = await service.end_of(answer.job.job_id)
    assert job.state == proving_pb2.JOB_STATE_COMPLETED


async def test_a_statement_is_demanded_where_provers_may_not_state_it(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, allow_prover_statements=False) as service:
        with refused(INVALID, "BAD_INPUT") as refusal:
            await service.proving.SubmitJob(_json(Part(inline=b"{}")))
        assert refusal.fields == ("partitions[0].statement",)
        assert "allow_prover_statements" in refusal.message


async def test_a_request_over_four_mebibytes_is_refused_and_the_server_goes_on(
    service: Running,
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.proving.SubmitJob(request_of([], partitions=[Part(inline=bytes(5 << 20))]))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await service.submit([(2, 3)])).job.job_id


@pytest.mark.parametrize("token", ["x", "-1", "9" * 40, "1.5", "１"])
async def test_a_foreign_page_token_is_refused(service: Running, token: str) -> None:
    with refused(INVALID, "BAD_INPUT") as refusal:
        await service.proving.ListJobs(proving_pb2.ListJobsRequest(page_token=token))
    assert refusal.fields == ("page_token",)


@pytest.mark.parametrize("state", [0, 6])
async def test_a_filter_by_what_is_no_state_does_not_list_everything(
    service: Running, state: int
) -> None:
    await service.submit([(2, 3)])
    with refused(INVALID, "BAD_INPUT") as refusal:
        await service.proving.ListJobs(
            proving_pb2.ListJobsRequest(states=[proving_pb2.JOB_STATE_QUEUED, state])  # type: ignore[list-item]
        )
    assert refusal.fields == ("states[1]",)


async def test_a_wait_over_an_hour_is_refused(service: Running) -> None:
    request = proving_pb2.GetJobRequest(job_id="x")
    request.wait.FromSeconds(3601)
    with refused(INVALID, "BAD_INPUT") as refusal:
        await service.proving.GetJob(request)
    assert refusal.fields == ("wait",)


async def test_a_full_queue_is_refused_with_a_delay(data_dir: Path, prover: Prover) -> None:
    async with running(data_dir, prover, max_open_jobs=2) as service:
        await service.submit([(2, 3)])
        await service.submit([(2, 4)])
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL") as refusal:
            await service.submit([(2, 5)])
        assert refusal.retry_ns == 1_000_000_000


async def test_a_job_no_connected_prover_could_ever_hold_is_refused(
    service: Running, connect: Connect
) -> None:
    await connect(total_bytes=12 << 20)
    await service.until_connected("gpu-0")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "TOO_LARGE_FOR_FLEET"):
        await service.submit([(2, 3)])


Upload = blobs_pb2.UploadRequest


async def _stream(*messages: Upload) -> AsyncIterator[Upload]:
    for message in messages:
        yield message


BLOB = b"a blob" * 100
UPLOADS: dict[str, tuple[list[Upload], str]] = {
    "no header": ([Upload(chunk=b"x")], "header"),
    "nothing": ([], "header"),
    "digest of 5 bytes": (
        [Upload(header=types_pb2.BlobRef(sha256=b"short", size_bytes=5))],
        "header.sha256",
    ),
    "wrong digest": (
        [Upload(header=blob_ref(BLOB)), Upload(chunk=bytes(len(BLOB)))],
        "sha256",
    ),
    "cut off": ([Upload(header=blob_ref(BLOB)), Upload(chunk=BLOB[:100])], "size_bytes"),
    "too much": ([Upload(header=blob_ref(BLOB)), Upload(chunk=BLOB + b"x")], "size_bytes"),
    "second header": ([Upload(header=blob_ref(BLOB)), Upload(header=blob_ref(BLOB))], "chunk"),
    "chunk over 1 MiB": (
        [Upload(header=blob_ref(bytes(1 << 21))), Upload(chunk=bytes((1 << 20) + 1))],
        "chunk",
    ),
    "over the largest blob": (
        [Upload(header=types_pb2.BlobRef(sha256=b"x" * 32, size_bytes=1 << 50))],
        "size_bytes",
    ),
}


@pytest.mark.parametrize("name", UPLOADS)
async def test_a_wrong_upload_keeps_nothing(service: Running, data_dir: Path, name: str) -> None:
    messages, says = UPLOADS[name]
    with refused(INVALID, "BAD_INPUT") as refusal:
        await service.blobs.Upload(_stream(*messages))
    assert says in refusal.message
    assert not list((data_dir / "blobs").iterdir())
    await _upload_works(service)


async def test_an_upload_that_breaks_off_in_the_middle_keeps_nothing(
    service: Running, data_dir: Path
) -> None:
    call: Any = service.blobs.Upload()
    await call.write(Upload(header=blob_ref(BLOB)))
    await call.write(Upload(chunk=BLOB[:100]))
    call.cancel()
    await _upload_works(service)
    folder = data_dir / "blobs"
    assert [path.name for path in folder.iterdir() if path.suffix != ".part"] == [
        blob_ref(BLOB).sha256.hex()
    ]


async def test_an_upload_that_says_nothing_gives_its_slot_back(
    data_dir: Path, prover: Prover
) -> None:
    async with running(data_dir, prover, stall="1s", max_uploads=1) as service:
        call: Any = service.blobs.Upload()
        await call.write(Upload(header=blob_ref(BLOB)))
        with refused(INVALID, "BAD_INPUT") as refusal:
            await call
        assert refusal.fields == ("chunk",)
        await _upload_works(service)


async def _upload_works(service: Running) -> None:
    answer = await service.blobs.Upload(
        _stream(Upload(header=blob_ref(BLOB)), Upload(chunk=BLOB[:300]), Upload(chunk=BLOB[300:]))
    )
    assert answer.blob == blob_ref(BLOB)
    missing = await service.blobs.FindMissing(
        blobs_pb2.FindMissingRequest(blobs=[blob_ref(BLOB), blob_ref(b"other")])
    )
    assert list(missing.missing) == [blob_ref(b"other")]
