"""What can go wrong: one hierarchy, by the kinds of the core's one table.

Every exception is an `Error`. Where Python has a word for it, it is that too: an `OSError` with its `errno` for what
the system said (a missing file is a `FileNotFoundError`), a `ValueError` for bad input.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


class Error(Exception):
    """What Millstream raises: what was found, what was expected, where, and what to do.

    What is not known is `None`. `code` and `kind` are the same in every language.
    """

    code: int = 0
    kind: str = ""
    #: What the user can do about it.
    hint: str = ""
    #: The source or sink: a path, a command line, an address.
    name: str | None = None
    #: Where in the stream, in bytes from its start (after decoding).
    offset: int | None = None
    #: Which record; the first is 0.
    record: int | None = None
    #: Which value in a document: its keys from the outermost on.
    path: str | None = None
    found: str | None = None
    expected: str | None = None
    #: Of a writer: how many bytes the system has taken for certain.
    written: int | None = None
    #: The system's error number.
    errno: int | None = None
    #: Of `read` and `columns`: what came before the error, as bytes or as a `Table`.
    partial: Any = None


class CommandFailed(Error):
    """A command exited with a status other than 0, or died by a signal. All it wrote was delivered."""

    argv: tuple[str, ...] = ()
    #: As `subprocess` has it: negative for a signal; `None` if the system would not say.
    status: int | None = None
    #: The last 4 KiB of its standard error.
    stderr: bytes = b""


class FileError(Error, OSError):
    """The system refused something, or said that a file is not what it was."""


class CommandNotStarted(FileError):
    """A command could not be started."""


class RecordTooLong(Error, ValueError):
    """A record is longer than `record_limit`. `Reader.skip_record` gets over it."""


class FrameError(Error, ValueError):
    """Bytes that are no records of that kind."""


class EncodingError(Error, ValueError):
    """Bytes that are no text in the encoding asked for. The cause is Python's own error."""


class DecodeError(Error, ValueError):
    """Compressed data that is damaged, cut short, or grows beyond a limit."""


class Stalled(Error, TimeoutError):
    """Nothing arrived, or nothing was taken, for longer than `stall_timeout`."""


class Cancelled(Error):
    """`cancel` was called by another thread. Nothing is lost: the next call goes on."""


class Closed(Error, ValueError):
    """It is closed, or gave up after an earlier error."""


class InUse(Closed):
    """Another thread, or its own source, has a call that has not returned."""


class OptionError(Error, ValueError):
    """An option or an argument that cannot be."""


class Unsupported(Error, NotImplementedError):
    """This build or system cannot do that."""


class NumberError(Error, ValueError):
    """Where a number should be there is something else, or nothing."""


class DocumentError(Error, ValueError):
    """Bytes that are no BSON document, or none of the shape asked for."""


class DocumentKeyError(DocumentError, KeyError):
    """A document has no such member."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TooMuchMemory(Error, MemoryError):
    """Going on would take more memory than allowed."""


class StageFailed(Error):
    """A function of a pipe raised. The exception is its `__cause__`; what came before has been passed on."""


class InternalError(Error, RuntimeError):
    """It should not happen: please report it with the message."""


_CLASSES: dict[str, type[Error]] = {
    "io": FileError,
    "open_failed": FileError,
    "command_not_started": CommandNotStarted,
    "command_failed": CommandFailed,
    "command_status_unknown": FileError,
    "record_too_long": RecordTooLong,
    "frame_truncated": FrameError,
    "length_invalid": FrameError,
    "utf8_invalid": EncodingError,
    "decode_damaged": DecodeError,
    "decode_truncated": DecodeError,
    "decode_limit": DecodeError,
    "stalled": Stalled,
    "cancelled": Cancelled,
    "source_shrank": FileError,
    "broken_pipe": FileError,
    "invalid_option": OptionError,
    "unsupported": Unsupported,
    "closed": Closed,
    "internal": InternalError,
    "number_invalid": NumberError,
    "number_overflow": NumberError,
    "value_missing": NumberError,
    "argument_invalid": OptionError,
    "document_invalid": DocumentError,
    "document_truncated": DocumentError,
    "too_deep": DocumentError,
    "key_missing": DocumentKeyError,
    "shape_mismatch": DocumentError,
    "value_out_of_range": DocumentError,
    "text_invalid": DocumentError,
    "julia_invalid": DocumentError,
    "memory_limit": TooMuchMemory,
    "stage_panicked": StageFailed,
    "stage_failed": StageFailed,
}

# What is both one of ours and one of Python's, such as a FileNotFoundError.
_combined: dict[tuple[type[Error], type[OSError]], type[Error]] = {}


def _as_pythons(ours: type[Error], errno: int) -> type[Error]:
    pythons = type(OSError(errno, ""))
    if pythons is OSError:
        return ours
    pair = (ours, pythons)
    if pair not in _combined:
        _combined[pair] = type(ours.__name__, pair, {"__doc__": ours.__doc__, "__module__": "millstream"})
    return _combined[pair]


def from_native(details: dict[str, Any], exception: type[Error] | None = None) -> Error:
    """The exception for what the core says of an error."""
    message = details.pop("message")
    ours = exception or _CLASSES.get(details["kind"], Error)
    errno = details["errno"]
    if errno is None and details["kind"] == "broken_pipe":
        errno = 32
    error: Error
    if issubclass(ours, OSError) and errno is not None:
        error = _as_pythons(ours, errno)(errno, os.strerror(errno), details["name"])
        details["errno"] = errno
    else:
        error = ours(message)
    for name, value in details.items():
        setattr(error, name, value)
    error.add_note(message) if str(error) != message else None
    return error


def in_use(details: dict[str, Any]) -> Error:
    """The exception for a reader or writer that is in use."""
    return from_native(details, InUse)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    argv: tuple[str, ...]
    #: As `subprocess` has it: negative for a signal; `None` if the system would not say.
    status: int | None
    #: The last 4 KiB of its standard error, where that was ours to see.
    stderr: bytes


def command_end(argv: tuple[str, ...], status: int | None, stderr: bytes) -> CommandEnd:
    """How a command ended, from what the core says."""
    return CommandEnd(argv, status, stderr)
