"""`python -m partita.scheduler`: one scheduler until it is told to stop.

Exit codes: 0 after SIGTERM or SIGINT, 2 for a wrong configuration, an address or data directory
that is in use or a store that cannot be read, 70 if the scheduler found a fault in itself, 143
after a second signal.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from partita.scheduler.app import run
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.store import (
    DataDirInUseError,
    DataDirUnusableError,
    StoreError,
    StoreUnreadableError,
)
from partita.service import logs
from partita.service.config import ConfigError, load, read_file
from partita.service.grpcio import AddressInUseError


def main(arguments: list[str] | None = None) -> int:
    """Run with command line arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m partita.scheduler", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML file with a table [scheduler]")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--listen")
    parser.add_argument("--prover-listen")
    parser.add_argument("--metrics-listen")
    parser.add_argument("--log-level")
    given = parser.parse_args(arguments)
    try:
        tables = read_file(given.config) if given.config else {}
        config = load(
            SchedulerConfig,
            tables.get("scheduler", {}),
            str(given.config or "command line"),
            data_dir=given.data_dir,
            listen=given.listen,
            prover_listen=given.prover_listen,
            metrics_listen=given.metrics_listen,
            log_level=given.log_level,
        )
        logs.configure(level=config.log_level)
        return asyncio.run(run(config))
    except (
        ConfigError,
        DataDirInUseError,
        DataDirUnusableError,
        AddressInUseError,
        StoreError,
        StoreUnreadableError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
