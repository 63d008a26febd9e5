"""Opening: one function for each kind of source.

They take the options of a reader as keywords; see `ReaderOptions` and `CommandOptions` for all of them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Literal, TypedDict, Unpack, overload

from ._native import Framer, Reader
from ._progress import hook
from ._types import Argument, Buffer, Progress, Readable


class ReaderOptions(TypedDict, total=False):
    """The options of a reader."""

    #: How a codec meets bytes that are no text: `"strict"`, `"replace"`, …
    errors: str
    #: How records are found: lines, unless told otherwise.
    framer: Framer | None
    #: Records end with this instead.
    delimiter: bytes | str | int | None
    #: Whether a record has its delimiter at its end.
    keep_delimiter: bool
    #: The longest record, in bytes: 64 MiB unless told otherwise.
    record_limit: int
    #: The buffer's size at first, in bytes.
    capacity: int
    #: Whether a thread reads ahead while Python works.
    read_ahead: Literal["auto", "on", "off"]
    #: Whether a read of a fast pipe may be put off by up to 0.3 ms, so that it gets more.
    latency: Literal["normal", "low"]
    #: Whether what is compressed (gzip, bgzf, zstd) is recognised and decoded.
    decode: Literal["auto", "off"]
    #: How many decoded bytes there may be, and how many for a compressed one.
    decode_limit: int
    decode_ratio: int
    #: How many seconds a source may deliver nothing.
    stall_timeout: float
    #: What errors call the source.
    name: str
    #: A tqdm bar, or a function of bytes read, bytes in all (or `None`) and records.
    progress: Progress | None
    progress_interval: float


class FileOptions(ReaderOptions, total=False):
    """The options of a reader of files."""

    #: Whether the reader waits for the file to grow.
    follow: bool


class CommandOptions(ReaderOptions, total=False):
    """The options of a reader of commands."""

    cwd: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    #: `"ignore"`, `"inherit"`, the bytes themselves, or a file.
    stdin: Literal["ignore", "inherit"] | bytes | int | IO[Any]
    #: `"forward"`: shown live, and its end kept for the error. `"capture"`: only the latter.
    stderr: Literal["forward", "capture", "inherit", "ignore"]
    #: Whether a status other than 0 is no error.
    allow_failure: bool


def _prepare(options: Any) -> dict[str, Any]:
    prepared = dict(options)
    progress = prepared.get("progress")
    if progress is not None:
        prepared["progress"] = hook(progress)
    stdin = prepared.get("stdin")
    if stdin is not None and hasattr(stdin, "fileno"):
        prepared["stdin"] = stdin.fileno()
    return prepared


@overload
def open(
    path: str | bytes | os.PathLike[str], *, encoding: None = None, **options: Unpack[FileOptions]
) -> Reader[bytes]: ...
@overload
def open(path: str | bytes | os.PathLike[str], *, encoding: str, **options: Unpack[FileOptions]) -> Reader[str]: ...
def open(
    path: str | bytes | os.PathLike[str], *, encoding: str | None = None, **options: Unpack[FileOptions]
) -> Reader[Any]:
    """Reads a file, FIFO or device, compressed or not."""
    return Reader.path(os.fsdecode(path), encoding=encoding, **_prepare(options))


@overload
def command(argv: Sequence[Argument], *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def command(argv: Sequence[Argument], *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def command(argv: Sequence[Argument], *, encoding: str | None = None, **options: Unpack[CommandOptions]) -> Reader[Any]:
    """Starts a command and reads what it writes to its standard output.

    The end of the iteration means that it exited with status 0. Otherwise `CommandFailed` is raised behind the last
    record.
    """
    return Reader.commands([_argv(argv)], encoding=encoding, **_prepare(options))


@overload
def pipeline(
    argvs: Iterable[Sequence[Argument]], *, encoding: None = None, **options: Unpack[CommandOptions]
) -> Reader[bytes]: ...
@overload
def pipeline(
    argvs: Iterable[Sequence[Argument]], *, encoding: str, **options: Unpack[CommandOptions]
) -> Reader[str]: ...
def pipeline(
    argvs: Iterable[Sequence[Argument]], *, encoding: str | None = None, **options: Unpack[CommandOptions]
) -> Reader[Any]:
    """Starts commands, each reading what the one before writes. Every command's status counts."""
    return Reader.commands([_argv(argv) for argv in argvs], encoding=encoding, **_prepare(options))


@overload
def shell(line: str, *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def shell(line: str, *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def shell(line: str, *, encoding: str | None = None, **options: Unpack[CommandOptions]) -> Reader[Any]:
    """Starts a line of bash, with `pipefail`. Never pass it what a user typed: `command` takes words as they are."""
    return Reader.shell(line, encoding=encoding, **_prepare(options))


@overload
def stdin(*, encoding: None = None, **options: Unpack[FileOptions]) -> Reader[bytes]: ...
@overload
def stdin(*, encoding: str, **options: Unpack[FileOptions]) -> Reader[str]: ...
def stdin(*, encoding: str | None = None, **options: Unpack[FileOptions]) -> Reader[Any]:
    """Reads standard input. What `sys.stdin` has read already is not in it."""
    return Reader.stdin(encoding=encoding, **_prepare(options))


@overload
def from_fd(fd: int, *, encoding: None = None, **options: Unpack[FileOptions]) -> Reader[bytes]: ...
@overload
def from_fd(fd: int, *, encoding: str, **options: Unpack[FileOptions]) -> Reader[str]: ...
def from_fd(fd: int, *, encoding: str | None = None, **options: Unpack[FileOptions]) -> Reader[Any]:
    """Reads a duplicate of a file descriptor, which stays open. They share their position."""
    return Reader.fd(fd, encoding=encoding, **_prepare(options))


@overload
def from_bytes(data: Buffer, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_bytes(data: Buffer, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_bytes(data: Buffer, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads memory: `bytes` as they lie, a copy of anything that can change."""
    return Reader.memory(data, encoding=encoding, **_prepare(options))


@overload
def from_file(file: Readable, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_file(file: Readable, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_file(file: Readable, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads any object that has `read1` or `read`, in binary mode. It is not closed."""
    read = getattr(file, "read1", None) or file.read
    return from_callable(read, encoding=encoding, **{"name": str(getattr(file, "name", file)), **options})  # type: ignore[call-overload, no-any-return]


@overload
def from_callable(
    read: Callable[[int], bytes | None], *, encoding: None = None, **options: Unpack[ReaderOptions]
) -> Reader[bytes]: ...
@overload
def from_callable(
    read: Callable[[int], bytes | None], *, encoding: str, **options: Unpack[ReaderOptions]
) -> Reader[str]: ...
def from_callable(
    read: Callable[[int], bytes | None], *, encoding: str | None = None, **options: Unpack[ReaderOptions]
) -> Reader[Any]:
    """Reads what a function returns, which is given a number of bytes; nothing is the end.

    It is called in the thread that reads. What it raises is raised there, behind the last record.
    """
    return Reader.callback(read, encoding=encoding, **_prepare(options))


@overload
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: None = None, **options: Unpack[ReaderOptions]
) -> Reader[bytes]: ...
@overload
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: str, **options: Unpack[ReaderOptions]
) -> Reader[str]: ...
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: str | None = None, **options: Unpack[ReaderOptions]
) -> Reader[Any]:
    """Connects to a TCP server and reads what it sends. `timeout` is for the connecting."""
    with socket.create_connection((host, port), timeout) as connection:
        connection.settimeout(None)
        return Reader.fd(connection.fileno(), encoding=encoding, **_prepare({"name": f"tcp:{host}:{port}", **options}))


def _argv(argv: Sequence[Argument]) -> list[str]:
    if isinstance(argv, (str, bytes)):
        raise TypeError("a command is a sequence of words, such as ['ls', '-l']; for a line of shell there is shell()")
    return [os.fsdecode(word) for word in argv]
