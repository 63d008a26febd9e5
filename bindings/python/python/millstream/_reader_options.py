"""The options of readers and of readers of commands, for type checkers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any

from ._native import Framer
from ._options import CommandSettings, ReaderSettings, Stderr, Stdin
from ._types import Progress


class ReaderOptions(ReaderSettings, total=False):
    """The options of a reader: those of the library, and these."""

    #: How a codec handles bytes that are not text: `"strict"`, `"replace"`, …
    errors: str
    #: How records are found: lines by default.
    framer: Framer | None
    #: Records end with this instead.
    delimiter: bytes | str | int | None
    #: Whether records include their delimiter. By default only lines of text in an iteration do.
    keep_delimiter: bool
    #: A tqdm bar, or a function of bytes read, total bytes (or `None`) and records, which is called while it reads.
    observer: Progress | None
    #: How often, in seconds: 0.1 by default.
    observer_interval: float


class CommandOptions(ReaderOptions, CommandSettings, total=False):
    """The options of a reader of commands: those of a reader, those of the library for commands, and these."""

    current_dir: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    #: `"null"`: nothing. `"inherit"`: that of this process. Or the bytes themselves, or a file.
    stdin: Stdin | bytes | int | IO[Any]
    #: `"forward"`: shown live, and its last lines kept for the error. `"capture"`: only kept.
    stderr: Stderr
    #: Whether every exit status and every signal is a success.
    allow_failure: bool
