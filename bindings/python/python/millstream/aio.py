"""Readers and writers for asyncio: those of the package, with calls that are awaited.

    async for line in millstream.aio.command(["samtools", "view", "-h", path]):
        ...

Each reader and writer has one thread, which makes the calls that may wait. Records do not cross from it one by one: the
thread fills the buffer, and the event loop takes the records that are in it. While there are some, other tasks run at
least once a millisecond. The thread does not fill the buffer before the program has taken all records in it, so memory
is bounded as without asyncio.

A task that is cancelled while it waits for a reader or writer ends it: its command is stopped, and a file that appears
only if it is complete does not appear. To limit a wait and continue after it, use a task and `asyncio.wait`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

from . import _native, _open
from ._docs import add_options
from ._native import Batch, Table, WriterEnd, state_error

if TYPE_CHECKING:
    from ._command import CommandEnd
    from ._native import ColumnType, CommandWriterOptions, Split
    from ._options import WriterSettings
    from ._reader_options import CommandOptions, ReaderOptions
    from ._types import Argument, Buffer, Location, Readable

__all__ = [
    "Reader",
    "Writer",
    "command",
    "from_bytes",
    "from_callback",
    "from_fd",
    "from_file",
    "open_split",
    "pipeline",
    "shell",
    "stdin",
    "tcp",
]

T = TypeVar("T", bytes, str)
R = TypeVar("R")
Native = TypeVar("Native", _native.Reader[Any], _native.Writer)

#: How long records are taken from the buffer before other tasks run, in seconds.
_TURN = 0.001
_END: Any = object()
_UNOPENED = "a reader or writer that was not opened"


class _Side(Generic[Native]):
    """A reader or writer and its thread, which ends when it is closed or collected."""

    def __init__(self, open: Callable[[], Native]) -> None:
        # The reader or writer, when the thread has opened it. The thread has no reference to this object.
        self._opened: list[Native] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._process = os.getpid()
        self.has_ended = False
        self.is_busy = False
        # When other tasks have run last.
        self.since = monotonic()
        self.thread = threading.Thread(
            target=_work, args=(open, self._opened, self._calls), name="millstream-asyncio", daemon=True
        )
        self.thread.start()
        _sides.add(self)

    @property
    def native(self) -> Native | None:
        return self._opened[0] if self._opened else None

    async def call(self, function: Callable[[Native], R]) -> R:
        """Makes a call on the thread. If it is cancelled, the reader or writer ends."""
        if self.is_busy or self.has_ended or self._process != os.getpid():
            raise state_error("in_use" if self.is_busy else "closed", self._name())
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self.is_busy = True
        self._calls.put((loop, future, function))
        try:
            return await future
        except asyncio.CancelledError:
            self.end(_discard, interrupt=True)
            raise
        finally:
            self.is_busy = False
            self.since = monotonic()
            # An exception refers to this frame, and must not refer to itself by it.
            del future

    async def yield_to_others(self) -> None:
        await asyncio.sleep(0)
        self.since = monotonic()

    def end(self, last: Callable[[Native], R], *, interrupt: bool) -> asyncio.Future[R] | None:
        """Makes the last call on the thread, which ends then, perhaps after interrupting another task's call. Returns
        nothing if it has been made before."""
        if self.has_ended or self._process != os.getpid():
            return None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        future.add_done_callback(_retrieve)
        self._finish((loop, future, last), interrupt=interrupt)
        return future

    async def wait_for_end(self) -> None:
        if self.thread.is_alive() and self._process == os.getpid():
            await asyncio.to_thread(self.thread.join)

    def _finish(self, *last: _Call, interrupt: bool) -> None:
        self.has_ended = True
        native = self.native
        # If no call is in progress, the next one is interrupted. What ends a reader or aborts a writer ignores that.
        if interrupt and native is not None:
            native.cancel()
        for call in (*last, None):
            self._calls.put(call)

    def __del__(self) -> None:
        if not self.has_ended and self._process == os.getpid():
            self._finish(interrupt=True)

    def _name(self) -> str:
        return self.native.name if self.native is not None else _UNOPENED


#: A call: the event loop, what its task waits for, and a function of the reader or writer.
_Call = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[Any], Any]]


def _work(open: Callable[[], Any], opened: list[Any], calls: SimpleQueue[_Call | None]) -> None:
    """What the thread does: it opens the reader or writer, and makes the calls."""
    native = raised = None
    try:
        native = open()
        opened.append(native)
    except BaseException as error:
        raised = error
    del open
    while (call := calls.get()) is not None:
        result = None
        if native is not None:
            try:
                result = call[2](native)
            except StopIteration as error:
                # A future refuses this exception.
                raised = RuntimeError("a function raised StopIteration")
                raised.__cause__ = error
            except BaseException as error:
                raised = error
        elif raised is None:
            # The first call has reported why it could not be opened.
            raised = state_error("closed", _UNOPENED)
        # RuntimeError: the event loop is closed, so no task waits.
        with suppress(RuntimeError):
            call[0].call_soon_threadsafe(_deliver, call[1], result, raised)
        # The next wait must not keep these: the exception refers to the frames of the task, and so to its reader.
        del call, result
        raised = None
    if native is not None:
        native._drop()


def _deliver(future: asyncio.Future[Any], result: Any, raised: BaseException | None) -> None:
    if future.done():
        return
    if raised is None:
        future.set_result(result)
    else:
        future.set_exception(raised)


def _retrieve(future: asyncio.Future[Any]) -> None:
    """A failure of the last call is reported to the task that waits for it, if there is one."""
    if not future.cancelled():
        future.exception()


def _discard(native: Any) -> None:
    native.abort() if isinstance(native, _native.Writer) else native.close()


_sides: weakref.WeakSet[_Side[Any]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Ends what is still open at the end of the program, so that no command is left."""
    sides = list(_sides)
    for side in sides:
        side.__del__()
    for side in sides:
        if side.native is not None:
            side.thread.join(10)


async def _close(side: _Side[Native], last: Callable[[Native], R], *, interrupt: bool = True) -> R | None:
    future = side.end(last, interrupt=interrupt)
    try:
        if future is not None:
            return await future
    finally:
        del future
    await side.wait_for_end()
    return None


class _Opened(Generic[Native]):
    """What readers and writers have in common."""

    def __init__(self, open: Callable[[], Native]) -> None:
        self._side: _Side[Native] = _Side(open)

    def __await__(self) -> Generator[Any, None, Self]:
        """Waits until it is open. Without it, the first call does."""
        yield from self._side.call(_nothing).__await__()
        return self

    async def __aenter__(self) -> Self:
        return await self

    @property
    def name(self) -> str:
        """The name of the source or sink in error messages; empty until it is open."""
        native = self._side.native
        return "" if native is None else native.name

    @property
    def closed(self) -> bool:
        """Whether it has been closed, or ended because a task was cancelled."""
        return self._side.has_ended

    def __repr__(self) -> str:
        return f"<millstream.aio.{type(self).__name__} {self.name!r}>"


def _nothing(_: object) -> None:
    pass


class Reader(_Opened[_native.Reader[Any]], Generic[T]):
    """Reads a source record by record: see `millstream.Reader`, which has the same methods without `await`.

    Iterate over it with `async for`. `async with` and `close` stop its command, and wait for that."""

    def __init__(self, open: Callable[[], _native.Reader[Any]]) -> None:
        super().__init__(open)
        self._records: AsyncGenerator[T, None] | None = None

    def __aiter__(self) -> AsyncIterator[T]:
        # A generator that has ended, perhaps with an error after which the reader continues, has no frame.
        if getattr(self._records, "ag_frame", None) is None:
            self._records = _records(self._side)
        assert self._records is not None
        return self._records

    def __anext__(self) -> Awaitable[T]:
        return self.__aiter__().__anext__()

    def batches(self, max_records: int | None = None) -> AsyncIterator[Batch[T]]:
        """Iterates over the results of `next_batch`."""
        return _batches(self._side, max_records)

    async def next_batch(self, max_records: int | None = None) -> Batch[T] | None:
        """The next records, as many as are available; `None` at the end."""
        return await self._side.call(lambda reader: reader.next_batch(max_records))

    async def count(self) -> int:
        """Counts the records up to the end, without creating them. The record limit does not apply."""
        return await self._side.call(lambda reader: reader.count())

    async def columns(
        self,
        sep: bytes | str | int,
        types: Mapping[str, ColumnType] | Sequence[ColumnType],
        *,
        missing: str | None = None,
        max_records: int | None = None,
        workers: int | None = None,
    ) -> Table:
        """The records' fields as columns of these types: see `millstream.Reader.columns`."""
        return await self._side.call(
            lambda reader: reader.columns(sep, types, missing=missing, max_records=max_records, workers=workers)
        )

    async def skip_record(self) -> bool:
        """Skips a record, however long, and returns whether there was one."""
        return await self._side.call(lambda reader: reader.skip_record())

    async def read(self, size: int | None = -1, /) -> T:
        """Up to `size` bytes, or characters if there is an encoding; all that are left if negative. Data read before an
        error is in its `partial`."""
        return await self._side.call(lambda reader: reader.read(size))

    async def read1(self: Reader[bytes], size: int | None = -1, /) -> bytes:
        """Available bytes, after at most one read."""
        return await self._side.call(lambda reader: reader.read1(size))

    async def readline(self) -> T:
        """The next line with its line feed; nothing at the end."""
        return await self.readuntil(b"\n")

    async def readuntil(self, delimiter: bytes | str | int = 10) -> T:
        """The data up to a delimiter, including it; at the end the rest, or nothing."""
        side = self._side
        found: T | None = None
        if side.native is not None and not side.is_busy:
            found = side.native._read_buffered(delimiter)
        if found:
            return found
        rest: T = await side.call(lambda reader: reader.readuntil(delimiter))
        return rest

    async def peek(self: Reader[bytes]) -> bytes:
        """The content of the buffer, after one read if it is empty. Nothing is consumed."""
        return await self._side.call(lambda reader: reader.peek())

    async def close(self) -> None:
        """Ends the reading at the current position, and stops its commands: within two seconds.

        A call that another task waits for raises `Cancelled`."""
        await _close(self._side, lambda reader: reader.close())

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        await _close(self._side, lambda reader: reader.__exit__(kind, value, traceback))

    @property
    def position(self) -> tuple[int, int]:
        """How many bytes and records have been taken."""
        native = self._side.native
        return (0, 0) if native is None else native.position

    @property
    def ends(self) -> list[CommandEnd]:
        """How commands ended, for those that have ended so far."""
        native = self._side.native
        return [] if native is None else native.ends


async def _records(side: _Side[_native.Reader[Any]]) -> AsyncGenerator[Any, None]:
    while True:
        record = await side.call(_next)
        if record is _END:
            return
        yield record
        assert side.native is not None
        for record in side.native._buffered():
            yield record
            if monotonic() - side.since > _TURN:
                await side.yield_to_others()


def _next(reader: _native.Reader[Any]) -> Any:
    return next(reader, _END)


async def _batches(side: _Side[_native.Reader[Any]], max_records: int | None) -> AsyncIterator[Batch[Any]]:
    while (batch := await side.call(lambda reader: reader.next_batch(max_records))) is not None:
        yield batch


class Writer(_Opened[_native.Writer]):
    """Writes to a sink: see `millstream.Writer`, which has the same methods without `await`.

    What fits in the buffer is written without a switch to the thread. Only `close` reports whether everything
    succeeded. An `async with` block closes it; after an exception, or if the task is cancelled, it is aborted."""

    @staticmethod
    def path(path: Location, **options: Unpack[WriterSettings]) -> Writer:
        """A file or an object, which appears complete when the writer is closed; compressed according to the suffix of
        its name."""
        return Writer(lambda: _native.Writer.path(path, **options))

    @staticmethod
    def command(argv: Sequence[str | os.PathLike[str]], **options: Unpack[CommandWriterOptions]) -> Writer:
        """A command's standard input. `close` raises `CommandFailed` if it fails."""
        return Writer(lambda: _native.Writer.command(argv, **options))

    @staticmethod
    def stdout(**options: Unpack[WriterSettings]) -> Writer:
        """Standard output. Flush before other code prints."""
        return Writer(lambda: _native.Writer.stdout(**options))

    @staticmethod
    def fd(fd: int, **options: Unpack[WriterSettings]) -> Writer:
        """A duplicate of a file descriptor, which stays open."""
        own = os.dup(fd)

        def opened() -> _native.Writer:
            try:
                return _native.Writer.fd(own, **options)
            finally:
                os.close(own)

        return Writer(opened)

    @staticmethod
    def memory(**options: Unpack[WriterSettings]) -> Writer:
        """Memory: see `WriterEnd.memory`."""
        return Writer(lambda: _native.Writer.memory(**options))

    @staticmethod
    def callback(write: Callable[[bytes], int | None], **options: Unpack[WriterSettings]) -> Writer:
        """A function, which is called on the writer's thread: see `millstream.Writer.callback`."""
        return Writer(lambda: _native.Writer.callback(write, **options))

    async def write(self, data: Buffer | str, /) -> int:
        """Writes bytes, or UTF-8 text, and returns how many bytes there were."""
        side = self._side
        if side.native is not None and not side.is_busy:
            count = side.native._write_buffered(data)
            if count is not None:
                if monotonic() - side.since > _TURN:
                    await side.yield_to_others()
                return count
        return await side.call(lambda writer: writer.write(data))

    async def put(self, *values: object, sep: str = " ", end: str = "\n") -> None:
        """Writes values as `print` does. Numbers and booleans look the same as in every language of Millstream."""
        side = self._side
        if side.native is None or side.is_busy or not side.native._put_buffered(*values, sep=sep, end=end):
            await side.call(lambda writer: writer.put(*values, sep=sep, end=end))
        elif monotonic() - side.since > _TURN:
            await side.yield_to_others()

    async def writelines(self, lines: Iterable[Buffer | str], /) -> None:
        """Writes pieces; no line ends are added."""
        for line in lines:
            await self.write(line)

    async def flush(self) -> None:
        """Passes everything to the system."""
        await self._side.call(lambda writer: writer.flush())

    async def close(self) -> WriterEnd | None:
        """Ends the writing, and reports whether everything succeeded; `None` if it was closed before."""
        return await _close(self._side, lambda writer: writer.close(), interrupt=False)

    async def abort(self) -> None:
        """Gives up: see `millstream.Writer.abort`."""
        await _close(self._side, lambda writer: writer.abort())

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        await (self.close() if kind is None else self.abort())

    @property
    def accepted(self) -> int:
        """Bytes accepted so far."""
        native = self._side.native
        return 0 if native is None else native.accepted


@overload
def open(path: Location, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def open(path: Location, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def open(path: Location, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads a file, FIFO or device, or an object: see `millstream.open`."""
    return Reader(lambda: _open.open(path, encoding=encoding, **options))


@overload
def open_split(split: Split | str, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def open_split(split: Split | str, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def open_split(split: Split | str, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Like `millstream.open_split`."""
    return Reader(lambda: _open.open_split(split, encoding=encoding, **options))


@overload
def command(argv: Sequence[Argument], *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def command(argv: Sequence[Argument], *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def command(argv: Sequence[Argument], *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Starts a command and reads its standard output: see `millstream.command`."""
    return Reader(lambda: _open.command(argv, encoding=encoding, **options))


@overload
def pipeline(
    argvs: Iterable[Sequence[Argument]], *, encoding: None = None, **options: Unpack[CommandOptions]
) -> Reader[bytes]: ...
@overload
def pipeline(
    argvs: Iterable[Sequence[Argument]], *, encoding: str, **options: Unpack[CommandOptions]
) -> Reader[str]: ...
def pipeline(argvs: Iterable[Sequence[Argument]], *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Starts a pipeline of commands and reads its output: see `millstream.pipeline`."""
    return Reader(lambda: _open.pipeline(argvs, encoding=encoding, **options))


@overload
def shell(line: str, *, encoding: None = None, **options: Unpack[CommandOptions]) -> Reader[bytes]: ...
@overload
def shell(line: str, *, encoding: str, **options: Unpack[CommandOptions]) -> Reader[str]: ...
def shell(line: str, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Starts a shell line with bash and `pipefail`: see `millstream.shell`."""
    return Reader(lambda: _open.shell(line, encoding=encoding, **options))


@overload
def stdin(*, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def stdin(*, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def stdin(*, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads standard input. Bytes that `sys.stdin` has already read are not included."""
    return Reader(lambda: _open.stdin(encoding=encoding, **options))


@overload
def from_bytes(data: Buffer, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_bytes(data: Buffer, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_bytes(data: Buffer, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads memory: `bytes` without a copy, a copy of anything mutable."""
    return Reader(lambda: _open.from_bytes(data, encoding=encoding, **options))


@overload
def from_file(file: Readable, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_file(file: Readable, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_file(file: Readable, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads any object that has `read1` or `read`, in binary mode, which the reader's thread calls."""
    return Reader(lambda: _open.from_file(file, encoding=encoding, **options))


@overload
def from_callback(
    read: Callable[[int], bytes | None], *, encoding: None = None, **options: Unpack[ReaderOptions]
) -> Reader[bytes]: ...
@overload
def from_callback(
    read: Callable[[int], bytes | None], *, encoding: str, **options: Unpack[ReaderOptions]
) -> Reader[str]: ...
def from_callback(read: Callable[[int], bytes | None], *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads what a function returns, which the reader's thread calls: see `millstream.from_callback`."""
    return Reader(lambda: _open.from_callback(read, encoding=encoding, **options))


@overload
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: None = None, **options: Unpack[ReaderOptions]
) -> Reader[bytes]: ...
@overload
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: str, **options: Unpack[ReaderOptions]
) -> Reader[str]: ...
def tcp(
    host: str, port: int, *, timeout: float | None = None, encoding: str | None = None, **options: Any
) -> Reader[Any]:
    """Connects to a TCP server and reads the data that it sends. `timeout` applies to connecting."""
    return Reader(lambda: _open.tcp(host, port, timeout=timeout, encoding=encoding, **options))


@overload
def from_fd(fd: int, *, encoding: None = None, **options: Unpack[ReaderOptions]) -> Reader[bytes]: ...
@overload
def from_fd(fd: int, *, encoding: str, **options: Unpack[ReaderOptions]) -> Reader[str]: ...
def from_fd(fd: int, *, encoding: str | None = None, **options: Any) -> Reader[Any]:
    """Reads a duplicate of a file descriptor; the original stays open. Both share the file position."""
    options = {"name": f"file descriptor {fd}", **options}
    # The thread opens it later, when the caller may have closed it.
    own = os.dup(fd)

    def opened() -> _native.Reader[Any]:
        try:
            return _open.from_fd(own, encoding=encoding, **options)
        finally:
            os.close(own)

    return Reader(opened)


add_options([open, open_split, stdin, from_bytes, from_callback, from_fd, from_file, tcp], "reader")
add_options([command, pipeline, shell], "command", "reader")
add_options([Writer], "writer")
