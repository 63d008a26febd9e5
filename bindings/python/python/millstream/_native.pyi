"""The native part. What it holds is documented and exported by `millstream`."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar, Unpack, final

import numpy as np
from typing_extensions import Buffer

from ._errors import CommandEnd, DocumentError, Error

T = TypeVar("T", bytes, str)

#: `int`, `float`, `str`, `bytes`, one of numpy's numbers or its name; `None` for a field that is no column.
ColumnType: TypeAlias = type | str | None

__version__: str

def command_line(argv: Sequence[str]) -> int: ...
def option_error(found: str, expected: str) -> Error: ...
def document_error(
    kind: Literal["key_missing", "value_out_of_range", "shape_mismatch"],
    keys: list[str],
    found: str,
    expected: str,
    record: int | None = None,
) -> DocumentError: ...
def pipe_error(
    kind: Literal["stage_failed", "cancelled"],
    name: str | None,
    record: int | None = None,
    offset: int | None = None,
    found: str | None = None,
) -> Error: ...

@final
class Framer:
    """A way to find records, to be used by any number of readers."""

    @staticmethod
    def lines(*, keep_delimiter: bool = False) -> Framer:
        """Lines, without their line feed and a carriage return before it."""
    @staticmethod
    def delimiter(delimiter: bytes | str | int, *, keep_delimiter: bool = False) -> Framer:
        """Records that end with this byte, string of bytes, or text in UTF-8."""
    @staticmethod
    def any_of(delimiters: bytes, *, keep_delimiter: bool = False) -> Framer:
        """Records that end after any of these bytes."""
    @staticmethod
    def fixed(length: int) -> Framer:
        """Records of this many bytes."""
    @staticmethod
    def length_prefixed(
        width: int = 4, *, endian: Literal["little", "big"] = "little", counts: Literal["payload", "itself"] = "payload"
    ) -> Framer:
        """Records behind their length: of 1, 2, 4 or 8 bytes, which may count themselves."""
    @staticmethod
    def bson() -> Framer:
        """BSON documents."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Memory(Buffer):
    """Bytes that never change, to have a view of."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Batch(Sequence[T], Generic[T]):
    """Many records at once: one block of bytes, and where each begins."""

    @property
    def data(self) -> memoryview:
        """The block of bytes, delimiters included: a read-only view."""
    @property
    def offsets(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Where the records begin in `data`, and behind them where the last one ends (a memoryview without numpy)."""
    @property
    def first_record(self) -> int:
        """The number of its first record in the stream."""
    @property
    def offset(self) -> int:
        """Where `data` begins in the stream, in bytes."""
    @property
    def terminated(self) -> bool:
        """Whether the last record ends with its delimiter. All others do."""
    @property
    def trim(self) -> tuple[int, int, bool]:
        """Bytes of each record that are no content: in front, behind, and whether a carriage return there is none."""
    def to_list(self) -> list[T]:
        """The records in a list."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> T: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[T]: ...

@final
class Reader(Iterator[T], Generic[T]):
    """A source, record by record: `bytes`, or `str` where there is an encoding.

    It is a file in binary mode too (an `io.BufferedIOBase`), whose lines have their line feeds, as files have them; the
    records of the iteration do not. Every call goes on where the one before ended, whichever it was.

    One call at a time: another thread's raises `InUse`.
    """

    @staticmethod
    def path(path: str, **options: Any) -> Reader[Any]: ...
    @staticmethod
    def commands(argvs: list[list[str]], **options: Any) -> Reader[Any]: ...
    @staticmethod
    def shell(line: str, **options: Any) -> Reader[Any]: ...
    @staticmethod
    def stdin(**options: Any) -> Reader[Any]: ...
    @staticmethod
    def fd(fd: int, **options: Any) -> Reader[Any]: ...
    @staticmethod
    def memory(memory: Buffer, **options: Any) -> Reader[Any]: ...
    @staticmethod
    def callback(read: Callable[[int], bytes | None], **options: Any) -> Reader[Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> T: ...
    def next_batch(self, max_records: int | None = None) -> Batch[T] | None:
        """The next records, as many as there are; `None` at the end."""
    def batches(self, max_records: int | None = None) -> Iterator[Batch[T]]:
        """An iterator over what `next_batch` gives."""
    def count(self) -> int:
        """Counts the records up to the end, without making them."""
    def columns(
        self,
        sep: bytes | str | int,
        types: Mapping[str, ColumnType] | Sequence[ColumnType],
        *,
        missing: str | None = None,
        max_records: int | None = None,
        workers: int | None = None,
    ) -> Table:
        """The records' fields as columns of these types, up to the end, or of `max_records`.

        A type is `int` (64 bits), `float`, `str`, `bytes`, the name of one of numpy's numbers (`"int32"`) or that type,
        and `None` for a field that is not wanted. A field that is `missing` (`""`, say) is no value; else one that is
        no value of its type is a `NumberError` or `EncodingError` with the record, the column's name as `path` and the
        byte, and the rows before it are in its `partial`. Fields behind the last column are left aside; too few are an
        error. `workers` threads make the columns, this one among them: up to four unless told otherwise.
        """
    def skip_record(self) -> bool:
        """Skips a record, however long, and says whether there was one."""
    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes, all there are if negative. What came before an error is in its `partial`."""
    def read1(self, size: int | None = -1, /) -> bytes:
        """Bytes that there are, after one read at most."""
    def readinto(self, buffer: Buffer, /) -> int:
        """Fills memory, and says how many bytes there were."""
    def readinto1(self, buffer: Buffer, /) -> int:
        """The same, after one read at most."""
    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line with its line feed; nothing at the end."""
    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """Lines, up to some bytes."""
    def readuntil(self, delimiter: bytes | str | int = 10) -> bytes:
        """The bytes up to a delimiter, with it; at the end what is left, or nothing."""
    def peek(self, size: int | None = 0, /) -> bytes:
        """What is in the buffer, after one read if it is empty. Nothing is consumed."""
    def waits(self) -> bool | None:
        """Whether the next batch has to be waited for; `None` where nobody can say, as of a function."""
    def waits_for(self) -> int | None:
        """The file descriptor that is readable when the next batch need not be waited for, if there is one."""
    @property
    def terminator(self) -> bytes:
        """What ends a record, where it is written again."""
    def cancel(self) -> None:
        """Ends a wait of another thread, which gets `Cancelled`; if there is none, the next call does."""
    def close(self) -> None:
        """Ends the reading, wherever it is, and stops its commands: in two seconds at most."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def name(self) -> str:
        """What errors call the source."""
    @property
    def mode(self) -> Literal["rb"]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def position(self) -> tuple[int, int]:
        """How many bytes and records have been taken."""
    @property
    def ends(self) -> list[CommandEnd]:
        """How the commands ended, those that have."""
    def tell(self) -> int: ...
    def readable(self) -> bool: ...
    def writable(self) -> Literal[False]: ...
    def seekable(self) -> Literal[False]: ...
    def isatty(self) -> Literal[False]: ...
    def flush(self) -> None: ...
    def fileno(self) -> int: ...
    def seek(self, offset: int, whence: int = 0) -> int: ...
    def truncate(self, size: int | None = None) -> int: ...
    def detach(self) -> None: ...
    def write(self, bytes: Buffer, /) -> int: ...

@final
class Table:
    """Columns of one length, each with its name and type.

    By Arrow's PyCapsule interface pyarrow, polars and pandas take it over without a copy.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
    def keys(self) -> tuple[str, ...]:
        """The same: so `dict(table)` has all columns."""
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int:
        """How many rows there are."""
    def __getitem__(self, name: str, /) -> np.ndarray[Any, Any]:
        """A column: numbers as numpy's, read-only and not copied; text as objects.

        Where values are missing, floating point numbers are NaN, integers are masked, and objects are `None`.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class WriterOptions(TypedDict, total=False):
    """The options of a writer."""

    capacity: int
    #: When bytes go out: when the buffer is full, at each line end, or at the latest after so many seconds.
    flush: Literal["auto", "full", "line"] | float
    #: `"auto"`: by the ending of a file's name.
    encode: Literal["auto", "off", "gzip", "bgzf", "zstd"]
    level: int
    stall_timeout: float
    name: str

class FileWriterOptions(WriterOptions, total=False):
    """The options of a writer of files."""

    #: `"append"`: behind what is there, at once.
    existing: Literal["replace", "append"]
    #: `"keep"`: written in place, where what was written stays.
    partial: Literal["remove", "keep"]
    #: What `close` waits for: nothing, the disk having the bytes, or the name too.
    durability: Literal["cached", "data", "all"]

class CommandWriterOptions(WriterOptions, total=False):
    """The options of a writer to a command."""

    cwd: str | PathLike[str] | None
    env: Mapping[str, str] | None
    stderr: Literal["forward", "capture", "inherit", "ignore"]
    allow_failure: bool

@final
class WriterEnd:
    """How a writer ended."""

    @property
    def bytes(self) -> int:
        """Bytes accepted."""
    @property
    def written(self) -> int:
        """Bytes handed to the system, after encoding."""
    @property
    def memory(self) -> builtins.bytes | None:
        """All that was written, if the sink was memory."""
    @property
    def commands(self) -> list[CommandEnd]:
        """How the commands ended."""

@final
class Writer:
    """Records into a sink.

    Only `close` says whether all went well. A `with` block closes it; after an exception it is given up, and a file
    that was to appear whole does not appear. One call at a time: another thread's raises `InUse`.
    """

    @staticmethod
    def path(path: str | PathLike[str], **options: Unpack[FileWriterOptions]) -> Writer:
        """A file, which appears whole when the writer is closed; compressed by its name's ending."""
    @staticmethod
    def command(argv: Sequence[str | PathLike[str]], **options: Unpack[CommandWriterOptions]) -> Writer:
        """A command's standard input. `close` raises `CommandFailed` if it fails."""
    @staticmethod
    def stdout(**options: Unpack[WriterOptions]) -> Writer:
        """Standard output. Flush before others print."""
    @staticmethod
    def fd(fd: int, **options: Unpack[WriterOptions]) -> Writer:
        """A duplicate of a file descriptor, which stays open."""
    @staticmethod
    def memory(**options: Unpack[WriterOptions]) -> Writer:
        """Memory: see `WriterEnd.memory`."""
    @staticmethod
    def callable(write: Callable[[bytes], int | None], **options: Unpack[WriterOptions]) -> Writer:
        """A function, such as the `write` of a file-like object; it says how many bytes it took, or nothing for all."""
    def write(self, data: Buffer | str, /) -> int:
        """Writes bytes, or text in UTF-8, and says how many bytes there were."""
    def put(self, *values: object, sep: str = " ", end: str = "\n") -> None:
        """Writes values as `print` does. Numbers and truth values look as in every language of Millstream."""
    def writelines(self, lines: Iterable[Buffer | str], /) -> None:
        """Writes pieces; no line ends are added."""
    def flush(self) -> None:
        """Hands everything to the system."""
    def close(self) -> WriterEnd | None:
        """Ends the writing, and says whether all went well; `None` if it was closed before."""
    def abort(self) -> None:
        """Gives up: a file that was to appear whole does not appear."""
    def cancel(self) -> None:
        """Ends a wait of another thread, which gets `Cancelled`; if there is none, the next call does."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def name(self) -> str:
        """What errors call the sink."""
    @property
    def closed(self) -> bool: ...
    @property
    def accepted(self) -> int:
        """Bytes accepted so far."""
    def writable(self) -> Literal[True]: ...
    def readable(self) -> Literal[False]: ...
    def seekable(self) -> Literal[False]: ...

class Types:
    """The classes for the types that Python has no word for."""

    def __init__(self, *classes: Any) -> None: ...

def bson_loads(data: Buffer, types: Types) -> dict[str, Any]: ...
def bson_decode_all(data: Buffer, types: Types) -> list[dict[str, Any]]: ...
def bson_dumps(document: dict[str, Any], other: Callable[[Any], tuple[str, tuple[Any, ...]]]) -> bytes: ...
def julia_load(
    module: ModuleType,
    path: str | PathLike[str] | None,
    data: Buffer | None,
    memory: int,
    types: list[tuple[str, list[str]]],
) -> Any: ...

@final
class Mapped:
    """A mapped file of one document."""

    def __init__(self, path: str | PathLike[str], types: Types) -> None: ...
    @property
    def name(self) -> str: ...
    def keys(self, path: list[str]) -> list[str]: ...
    def find(self, path: list[str]) -> tuple[str, Any, int] | None: ...
    def object(self, path: list[str]) -> Any: ...

@final
class Columns:
    """Documents as columns, by Arrow's PyCapsule interface. They can be taken once."""

    def __init__(self, source: bytes | str | PathLike[str]) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
