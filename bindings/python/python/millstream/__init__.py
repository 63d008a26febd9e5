"""Reads and writes streams of records fast, and never loses data silently.

import millstream

for line in millstream.command(["samtools", "view", "-h", path]):
    ...
# Here the command has succeeded. If it had failed, the loop would have raised an error after the last line.
"""

import io as _io
import os as _os
from _collections_abc import Sequence as _Sequence

from ._errors import (
    Cancelled,
    Closed,
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
    TimedOut,
    TooMuchMemory,
    Unsupported,
)
from ._native import (
    Batch,
    Columns,
    Framer,
    Job,
    Part,
    PartWriter,
    Reader,
    Remote,
    Split,
    Splits,
    Table,
    Writer,
    WriterEnd,
    __version__,
)
from ._native import BinaryReader as _BinaryReader
from ._native import TextReader as _TextReader
from ._native import forked as _forked
from ._open import command, from_bytes, from_callback, from_fd, from_file, open_split, pipeline, shell, stdin, tcp
from ._open import open as open

# The rest is imported when it is first used, because it needs modules of the standard library that take longer to
# import than everything else here: typing, dataclasses, concurrent.futures and multiprocessing. Type checkers take
# this constant as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import aio as aio
    from . import bson as bson
    from ._columns import columns
    from ._command import CommandEnd, CommandFailed
    from ._kinds import ErrorKind
    from ._pipe.chain import Pipe
    from ._pipe.parallel import parallel
    from ._pipe.pipe import pipe
    from ._pipe.sink import Sink, collect, count, fold, for_each
    from ._pipe.source import merge
    from ._pipe.stage import Stage, batch, flat_map, inspect, scan_state, skip, take, tee
    from ._pipe.stage import filter as filter
    from ._pipe.stage import map as map
    from ._pipe.summary import StageStats, Summary
    from ._pipe.through import through
else:
    _LATE = {
        None: ["aio", "bson"],
        "_columns": ["columns"],
        "_command": ["CommandEnd", "CommandFailed"],
        "_kinds": ["ErrorKind"],
        "_pipe.chain": ["Pipe"],
        "_pipe.parallel": ["parallel"],
        "_pipe.pipe": ["pipe"],
        "_pipe.sink": ["Sink", "collect", "count", "fold", "for_each"],
        "_pipe.source": ["merge"],
        "_pipe.stage": ["Stage", "batch", "flat_map", "inspect", "scan_state", "skip", "take", "tee", "filter", "map"],
        "_pipe.summary": ["StageStats", "Summary"],
        "_pipe.through": ["through"],
    }
    _MODULES = {name: module for module, names in _LATE.items() for name in names}

    def __getattr__(name):
        import importlib
        import sys

        if name not in _MODULES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[__name__])
        module = importlib.import_module(f"{__name__}.{_MODULES[name] or name}")
        value = getattr(module, name) if _MODULES[name] else module
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_MODULES})


# The abstract classes of `io` require these methods; csv, pandas and others check for the classes.
_io.BufferedIOBase.register(_BinaryReader)
_io.TextIOBase.register(_TextReader)
_Sequence.register(Batch)  # pyright: ignore[reportAttributeAccessIssue]
_Sequence.register(Splits)  # pyright: ignore[reportAttributeAccessIssue]
# Readers and writers belong to the process that opened them.
_os.register_at_fork(after_in_child=_forked)

# `open`, `map` and `filter` are left out: `from millstream import *` must not replace Python's own functions.
__all__ = [
    "Batch",
    "Cancelled",
    "Closed",
    "Columns",
    "CommandEnd",
    "CommandFailed",
    "CommandNotStarted",
    "DecodeError",
    "DocumentError",
    "DocumentKeyError",
    "EncodingError",
    "Error",
    "ErrorKind",
    "FileError",
    "FrameError",
    "Framer",
    "InUse",
    "InternalError",
    "Job",
    "NumberError",
    "OptionError",
    "Part",
    "PartWriter",
    "Pipe",
    "Reader",
    "RecordTooLong",
    "Remote",
    "Sink",
    "Split",
    "Splits",
    "Stage",
    "StageFailed",
    "StageStats",
    "Stalled",
    "Summary",
    "Table",
    "TimedOut",
    "TooMuchMemory",
    "Unsupported",
    "Writer",
    "WriterEnd",
    "__version__",
    "batch",
    "collect",
    "columns",
    "command",
    "count",
    "flat_map",
    "fold",
    "for_each",
    "from_bytes",
    "from_callback",
    "from_fd",
    "from_file",
    "inspect",
    "merge",
    "open_split",
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
    "through",
]
