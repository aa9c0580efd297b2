"""`python -m partita.scheduler`: one scheduler until it is told to stop.

Exit codes: 0 after SIGTERM or SIGINT, 2 for a wrong configuration, an address or data directory
that is in use or a store that cannot be read, 70 if the scheduler found a fault in itself, 143
after a second signal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from partita.scheduler.app import Addresses, run
from partita.scheduler.config import SchedulerConfig
from partita.scheduler.store import (
    DataDirInUseError,
    StoreError,
    StoreUnreadableError,
)
from partita.service import logs
from partita.service.config import ConfigError, load, read_file
from partita.service.grpcio import AddressInUseError
from partita.service.paths import DataDirUnusableError


def main(arguments: list[str] | None = None) -> int:
    """Run with command line arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m partita.scheduler", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML file with a table [scheduler]")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--listen")
    parser.add_argument("--prover-listen")
    parser.add_argument("--metrics-listen")
    parser.add_argument("--log-level")
    parser.add_argument("--json", action="store_true", help="when ready, print one JSON object")
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

        def ready(addresses: Addresses) -> None:
            value = {
                "scheduler": addresses.client,
                "prover_listen": addresses.prover,
                "metrics_listen": addresses.metrics,
                "pid": os.getpid(),
                "data_dir": str(config.data_dir.absolute()),
            }
            text = (
                f"ready: scheduler at {addresses.client}, for provers at {addresses.prover}, "
                f"data in {config.data_dir.absolute()}"
            )
            print(json.dumps(value) if given.json else text, flush=True)

        return asyncio.run(run(config, ready))
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
