"""ProvingService: submit, look, wait, watch, list, cancel, retry.

The handlers check what a client says, ask the engine, and translate; they decide nothing about
jobs. A caller that goes away takes nothing with it but its own wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc

from partita.circuits.wtns import statement_of_wtns
from partita.groth16.errors import Groth16Error
from partita.scheduler.api.status import (
    answers_errors,
    bad,
    missing_blobs,
    of_error,
    of_refusal,
    refusal,
)
from partita.scheduler.api.submission import (
    MAX_PARTITIONS,
    Submission,
    checked,
    with_inline,
    with_stated,
)
from partita.scheduler.api.translate import (
    fingerprint_message,
    job_message,
    ns_of,
    partition_message,
)
from partita.scheduler.blobs import BlobMissingError
from partita.scheduler.catalogue import CatalogueWatcher
from partita.scheduler.core.effects import Accept, Refuse
from partita.scheduler.core.errors import JobUnknown
from partita.scheduler.core.events import CancelRequested, JobSubmitted
from partita.scheduler.core.model import Outcome
from partita.scheduler.core.views import PublicState
from partita.scheduler.engine import Engine, EngineStoppedError
from partita.service.fingerprint import RunningBuild
from partita.service.grpcio import CHUNK_BYTES, MAX_MESSAGE_BYTES, RpcError, abort
from partita.v1 import proving_pb2, proving_pb2_grpc

MAX_WAIT_S = 3600.0
DEFAULT_PAGE = 100
MAX_PAGE = 1000
PAGE_BYTES = 3 << 20
"""Bytes of results in one page: well under the largest message."""
WATCH_INTERVAL_S = 0.1
MAX_REASON_CHARS = 1024
FEATURES = ("wtns", "circom.json")

Context = grpc.aio.ServicerContext[Any, Any]


class ProvingService(proving_pb2_grpc.ProvingServiceServicer):
    """The service for clients.

    Args:
        engine: owns the core.
        catalogue: the circuits.
        epoch: of this start of the scheduler.
        build: what this process runs.
        max_blob_bytes: shown to clients.
        allow_prover_statements: whether circom inputs may come without a statement.
    """

    def __init__(
        self,
        engine: Engine,
        catalogue: CatalogueWatcher,
        *,
        epoch: int,
        build: RunningBuild,
        max_blob_bytes: int,
        allow_prover_statements: bool,
    ) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._epoch = epoch
        self._build = build
        self._max_blob_bytes = max_blob_bytes
        self._allow_prover_statements = allow_prover_statements
        self.draining = asyncio.Event()
        """Set when the scheduler stops: nothing more is accepted and no wait goes on."""

    @answers_errors
    async def GetServerInfo(  # noqa: N802
        self, request: proving_pb2.GetServerInfoRequest, context: Context
    ) -> proving_pb2.GetServerInfoResponse:
        """See the service's definition."""
        del request, context
        return proving_pb2.GetServerInfoResponse(
            fingerprint=fingerprint_message(self._build.fingerprint),
            epoch=self._epoch,
            features=(*FEATURES, *self._build.features),
            max_blob_bytes=self._max_blob_bytes,
            chunk_bytes=CHUNK_BYTES,
            max_partitions=MAX_PARTITIONS,
            max_request_bytes=MAX_MESSAGE_BYTES,
        )

    @answers_errors
    async def SubmitJob(  # noqa: N802
        self, request: proving_pb2.SubmitJobRequest, context: Context
    ) -> proving_pb2.SubmitJobResponse:
        """See the service's definition."""
        del context
        self._refuse_if_draining()
        submission = checked(
            request,
            self._catalogue.known,
            allow_prover_statements=self._allow_prover_statements,
        )
        while True:
            missing = self._missing(submission)
            if missing and not self._is_known(submission):
                raise missing_blobs(missing)
            if missing or not submission.states_itself:
                break
            try:
                submission = with_stated(submission, await self._stated(submission))
            except BlobMissingError:
                continue  # deleted meanwhile: either the job is known by now, or it is missing
            if not self._missing(submission):
                break
        found = {
            spec.input.sha256: data
            for spec in submission.partitions
            if (data := self._engine.blobs.inline(spec.input.sha256)) is not None
        }
        answer = await self._engine.submit(partial(_event, with_inline(submission, found)))
        if isinstance(answer, Refuse):
            raise of_refusal(answer)
        return self._accepted(answer)

    def _accepted(self, answer: Accept) -> proving_pb2.SubmitJobResponse:
        core = self._engine.core
        return proving_pb2.SubmitJobResponse(
            job=job_message(core.status(answer.job_id), core.partitions(answer.job_id)),
            attached=answer.attached,
        )

    def _refuse_if_draining(self) -> None:
        if self.draining.is_set():
            raise refusal("DRAINING", "the scheduler stops: submit again")

    def _missing(self, submission: Submission) -> tuple[bytes, ...]:
        """Return the digests of inputs that are not here; a known one must have that size."""
        missing: dict[bytes, None] = {}
        for index, spec in enumerate(submission.partitions):
            if spec.inline is not None:
                continue
            size = self._engine.blobs.size(spec.input.sha256)
            if size is None:
                missing[spec.input.sha256] = None
            elif size != spec.input.size_bytes:
                raise bad(
                    f"partitions[{index}].blob.size_bytes",
                    f"{spec.input.size_bytes}: the blob of that digest has {size} bytes",
                )
        return tuple(missing)

    def _is_known(self, submission: Submission) -> bool:
        """Tell whether the submission will attach: then it needs no inputs."""
        if not submission.request_id:
            return False
        self._engine.run_now()
        after = 0
        while page := self._engine.core.jobs(
            request_id=submission.request_id, after_seq=after, limit=MAX_PAGE
        ):
            for job in page:
                if job.digest == submission.digest and job.outcome in (None, Outcome.COMPLETED):
                    return True
            after = page[-1].job_seq
        return False

    async def _stated(self, submission: Submission) -> list[bytes]:
        manifest = submission.circuit.entry.manifest
        stated: dict[bytes, bytes] = {}
        for index, spec in enumerate(submission.partitions):
            if spec.input.sha256 in stated:
                continue
            source = f"partitions[{index}]"
            look = partial(
                statement_of_wtns,
                source,
                curve=manifest.curve,
                n_wires=manifest.n_wires,
                n_public=manifest.n_public,
            )
            try:
                if spec.inline is not None:
                    stated[spec.input.sha256] = look(spec.inline)
                else:
                    stated[spec.input.sha256] = await self._engine.blobs.inspect(spec.input, look)
            except Groth16Error as error:
                raise bad(source, str(error)) from error
        return [stated[spec.input.sha256] for spec in submission.partitions]

    @answers_errors
    async def GetJob(  # noqa: N802
        self, request: proving_pb2.GetJobRequest, context: Context
    ) -> proving_pb2.GetJobResponse:
        """See the service's definition."""
        del context
        wait_s = ns_of(request.wait) / 1e9
        if not 0 <= wait_s <= MAX_WAIT_S:
            raise bad("wait", f"{wait_s} s: must be 0 to {MAX_WAIT_S:.0f} s")
        if wait_s:
            number, ended = self._engine.join(request.job_id)
            stopping = asyncio.create_task(self.draining.wait())
            try:
                waits: set[asyncio.Future[Any]] = {ended, stopping}
                await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopping.cancel()
                self._engine.leave(request.job_id, number)
        return proving_pb2.GetJobResponse(job=self._job(request.job_id))

    def _job(self, job_id: str) -> proving_pb2.Job:
        self._engine.run_now()
        core = self._engine.core
        return job_message(core.status(job_id), core.partitions(job_id))

    @answers_errors
    async def ListJobs(  # noqa: N802
        self, request: proving_pb2.ListJobsRequest, context: Context
    ) -> proving_pb2.ListJobsResponse:
        """See the service's definition."""
        del context
        size = min(request.page_size or DEFAULT_PAGE, MAX_PAGE)
        known = {int(state): state for state in PublicState}
        for index, number in enumerate(request.states):
            if number not in known:
                raise bad(f"states[{index}]", f"{int(number)} is no state of a job")
        states = frozenset(known[number] for number in request.states)
        jobs = self._engine.core.jobs(
            after_seq=_token(request.page_token, 0),
            limit=size + 1,
            states=states,
            circuit_id=request.circuit_id,
            request_id=request.request_id,
        )
        page: list[proving_pb2.Job] = []
        size_bytes = 0
        for job in jobs[:size]:
            message = job_message(job)
            size_bytes += message.ByteSize()
            if page and size_bytes > PAGE_BYTES:
                break
            page.append(message)
        more = len(jobs) > len(page)
        return proving_pb2.ListJobsResponse(
            jobs=page, next_page_token=str(jobs[len(page) - 1].job_seq) if more else ""
        )

    @answers_errors
    async def ListPartitions(  # noqa: N802
        self, request: proving_pb2.ListPartitionsRequest, context: Context
    ) -> proving_pb2.ListPartitionsResponse:
        """See the service's definition."""
        del context
        self._engine.run_now()
        size = min(request.page_size or MAX_PARTITIONS, MAX_PARTITIONS)
        parts = self._engine.core.partitions(
            request.job_id, after_index=_token(request.page_token, -1), limit=size + 1
        )
        page: list[proving_pb2.Partition] = []
        size_bytes = 0
        for part in parts[:size]:
            message = partition_message(part, results=True)
            size_bytes += message.ByteSize()
            if page and size_bytes > PAGE_BYTES:
                break
            page.append(message)
        more = len(parts) > len(page)
        return proving_pb2.ListPartitionsResponse(
            partitions=page, next_page_token=str(page[-1].index) if more else ""
        )

    async def WatchJob(  # noqa: N802
        self, request: proving_pb2.WatchJobRequest, context: Context
    ) -> AsyncIterator[proving_pb2.WatchJobResponse]:
        """See the service's definition."""
        try:
            async for job in self._snapshots(request.job_id):
                yield proving_pb2.WatchJobResponse(job=job)
        except (JobUnknown, EngineStoppedError) as error:
            await abort(context, of_error(error))
        except RpcError as error:
            await abort(context, error)

    async def _snapshots(self, job_id: str) -> AsyncIterator[proving_pb2.Job]:
        engine = self._engine
        number, _ = engine.join(job_id)
        signal = engine.watch(job_id)
        stopping = asyncio.create_task(self.draining.wait())
        try:
            while not stopping.done():
                seen = signal.count
                job = self._job(job_id)
                yield job
                if job.HasField("ended"):
                    return
                await asyncio.wait({stopping}, timeout=WATCH_INTERVAL_S)
                change = asyncio.create_task(signal.wait(seen))
                try:
                    await asyncio.wait({stopping, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
            raise refusal("DRAINING")
        finally:
            stopping.cancel()
            engine.unwatch(job_id)
            engine.leave(job_id, number)

    @answers_errors
    async def CancelJob(  # noqa: N802
        self, request: proving_pb2.CancelJobRequest, context: Context
    ) -> proving_pb2.CancelJobResponse:
        """See the service's definition."""
        del context
        if len(request.reason) > MAX_REASON_CHARS:
            raise bad("reason", f"{len(request.reason)} characters: at most {MAX_REASON_CHARS}")
        number, ended = self._engine.join(request.job_id)
        try:
            self._engine.post(CancelRequested(request.job_id, request.reason))
            self._engine.run_now()
            await ended
        finally:
            self._engine.leave(request.job_id, number)
        return proving_pb2.CancelJobResponse(job=self._job(request.job_id))

    @answers_errors
    async def RetryJob(  # noqa: N802
        self, request: proving_pb2.RetryJobRequest, context: Context
    ) -> proving_pb2.RetryJobResponse:
        """See the service's definition."""
        del context
        self._refuse_if_draining()
        answer = await self._engine.retry(request.job_id)
        if isinstance(answer, Refuse):
            raise of_refusal(answer)
        return proving_pb2.RetryJobResponse(job=self._job(answer.job_id))


def _event(submission: Submission, job_id: str, caller: int) -> JobSubmitted:
    return JobSubmitted(
        job_id=job_id,
        request_id=submission.request_id,
        digest=submission.digest,
        circuit_id=submission.circuit.entry.circuit_id,
        input_format=submission.input_format,
        partitions=submission.partitions,
        caller=caller,
        priority=submission.priority,
        deadline_ns=submission.deadline_ns,
        retain_ns=submission.retain_ns,
        abandon_after_ns=submission.abandon_after_ns,
        labels=submission.labels,
    )


def _token(text: str, start: int) -> int:
    if not text:
        return start
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise bad("page_token", f"{text[:32]!r} is not a token of this service")
    return int(text)
