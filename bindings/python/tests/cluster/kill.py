"""Kills processes once, as a machine that fails would, and ends the jobs of drivers that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def once(table: Any, marker: str) -> Any:
    """Returns the table, but the first call with it kills the process instead."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return table
    os.kill(os.getpid(), signal.SIGKILL)
    return None


class Output:
    """An output that does what another one does."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def write(self, task: int, tables: Any) -> Any:
        return self.output.write(task, tables)

    def commit(self, parts: Any) -> None:
        self.output.commit(parts)

    @property
    def job(self) -> Any:
        return self.output.job


class AfterWriting(Output):
    """Kills the process of one task after its part is complete, but before it is reported."""

    def __init__(self, output: Any, marker: str) -> None:
        super().__init__(output)
        self.marker = marker

    def write(self, task: int, tables: Any) -> Any:
        return once(super().write(task, tables), self.marker)


class WhileCommitting(Output):
    """Kills the driver before the manifest, or after it, when all parts but the last are visible."""

    def __init__(self, output: Any, when: str, group: int) -> None:
        super().__init__(output)
        self.when = when
        #: The group of processes of the driver.
        self.group = group

    def commit(self, parts: Any) -> None:
        parts = list(parts)
        if self.when == "after":
            last = os.path.join(self.job.directory, max(part.name for part in parts))
            os.mkdir(last)
            try:
                super().commit(parts)
            except OSError:
                os.rmdir(last)
        os.killpg(self.group, signal.SIGKILL)


def end(action: str, directory: Path) -> tuple[str, str]:
    """Runs `millstream commit`, and returns what it prints and its error, one of which is empty."""
    command = [sys.executable, "-m", "millstream", "commit", action, str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode == 0) == bool(ended.stdout) == (not ended.stderr), ended
    return ended.stdout, ended.stderr
