"""Streams of records at machine speed, never losing one silently.

import millstream

for line in millstream.command(["samtools", "view", "-h", path]):
    ...
# Here the command has succeeded. Had it failed, the loop would have raised behind its last line.
"""

import io as _io

from ._errors import (
    Cancelled,
    Closed,
    CommandEnd,
    CommandFailed,
    CommandNotStarted,
    DecodeError,
    DocumentError,
    DocumentKeyError,
    EncodingError,
    Error,
    FileError,
    FrameError,
    InternalError,
    InUse,
    NumberError,
    OptionError,
    RecordTooLong,
    StageFailed,
    Stalled,
    TooMuchMemory,
    Unsupported,
)
from ._native import Batch, Framer, Reader, Table, Writer, WriterEnd, __version__
from ._open import command, from_bytes, from_callable, from_fd, from_file, open, pipeline, shell, stdin, tcp
from ._pipe.chain import Pipe
from ._pipe.parallel import parallel
from ._pipe.pipe import pipe
from ._pipe.sink import Sink, collect, count, fold, for_each
from ._pipe.source import merge
from ._pipe.stage import Stage, batch, filter, flat_map, inspect, map, scan_state, skip, take, tee
from ._pipe.summary import StageStats, Summary

# They are what the abstract classes ask for, and csv, pandas and others look for those.
_io.BufferedIOBase.register(Reader)

__all__ = [
    "Batch",
    "Cancelled",
    "Closed",
    "CommandEnd",
    "CommandFailed",
    "CommandNotStarted",
    "DecodeError",
    "DocumentError",
    "DocumentKeyError",
    "EncodingError",
    "Error",
    "FileError",
    "FrameError",
    "Framer",
    "InUse",
    "InternalError",
    "NumberError",
    "OptionError",
    "Pipe",
    "Reader",
    "RecordTooLong",
    "Sink",
    "Stage",
    "StageFailed",
    "StageStats",
    "Stalled",
    "Summary",
    "Table",
    "TooMuchMemory",
    "Unsupported",
    "Writer",
    "WriterEnd",
    "__version__",
    "batch",
    "collect",
    "command",
    "count",
    "filter",
    "flat_map",
    "fold",
    "for_each",
    "from_bytes",
    "from_callable",
    "from_fd",
    "from_file",
    "inspect",
    "map",
    "merge",
    "open",
    "parallel",
    "pipe",
    "pipeline",
    "scan_state",
    "shell",
    "skip",
    "stdin",
    "take",
    "tcp",
    "tee",
]
