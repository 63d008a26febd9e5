"""Two attempts of a task at the same time, as engines make them if they take a slow worker for a dead one."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: Seconds after which an attempt that is alone fails.
LIMIT = 60


class AtOnce:
    """An output of two attempts of one task. Each has begun its part, and waits until the other one has, too."""

    def __init__(self, output: Any, place: Path) -> None:
        self.output = output
        #: Each attempt leaves a file here.
        self.place = str(place)

    def write(self, task: int, tables: Iterable[Any]) -> Any:
        return self.output.write(task, self._together(iter(tables)))

    def _together(self, tables: Iterator[Any]) -> Iterator[Any]:
        yield next(tables)
        # The first rows are written.
        Path(self.place, uuid.uuid4().hex).touch()
        end = time.monotonic() + LIMIT
        while len(os.listdir(self.place)) < 2:
            if time.monotonic() > end:
                raise TimeoutError("the other attempt has not begun")
            time.sleep(0.01)
        yield from tables
