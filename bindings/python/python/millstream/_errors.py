"""The exceptions: one hierarchy, following the core's table of error kinds.

Every exception is an `Error`. It also derives from a matching built-in exception: an `OSError` with its `errno` for
system errors (a missing file is a `FileNotFoundError`), `UnicodeDecodeError` for bad text, `EOFError` for input that
ends too early, and `ValueError` for other bad input."""

from __future__ import annotations

import errno as _errno
import os

# Type checkers take this as true. Importing `typing` for it takes milliseconds.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._kinds import ErrorKind


class Error(Exception):
    """An error from Millstream: what was found, what was expected, where, and what to do.

    Details that are unknown are `None`. `code` and `kind` are the same in every language."""

    code: int = 0
    kind: ErrorKind | Literal[""] = ""
    #: How to fix it.
    hint: str = ""
    #: The source or sink: a path, a command line, an address.
    name: str | None = None
    #: The position in the stream, in bytes from its start (after decoding).
    offset: int | None = None
    #: The number of the record; the first is 0.
    record: int | None = None
    #: The number of the line in a text; the first is 1. Known if all records up to this one are lines or those of CSV.
    line: int | None = None
    #: The column in the line, in bytes; the first is 1.
    column: int | None = None
    #: The path of a value in a document: its keys, the outermost first.
    path: str | None = None
    found: str | None = None
    expected: str | None = None
    #: For writers: the number of bytes that the system has accepted with certainty.
    written: int | None = None
    #: The system's error number.
    errno: int | None = None
    #: For `read`, `columns` and `collect`: the data before the error, as bytes, a `Table` or a list.
    partial: Any = None

    #: The message of errors whose built-in class would print less.
    _message: str | None = None

    def __str__(self) -> str:
        return self._message or super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns everything that pickle keeps: all but the cause and the traceback, which pickled exceptions lose."""
        kind = type(self)
        args = self.args
        if isinstance(self, OSError) and len(args) == 2:
            args = (*args, self.filename)
        return _rebuild, (*_made_of.get(kind, (kind, None)), args), self.__dict__


class FileError(Error, OSError):
    """The system or a server refused something or failed, or a file or an object changed while it was read."""


class CommandNotStarted(FileError):
    """A command could not be started."""


class RecordTooLong(Error, ValueError):
    """A record is longer than `record_limit`. `Reader.skip_record` skips it."""


class FrameError(Error, ValueError):
    """The bytes are not records of the requested kind."""


class EncodingError(Error, UnicodeDecodeError):
    """The bytes are not text in the requested encoding.

    As in `UnicodeDecodeError`, `object` has the bytes that were decoded, for example the record, and `start` and `end`
    are positions in them. `object` is empty if only the position in the stream, `offset`, is known."""


class DecodeError(Error, ValueError):
    """Compressed data is damaged, truncated, or exceeds a limit when it is decoded."""


class Stalled(Error, TimeoutError):
    """No data arrived, or none was accepted, for longer than `stall_timeout`."""


class TimedOut(Error, TimeoutError):
    """Reading took longer than `total_timeout`. Everything read before was delivered."""


class Cancelled(Error):
    """Another thread called `cancel`. No data is lost: the next call continues."""


class Closed(Error, ValueError):
    """The reader or writer is closed, has failed earlier, or was opened by another process."""


class InUse(Closed):
    """Another thread, or the reader's own source, is using the reader or writer."""


class OptionError(Error, ValueError):
    """An invalid option or argument."""


class Unsupported(Error, NotImplementedError):
    """This build or platform does not support the operation."""


class NumberError(Error, ValueError):
    """A number was expected, but something else, or nothing, was found."""


class DocumentError(Error, ValueError):
    """The bytes are not a BSON document, or the document does not have the requested shape."""


class DocumentKeyError(DocumentError, KeyError):
    """A document has no such member."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TooMuchMemory(Error, MemoryError):
    """Continuing would take more memory than allowed."""


class StageFailed(Error):
    """A function of a pipe raised an exception, which is the `__cause__`. Earlier results were passed on."""


class InternalError(Error, RuntimeError):
    """An internal error. Please report this message as a bug."""


_CLASSES: dict[ErrorKind, type[Error]] = {
    "io": FileError,
    "open_failed": FileError,
    "command_not_started": CommandNotStarted,
    "command_status_unknown": FileError,
    "record_too_long": RecordTooLong,
    "frame_truncated": FrameError,
    "length_invalid": FrameError,
    "utf8_invalid": EncodingError,
    "decode_damaged": DecodeError,
    "decode_truncated": DecodeError,
    "decode_limit": DecodeError,
    "stalled": Stalled,
    "timed_out": TimedOut,
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
    "source_changed": FileError,
    "remote_failed": FileError,
    "outcome_unknown": FileError,
    "already_exists": FileError,
}

# Kinds whose errors also derive from another built-in exception.
_ALSO: dict[ErrorKind, type[Exception]] = {
    "decode_truncated": EOFError,
    "document_truncated": EOFError,
    "frame_truncated": EOFError,
    "source_shrank": EOFError,
    "already_exists": FileExistsError,
}

# Classes that also derive from a built-in exception that only some of their errors have, such as FileNotFoundError.
_combined: dict[tuple[type[Error], type[Exception]], type[Error]] = {}
# Maps each combined class to its Millstream class and the built-in one.
_made_of: dict[type[Error], tuple[type[Error], type[Exception]]] = {}


def _combine(ours: type[Error], pythons: type[Exception] | None) -> type[Error]:
    if pythons is None or issubclass(ours, pythons):
        return ours
    pair = (ours, pythons)
    if pair not in _combined:
        combined = type(ours.__name__, pair, {"__doc__": ours.__doc__, "__module__": "millstream"})
        _combined[pair], _made_of[combined] = combined, pair
    return _combined[pair]


def _rebuild(ours: type[Error], pythons: type[Exception] | None, args: tuple[Any, ...]) -> Error:
    """Creates an error from a pickle."""
    return _combine(ours, pythons)(*args)


def _command_failed() -> type[Error]:
    # It derives from a class of `subprocess`, which takes longer to import than this package.
    from ._command import CommandFailed

    return CommandFailed


def from_native(
    details: dict[str, Any], exception: type[Error] | None = None, text: UnicodeDecodeError | None = None
) -> Error:
    """Returns the exception for an error of the core; `text` is Python's exception for bytes that are not text."""
    message, kind, errno = details.pop("message"), details["kind"], details["errno"]
    ours = exception or (_command_failed() if kind == "command_failed" else _CLASSES.get(kind, Error))
    if errno is None and kind == "broken_pipe":
        errno = details["errno"] = _errno.EPIPE
    args: tuple[Any, ...] = (message,)
    also = _ALSO.get(kind)
    if issubclass(ours, OSError) and errno is not None:
        args = (errno, os.strerror(errno), details["name"])
        # Python chooses the class by the number.
        also = type(OSError(errno, ""))
    elif issubclass(ours, UnicodeDecodeError):
        args = text.args if text else ("utf-8", b"", 0, 0, message)
        details["_message"] = message
    elif kind == "command_failed":
        args = (details.pop("status"), details.pop("argv"), None, details.pop("stderr_tail"))
        details["_message"] = message
    error = _combine(ours, also)(*args)
    for name, value in details.items():
        setattr(error, name, value)
    error.add_note(message) if str(error) != message else None
    return error


def in_use(details: dict[str, Any]) -> Error:
    """Returns the exception for a reader or writer that is in use."""
    return from_native(details, InUse)
