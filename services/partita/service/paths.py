"""Where the files of this machine's programs lie."""

from __future__ import annotations

import os
from pathlib import Path


class DataDirUnusableError(Exception):
    """The data directory cannot be read or written; the message names the file and says why.

    Args:
        data_dir: as it was configured.
        error: what the system said.
    """

    def __init__(self, data_dir: Path, error: OSError) -> None:
        super().__init__(
            f"data_dir = {data_dir} cannot be used: {error.filename or ''}: "
            f"{error.strerror}; make it writable, make room, or choose another"
        )


def default_data_dir() -> Path:
    """Return $PARTITA_DATA_DIR, else $XDG_DATA_HOME/partita, else ~/.local/share/partita."""
    if given := os.environ.get("PARTITA_DATA_DIR"):
        return Path(given)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "partita"
