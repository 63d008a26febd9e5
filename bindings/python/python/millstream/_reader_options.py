"""The options of readers and of readers of commands, for type checkers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import IO, Any

from ._native import Framer
from ._options import CommandSettings, ReaderSettings, Stderr, Stdin
from ._types import Buffer, Progress


class ReaderOptions(ReaderSettings, total=False):
    """The options of a reader: those of the library, and these. `help(millstream.open)` has their meaning."""

    errors: str
    framer: Framer | None
    delimiter: bytes | str | int | None
    keep_delimiter: bool
    observer: Progress | None
    observer_interval: float


class CommandOptions(ReaderOptions, CommandSettings, total=False):
    """The options of a reader of commands: those of a reader, those of the library for commands, and these.
    `help(millstream.command)` has their meaning."""

    current_dir: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    stdin: Stdin | Buffer | int | IO[Any] | Iterable[bytes | str]
    stderr: Stderr
    allow_failure: bool
