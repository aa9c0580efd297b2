"""Where the files of this machine's programs lie."""

from __future__ import annotations

import os
from pathlib import Path


def default_data_dir() -> Path:
    """Return $PARTITA_DATA_DIR, else $XDG_DATA_HOME/partita, else ~/.local/share/partita."""
    if given := os.environ.get("PARTITA_DATA_DIR"):
        return Path(given)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "partita"
