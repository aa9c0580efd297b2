"""Child processes of `partita up`: started, heard, restarted, drained in order.

A child leads its own session, so that Ctrl-C reaches this process alone, and dies with it. Its
lines go to stderr under its name. Only children that this process started are ever signalled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partita.cli.errors import CheckFailedError

_LAUNCHER: Final = Path(__file__).with_name("child.py")
_FIRST_PAUSE_S: Final = 0.5
_MOST_PAUSE_S: Final = 30.0
_STEADY_S: Final = 60.0
_KILL_AFTER_S: Final = 5.0
_LINE_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Program:
    """What a child runs.

    Attributes:
        name: shown before its lines.
        module: the Python module.
        arguments: after the module.
        environment: what is added to this process's own.
    """

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


class Child:
    """One program, kept running from `start` until `stop`.

    Args:
        program: what to run.
        say: takes each line for people.
    """

    def __init__(self, program: Program, say: Callable[[str], None]) -> None:
        self.program = program
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._pumps: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int:
        """The process, while there is one."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the process."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-IS",
            str(_LAUNCHER),
            str(os.getpid()),
            sys.executable,
            "-m",
            self.program.module,
            *self.program.arguments,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.program.environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
        streams = (self._process.stdout, self._process.stderr)
        self._pumps = [asyncio.create_task(self._pump(s)) for s in streams if s is not None]

    async def exited(self) -> int:
        """Return the exit code once the process has ended and its last line was said."""
        assert self._process is not None
        code = await self._process.wait()
        await asyncio.wait(self._pumps)
        return code

    async def keep(self) -> None:
        """Start the process again whenever it ends, with growing pauses, until `stop`."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while True:
            started_s = loop.time()
            code = await self.exited()
            if self._stopping.is_set():
                return
            if loop.time() - started_s > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            self._say(f"{self.program.name} ended ({_code(code)}); again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)
            if self._stopping.is_set():
                return
            await self.start()
            if self._stopping.is_set():
                self._signal(signal.SIGTERM)

    def terminate(self) -> None:
        """Ask the process to drain and end; a second time: to end at once."""
        self._stopping.set()
        self._signal(signal.SIGTERM)

    async def kill_soon(self) -> None:
        """Kill the process unless it ends within a few seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.exited(), _KILL_AFTER_S)
            return
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _pump(self, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit; what was read of it is dropped
                continue
            if not line:
                return
            self._say(f"[{self.program.name}] {line.decode(errors='replace').rstrip()}")


class Supervisor:
    """A scheduler and its provers, from start to drain.

    Use: `start` each child, `keep` them once all are ready, `wait_for_stop`, `drain`. SIGTERM and
    SIGINT ask for the drain; the second one ends everything at once.

    Args:
        say: takes each line for people.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._children: list[Child] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._urgent: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)

    async def start(self, program: Program) -> Child:
        """Start a child; those that start later drain first."""
        child = Child(program, self._say)
        await child.start()
        self._children.append(child)
        return child

    async def until_ready(self, ready: asyncio.Task[None]) -> bool:
        """Wait for `ready`; return False if a stop was asked for before.

        Raises:
            CheckFailedError: a child ended before.
        """
        stop = asyncio.create_task(self._stop.wait())
        exits = {asyncio.create_task(child.exited()): child for child in self._children}
        try:
            await asyncio.wait([ready, stop, *exits], return_when=asyncio.FIRST_COMPLETED)
            for task, child in exits.items():
                if task.done() and not stop.done():
                    raise CheckFailedError(
                        f"{child.program.name} did not start ({_code(task.result())}); "
                        "its last lines above say why"
                    )
            if stop.done():
                return False
            ready.result()
            return True
        finally:
            for unused in (ready, stop, *exits):
                unused.cancel()

    def keep(self) -> None:
        """From now on start every child again that ends."""
        self._keepers = [asyncio.create_task(child.keep()) for child in self._children]

    async def wait_for_stop(self) -> None:
        """Return when a signal asks for the end."""
        await self._stop.wait()

    async def drain(self) -> None:
        """End the children, the last started first: provers hand in before the scheduler goes."""
        groups = [self._children[1:], self._children[:1]]
        for group in groups:
            for child in group:
                if not self._urgent:
                    child.terminate()
            await asyncio.gather(*(child.exited() for child in group))
        for task in (*self._keepers, *self._urgent):
            task.cancel()
        await asyncio.gather(*self._keepers, *self._urgent, return_exceptions=True)

    def _asked_to_stop(self) -> None:
        if not self._stop.is_set():
            self._say("draining; a second signal ends everything at once")
            self._stop.set()
            return
        if not self._urgent:
            for child in self._children:
                child.terminate()
            self._urgent = [asyncio.create_task(child.kill_soon()) for child in self._children]


def _code(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
