"""What a prover's process gives back to the system, and what it says of more than there is."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import structlog.testing

from partita.groth16.reference import ReferenceBackend
from partita.service.sizes import format_size, memory_limit_bytes
from tests.prover.peer import serving
from tests.prover.whole import prover_on

if TYPE_CHECKING:
    from pathlib import Path

# Blocks grow, as those of ever larger sums do: left alone, the C library takes each freed one as
# a sign to keep the next. A block above them keeps the heap from shrinking.
_PROGRAM = """
from partita.prover import memory
memory.return_freed_blocks()
before = memory.resident_bytes()
for size in range(1, 25):
    bytearray(size << 20)
blocks = [bytearray(b"x") * (16 << 20) for _ in range(8)]
above = bytearray(b"x") * (1 << 19)
del blocks
print(memory.resident_bytes() - before)
"""


def test_large_blocks_leave_the_process_when_they_are_freed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16 << 20


async def test_a_prover_promised_more_memory_than_the_machine_allows_warns_once_at_its_start(
    tmp_path: Path,
) -> None:
    limit_bytes = memory_limit_bytes()
    told = []
    for memory in (limit_bytes, limit_bytes + 1):
        with structlog.testing.capture_logs() as logs:
            async with (
                serving() as peer,
                prover_on(peer, tmp_path, ReferenceBackend(), memory=memory),
            ):
                await peer.session()
        told.append([line for line in logs if line["event"] == "prover.memory"])
    enough, (warning,) = told
    assert enough == []
    assert warning["log_level"] == "warning"
    assert (warning["memory_bytes"], warning["limit_bytes"]) == (limit_bytes + 1, limit_bytes)
    assert f"set [prover] memory below {format_size(limit_bytes)}" in warning["cure"]
