"""A function that kills its process once, as a machine that fails would."""

from __future__ import annotations

import os
import signal
from typing import Any


def once(table: Any, marker: str) -> Any:
    """Returns the table, but the first call with it kills the process instead."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return table
    os.kill(os.getpid(), signal.SIGKILL)
    return None
