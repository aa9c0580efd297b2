"""Runs a program that ends with its parent: `python child.py PARENT_PID PROGRAM ARGUMENT...`.

Started as a script, so that it needs nothing of the package. Linux kills the process when the
parent dies (prctl(2), PR_SET_PDEATHSIG), which survives the exec that follows. Whoever is killed
in this way loses nothing: scheduler and provers expect it at any moment.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent = int(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
