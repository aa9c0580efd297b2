"""What a prover's process gives back to the system."""

from __future__ import annotations

import subprocess
import sys

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
