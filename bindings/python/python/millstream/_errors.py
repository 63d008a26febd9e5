"""The exceptions: one hierarchy, following the core's table of error kinds.

Every exception is an `Error`. It also derives from a matching built-in exception: an `OSError` with its `errno` for
system errors (a missing file is a `FileNotFoundError`), a `ValueError` for bad input."""

from __future__ import annotations

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
    #: The path of a value in a document: its keys, the outermost first.
    path: str | None = None
    found: str | None = None
    expected: str | None = None
    #: For writers: the number of bytes that the system has accepted with certainty.
    written: int | None = None
    #: The system's error number.
    errno: int | None = None
    #: For `read` and `columns`: the data before the error, as bytes or as a `Table`.
    partial: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns everything that pickle keeps: all but the cause and the traceback, which pickled exceptions lose."""
        kind = type(self)
        made_of = _made_of.get(kind)
        args = self.args
        if isinstance(self, OSError) and len(args) == 2:
            args = (*args, self.filename)
        return _rebuild, (made_of or kind, made_of is not None, args), self.__dict__


class CommandFailed(Error):
    """A command exited with a non-zero status or was killed by a signal. Everything it wrote was delivered."""

    argv: tuple[str, ...] = ()
    #: As in `subprocess`: negative for a signal; `None` if the system does not report it.
    status: int | None = None
    #: The last 4 KiB of its standard error.
    stderr_tail: bytes = b""


class FileError(Error, OSError):
    """The system refused something, or a file changed while it was read."""


class CommandNotStarted(FileError):
    """A command could not be started."""


class RecordTooLong(Error, ValueError):
    """A record is longer than `record_limit`. `Reader.skip_record` skips it."""


class FrameError(Error, ValueError):
    """The bytes are not records of the requested kind."""


class EncodingError(Error, ValueError):
    """The bytes are not text in the requested encoding. The cause is Python's own error."""


class DecodeError(Error, ValueError):
    """Compressed data is damaged, truncated, or exceeds a limit when it is decoded."""


class Stalled(Error, TimeoutError):
    """No data arrived, or none was accepted, for longer than `stall_timeout`."""


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
    "source_changed": FileError,
}

# Errors that also derive from a built-in exception, such as FileNotFoundError.
_combined: dict[tuple[type[Error], type[OSError]], type[Error]] = {}
# Maps each combined class to its Millstream class.
_made_of: dict[type[Error], type[Error]] = {}


def _as_pythons(ours: type[Error], errno: int) -> type[Error]:
    pythons = type(OSError(errno, ""))
    if pythons is OSError:
        return ours
    pair = (ours, pythons)
    if pair not in _combined:
        combined = type(ours.__name__, pair, {"__doc__": ours.__doc__, "__module__": "millstream"})
        _combined[pair], _made_of[combined] = combined, ours
    return _combined[pair]


def _rebuild(ours: type[Error], is_combined: bool, args: tuple[Any, ...]) -> Error:
    """Creates an error from a pickle."""
    return _as_pythons(ours, args[0])(*args) if is_combined else ours(*args)


def from_native(details: dict[str, Any], exception: type[Error] | None = None) -> Error:
    """Returns the exception for an error of the core."""
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
    """Returns the exception for a reader or writer that is in use."""
    return from_native(details, InUse)
