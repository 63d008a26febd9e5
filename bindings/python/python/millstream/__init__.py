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
    "Reader",
    "RecordTooLong",
    "StageFailed",
    "Stalled",
    "Table",
    "TooMuchMemory",
    "Unsupported",
    "Writer",
    "WriterEnd",
    "__version__",
    "command",
    "from_bytes",
    "from_callable",
    "from_fd",
    "from_file",
    "open",
    "pipeline",
    "shell",
    "stdin",
    "tcp",
]
