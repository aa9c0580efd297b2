"""DispatchService: the streams of provers, between protobuf and the mailboxes of `sessions`.

The prover speaks first: Hello, then Actual. A stream ends when the prover half-closes, breaks a
bound, or the core closes it; each end has one code and reason, from the table in `status`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from partita.scheduler.api.peer import CONTRACT, ActualReader, DesiredWriter, hello_of, negotiate
from partita.scheduler.api.status import REASONS, bad, refusal
from partita.scheduler.api.translate import duration
from partita.scheduler.catalogue import CatalogueWatcher
from partita.scheduler.engine import Engine
from partita.scheduler.sessions import Link
from partita.service import logs
from partita.service.fingerprint import (
    GATE_FIELDS,
    Difference,
    Fingerprint,
    RunningBuild,
    differences,
)
from partita.service.grpcio import RpcError, abort
from partita.v1 import dispatch_pb2, dispatch_pb2_grpc

Context = grpc.aio.ServicerContext[dispatch_pb2.WorkRequest, dispatch_pb2.WorkResponse]

_log = logs.get("dispatch")


class DispatchService(dispatch_pb2_grpc.DispatchServiceServicer):
    """Connects provers.

    Args:
        engine: owns the core.
        catalogue: its revision goes into the greeting.
        epoch: of this start of the scheduler.
        build: what this process runs; provers are compared with it.
        exact: refuse provers of another build, otherwise tell them in the log.
        beat_ns: how often a prover must speak.
        stall_ns: how long a new stream may wait with its first message.
    """

    def __init__(
        self,
        engine: Engine,
        catalogue: CatalogueWatcher,
        *,
        epoch: int,
        build: RunningBuild,
        exact: bool,
        beat_ns: int,
        stall_ns: int,
    ) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._epoch = epoch
        self._build = build
        self._exact = exact
        self._beat_ns = beat_ns
        self._stall_s = stall_ns / 1e9
        self.draining = False
        """Set when the scheduler stops: no stream begins any more."""

    async def Work(self, _requests: object, context: Context) -> None:  # noqa: N802
        """See the service's definition."""
        try:
            if self.draining:
                raise refusal("DRAINING")
            first = await self._first(context)
            link = self._open(first)
            clean = False
            try:
                clean = await self._serve(link, context)
            finally:
                self._engine.post(self._engine.sessions.closed(link, clean=clean))
                _log.info(
                    "prover.disconnected",
                    prover_id=link.prover_id,
                    session=link.number,
                    clean=clean,
                    reason=link.reason,
                )
        except RpcError as error:
            _log.warning("prover.refused", reason=error.reason, message=error.message)
            await abort(context, error)

    async def _first(self, context: Context) -> dispatch_pb2.Hello:
        try:
            async with asyncio.timeout(self._stall_s):
                message: Any = await context.read()
        except TimeoutError as error:
            raise bad("message", f"no hello came within {self._stall_s:g} s") from error
        if message is grpc.aio.EOF or message.WhichOneof("message") != "hello":
            raise bad("message", "the first message of a stream must be hello")
        if negotiate(message.hello) is None:
            raise refusal(
                "CONTRACT_MISMATCH",
                _other_contract(message.hello),
                metadata={"contract": str(CONTRACT)},
            )
        hello: dispatch_pb2.Hello = message.hello
        self._compare(hello)
        return hello

    def _compare(self, hello: dispatch_pb2.Hello) -> None:
        """Tell in what a prover's build differs from this one; refuse it if that is the rule."""
        found = differences(self._build.fingerprint, Fingerprint.of(hello.fingerprint), GATE_FIELDS)
        if not found:
            return
        _log.warning(
            "prover.differs",
            prover_id=hello.prover_id,
            differences=[str(difference) for difference in found],
        )
        if self._exact:
            raise _other_build(hello.prover_id, found)

    def _open(self, message: dispatch_pb2.Hello) -> Link:
        link, event = self._engine.sessions.open(hello_of(message))
        self._engine.post(event)
        self._engine.run_now()
        _log.info(
            "prover.connected",
            prover_id=link.prover_id,
            instance_id=link.instance_id,
            session=link.number,
        )
        return link

    async def _serve(self, link: Link, context: Context) -> bool:
        """Move states both ways until the stream ends; tell whether it ended cleanly.

        Raises:
            RpcError: the stream must be aborted with it.
        """
        _refuse_if_ended(link)
        await context.write(
            dispatch_pb2.WorkResponse(
                welcome=dispatch_pb2.Welcome(
                    epoch=self._epoch,
                    contract=CONTRACT,
                    features=self._build.features,
                    catalogue_revision=self._catalogue.known.revision,
                    beat=duration(self._beat_ns),
                )
            )
        )
        reader = asyncio.create_task(self._read(link, context))
        writer = asyncio.create_task(_write(link, context))
        ended = asyncio.create_task(link.ended.wait())
        tasks = {reader, writer, ended}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            _refuse_if_ended(link)
            if reader in done:
                return reader.result()
            if writer in done:
                writer.result()
            return False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, link: Link, context: Context) -> bool:
        """Fill the mailbox; return True when the prover half-closed with no lease held."""
        holds_leases = False
        synced = False
        actuals = ActualReader()
        while True:
            message: Any = await context.read()
            if message is grpc.aio.EOF:
                return synced and not holds_leases
            match message.WhichOneof("message"):
                case "actual":
                    actual = actuals.read(message.actual)
                    holds_leases = bool(actual.leases)
                    synced = True
                    link.offer_actual(actual)
                case "hello":
                    self._check_same(link, message.hello)
                    link.offer_hello(hello_of(message.hello))
                case _:
                    raise bad("message", "must be hello or actual")
            self._engine.post_link(link)

    def _check_same(self, link: Link, hello: dispatch_pb2.Hello) -> None:
        if (hello.prover_id, hello.instance_id) != (link.prover_id, link.instance_id):
            raise bad("hello.prover_id", "a later hello must come from the same prover")


def _other_contract(hello: dispatch_pb2.Hello) -> str:
    low, high = hello.contract_min, hello.contract_max
    spoken = f"revision {low}" if low == high else f"revisions {low} to {high}"
    older = "prover" if high < CONTRACT else "scheduler"
    return (
        f"the prover speaks contract {spoken}, this scheduler revision {CONTRACT}: upgrade the "
        f"{older}, or install a version of the other that shares one"
    )


async def _write(link: Link, context: Context) -> None:
    desireds = DesiredWriter()
    while True:
        desired = desireds.message(await link.next_desired())
        await context.write(dispatch_pb2.WorkResponse(desired=desired))


def _other_build(prover_id: str, found: list[Difference]) -> RpcError:
    """Return the refusal; "here" is the scheduler."""
    return refusal(
        "FINGERPRINT_MISMATCH",
        f"prover {prover_id!r} runs another build than this scheduler, which is set to "
        f'fingerprint_gate = "exact": {"; ".join(map(str, found))}: install the same build on both',
        metadata={difference.field: difference.there for difference in found},
    )


def _refuse_if_ended(link: Link) -> None:
    if link.reason:
        raise refusal(link.reason if link.reason in REASONS else "INTERNAL")
