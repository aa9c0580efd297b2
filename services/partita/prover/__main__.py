"""`python -m partita.prover [CONFIG.toml]`: a prover from a file, the environment or defaults."""

from __future__ import annotations

import sys
from pathlib import Path

from partita.prover.app import main
from partita.prover.config import ProverConfig
from partita.service import logs
from partita.service.config import ConfigError, load, read_file
from partita.service.grpcio import AddressInUseError

EXIT_USAGE = 2
_TABLES = {"scheduler", "prover", "gateway"}


def _main() -> int:
    try:
        source = sys.argv[1] if len(sys.argv) > 1 else ""
        tables = read_file(Path(source), _TABLES) if source else {}
        config = load(ProverConfig, tables.get("prover", {}), source or "defaults")
        logs.configure(level=config.log_level)
        return main(config)
    except (ConfigError, AddressInUseError) as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(_main())
