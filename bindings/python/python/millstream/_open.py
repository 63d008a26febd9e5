"""One function for each kind of source.

The functions accept the options of a reader as keywords, and the documentation of each lists them."""

from __future__ import annotations

import os

from ._docs import add_options
from ._native import Reader, Remote, Split, Writer, option_error

# Type checkers take this as true. Importing `typing` for it takes milliseconds.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Unpack, overload

    from ._reader_options import CommandOptions, ReaderOptions
    from ._types import Argument, Buffer, Location, Readable
else:

    def overload(function):
        return function


def _prepare(options: Any) -> dict[str, Any]:
    if not options:
        return {}
    prepared = dict(options)
    observer = prepared.get("observer")
    if observer is not None:
        from ._progress import hook

        prepared["observer"] = hook(observer)
    if "stdin" in prepared:
        from ._input import input_of

        prepared["stdin"] = input_of(prepared["stdin"])
    return prepared


@overload
def open(path: Location, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def open(path: Location, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def open(path: Location, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads a file, FIFO or device, or an object of a web server or store (see `Remote`), compressed or not.

    The end of an object means that all bytes of one version of it were delivered."""
    return Reader.path(path, encoding=encoding, **_prepare(options))


@overload
def open_split(split: Split | str, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def open_split(split: Split | str, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def open_split(split: Split | str, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads one split of a file or object: a `Split`, or its JSON. Its framer finds the records by default.

    If the file is not the one that was planned, that is a `FileError`. Offsets count from the start of the file; record
    numbers too if the plan knows them, and otherwise from the start of the split. The plan decides whether the file is
    decoded."""
    opened = Split.from_json(split) if isinstance(split, str) else split
    return Reader.split(opened, encoding=encoding, **_prepare(options))


@overload
def command(argv: Sequence[Argument], *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def command(argv: Sequence[Argument], *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def command(argv: Sequence[Argument], *, encoding: str | None = None, **options: Unpack[CommandOptions]) -> Reader[Any]:
    """Starts a command and reads its standard output.

    The end of the iteration means that it exited with status 0. Otherwise `CommandFailed` is raised after the last
    record."""
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
    """Starts commands, each of which reads the output of the previous one. All of them must succeed."""
    return Reader.commands([_argv(argv) for argv in argvs], encoding=encoding, **_prepare(options))


@overload
def shell(line: str, *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def shell(line: str, *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def shell(line: str, *, encoding: str | None = None, **options: Unpack[CommandOptions]) -> Reader[Any]:
    """Starts a shell line with bash and `pipefail`. Never pass it user input: `command` takes words unchanged."""
    return Reader.shell(line, encoding=encoding, **_prepare(options))


@overload
def stdin(*, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def stdin(*, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def stdin(*, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads standard input. Bytes that `sys.stdin` has already read are not included."""
    return Reader.stdin(encoding=encoding, **_prepare(options))


@overload
def from_fd(fd: int, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_fd(fd: int, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_fd(fd: int, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads a duplicate of a file descriptor; the original stays open. Both share the file position."""
    return Reader.fd(fd, encoding=encoding, **_prepare(options))


@overload
def from_bytes(data: Buffer, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_bytes(data: Buffer, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_bytes(data: Buffer, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads memory: `bytes` without a copy, a copy of anything mutable."""
    return Reader.memory(data, encoding=encoding, **_prepare(options))


@overload
def from_file(file: Readable, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_file(file: Readable, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_file(file: Readable, *, encoding: str | None = None, **options: Unpack[ReaderOptions]) -> Reader[Any]:
    """Reads any object that has `read1` or `read`, in binary mode. The object is not closed."""
    read = getattr(file, "read1", None) or getattr(file, "read", None)
    if read is None:
        raise TypeError(f"expected an object with read1() or read(), not {type(file).__name__}")
    return from_callback(read, encoding=encoding, **{"name": str(getattr(file, "name", file)), **options})  # type: ignore[call-overload, no-any-return]


@overload
def from_callback(
    read: Callable[[int], bytes | None], *, encoding: None = None, **options: Unpack[ReaderOptions]
) -> Reader[bytes]: ...
@overload
def from_callback(
    read: Callable[[int], bytes | None], *, encoding: str, **options: Unpack[ReaderOptions]
) -> Reader[str]: ...
def from_callback(
    read: Callable[[int], bytes | None], *, encoding: str | None = None, **options: Unpack[ReaderOptions]
) -> Reader[Any]:
    """Reads what a function returns when called with a number of bytes; an empty result is the end.

    The function is called on the thread that reads. Its exceptions are raised there, after the last record."""
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
    """Connects to a TCP server and reads the data that it sends. `timeout` applies to connecting."""
    import socket

    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 1 << 16:
        raise option_error(f"port={port!r}", "a number from 1 to 65535")
    if timeout is not None and not timeout > 0:
        raise option_error(f"timeout={timeout!r}", "seconds, more than 0")
    # Invalid options are reported before a connection is made.
    Reader.memory(b"", encoding=encoding, **_prepare(options)).close()
    with socket.create_connection((host, port), timeout) as connection:
        connection.settimeout(None)
        return Reader.fd(connection.fileno(), encoding=encoding, **_prepare({"name": f"tcp:{host}:{port}", **options}))


add_options([open, open_split, stdin, from_fd, from_bytes, from_file, from_callback, tcp], "reader")
add_options([command, pipeline, shell], "command", "reader")
add_options([Writer], "writer")
add_options([Remote], "remote")


def _argv(argv: Sequence[Argument]) -> list[str]:
    if isinstance(argv, (str, bytes)):
        raise TypeError("a command is a sequence of words, such as ['ls', '-l']; use shell() for a shell line")
    return [os.fsdecode(word) for word in argv]
