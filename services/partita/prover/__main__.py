"""`python -m partita.prover`: a prover from a file, the environment or defaults.

Exit codes: 0 drained, 2 for a wrong configuration or an address that is in use, 70 after a fault
of the device or of the prover itself, 143 after a second SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from partita.prover.app import main
from partita.prover.config import ProverConfig
from partita.service import logs
from partita.service.config import ConfigError, load_file
from partita.service.grpcio import AddressInUseError
from partita.service.paths import DataDirUnusableError

EXIT_USAGE = 2


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m partita.prover", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML file with a table [prover]")
    parser.add_argument("--json", action="store_true", help="when ready, print one JSON object")
    given = parser.parse_args()
    path: Path | None = given.config
    try:
        config = load_file(ProverConfig, path)
        logs.configure(level=config.log_level)

        def ready(address: str) -> None:
            value = {
                "prover_id": config.prover_id,
                "address": address,
                "schedulers": list(config.schedulers),
                "pid": os.getpid(),
                "data_dir": str(config.data_dir.absolute()),
            }
            text = (
                f"ready: prover {config.prover_id} at {address}, for the scheduler at "
                f"{' or '.join(config.schedulers)}, data in {config.data_dir.absolute()}"
            )
            print(json.dumps(value) if given.json else text, flush=True)

        return main(config, ready=ready)
    except (ConfigError, AddressInUseError, DataDirUnusableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(_main())
