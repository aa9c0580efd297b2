"""What `doctor` says of the addresses that a prover dials."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc
import pytest

from partita.cli import doctor_schedulers
from partita.cli.doctor_report import Check, Status
from partita.cli.doctor_schedulers import check_prover_schedulers, prover_schedulers
from partita.prover.config import ProverConfig
from partita.service.config import load
from partita.service.grpcio import Server

NOBODY = "127.0.0.1:1"
DISPATCH = "partita.v1.DispatchService"


@asynccontextmanager
async def served(*services: str, ready: bool = True) -> AsyncIterator[str]:
    """A server with these services' health; yields its address."""
    server = Server(services)
    address = server.bind("127.0.0.1:0")
    await server.start()
    await server.serving(ready)
    try:
        yield address
    finally:
        await server.stop(0)


async def look(*addresses: str, expected: bool = True) -> Sequence[Check]:
    return await asyncio.to_thread(check_prover_schedulers, addresses, expected=expected)


async def test_a_scheduler_that_takes_provers_is_right_and_one_that_is_not_ready_a_warning() -> (
    None
):
    async with served(DISPATCH) as ready, served(DISPATCH, ready=False) as busy:
        right, waiting = await look(ready, busy)
    assert (right.name, right.status) == (f"scheduler for provers {ready}", Status.OK)
    assert waiting.status is Status.WARN
    assert f"answers at {busy}, but takes no work" in waiting.found


@pytest.mark.parametrize(
    ("services", "says"),
    [
        (["partita.v1.ProvingService", "partita.v1.BlobService"], "for clients, not for provers"),
        (["partita.v1.ProverService"], "a prover's own address"),
        (["other.v1.Service"], "it takes no provers"),
    ],
)
async def test_a_port_that_is_not_for_provers_fails_and_says_whose_it_is(
    services: list[str], says: str
) -> None:
    async with served(DISPATCH) as right, served(*services) as wrong:
        fine, check = await look(right, wrong)
    assert (fine.status, check.status) == (Status.OK, Status.FAIL)
    assert wrong in check.found
    assert says in check.found
    assert "prover_listen" in check.cure


async def test_a_server_without_health_is_no_scheduler() -> None:
    server = grpc.aio.server()
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    (check,) = await look(address)
    await server.stop(0)
    assert check.status is Status.FAIL
    assert "UNIMPLEMENTED" in check.found


async def test_silent_addresses_fail_one_by_one_unless_another_answers() -> None:
    checks = await look(NOBODY, "nohost.invalid:9831")
    assert [check.status for check in checks] == [Status.FAIL, Status.FAIL]
    assert f"nobody answers at {NOBODY}" in checks[0].found
    assert "refused" in checks[0].found
    assert "nohost.invalid:9831" in checks[1].found
    assert all("[prover] schedulers" in check.cure for check in checks)
    async with served(DISPATCH) as address:
        silent, right = await look(NOBODY, address)
    assert (silent.status, right.status) == (Status.WARN, Status.OK)
    assert "take the address out" in silent.cure


async def test_an_address_of_another_port_does_not_excuse_a_silent_one() -> None:
    async with served("partita.v1.ProvingService") as clients:
        checks = await look(NOBODY, clients)
    assert [check.status for check in checks] == [Status.FAIL, Status.FAIL]


async def test_a_server_that_never_answers_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_schedulers, "_PROBE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (check,) = await look(f"127.0.0.1:{server.getsockname()[1]}")
    assert check.status is Status.FAIL
    assert "nobody answers" in check.found


async def test_where_nobody_is_expected_silence_is_a_warning() -> None:
    (check,) = await look(NOBODY, expected=False)
    assert check.status is Status.WARN


def test_named_addresses_win_over_what_a_scheduler_wrote_and_that_over_the_default() -> None:
    default = load(ProverConfig, {}, "test")
    named = load(ProverConfig, {"schedulers": ["a:1", "b:2"]}, "test")
    assert prover_schedulers(named, "c:3") == (("a:1", "b:2"), True)
    assert prover_schedulers(default, "c:3") == (("c:3",), True)
    assert prover_schedulers(default, None) == (default.schedulers, False)
