"""Kills processes once, as a machine that fails would."""

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


class AfterWriting:
    """An output that kills the process of one task after its part is complete, but before it is reported."""

    def __init__(self, output: Any, marker: str) -> None:
        self.output = output
        self.marker = marker

    def write(self, task: int, tables: Any) -> Any:
        return once(self.output.write(task, tables), self.marker)

    def commit(self, parts: Any) -> None:
        self.output.commit(parts)

    @property
    def job(self) -> Any:
        return self.output.job


class WhileCommitting:
    """An output whose driver is killed before the manifest, or after it, when all parts but the last are visible."""

    def __init__(self, output: Any, when: str, group: int) -> None:
        self.output = output
        self.when = when
        #: The group of processes of the driver.
        self.group = group

    def write(self, task: int, tables: Any) -> Any:
        return self.output.write(task, tables)

    def commit(self, parts: Any) -> None:
        parts = list(parts)
        if self.when == "after":
            last = os.path.join(self.output.job.directory, max(part.name for part in parts))
            os.mkdir(last)
            try:
                self.output.commit(parts)
            except OSError:
                os.rmdir(last)
        os.killpg(self.group, signal.SIGKILL)

    @property
    def job(self) -> Any:
        return self.output.job
