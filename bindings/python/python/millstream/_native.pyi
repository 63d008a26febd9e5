"""The native part. Its content is documented and exported by `millstream`."""

import builtins
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, Unpack, final, overload

import numpy as np
from typing_extensions import Buffer

from ._command import CommandEnd
from ._errors import DocumentError, Error
from ._kinds import ErrorKind
from ._options import CsvRagged, Decode, Endian, PrefixCounts, RemoteSettings, Stderr, WriterSettings
from ._types import Location

T = TypeVar("T", bytes, str)

#: `int`, `float`, `str`, `bytes`, a numpy number type or its name; `None` for a field that is not a column.
ColumnType: TypeAlias = type | str | None

__version__: str

def forked() -> None: ...
def options_help(of: Literal["reader", "writer", "command", "remote"]) -> str: ...
def location_name(location: Location) -> str: ...
def is_url(text: str, /) -> bool: ...
def is_directory_of_objects(url: str, /) -> bool: ...
def is_pattern_of_objects(url: str, /) -> bool: ...
def matching_objects(url: str, /) -> list[ListedObject]: ...
def plan_objects(
    objects: list[ListedObject | str], framer: Framer, size: int, pin: str, decode: str, /
) -> list[Splits]: ...
def follow_part(part: str, /) -> str: ...
def command_line(argv: Sequence[str], closed: tuple[bool, bool, bool]) -> int: ...
def option_error(found: str, expected: str) -> Error: ...
def state_error(state: Literal["closed", "in_use"], name: str) -> Error: ...
def document_error(
    kind: Literal["key_missing", "value_out_of_range", "shape_mismatch"],
    keys: list[str],
    found: str,
    expected: str,
    record: int | None = None,
) -> DocumentError: ...
def hints() -> dict[ErrorKind, str]: ...
def pipe_error(
    kind: Literal["stage_failed", "cancelled"],
    name: str | None,
    record: int | None = None,
    offset: int | None = None,
    line: int | None = None,
    found: str | None = None,
) -> Error: ...

@final
class Framer:
    """A way to find records, usable by any number of readers."""

    @staticmethod
    def lines(*, keep_delimiter: bool = False) -> Framer:
        """Records are lines, without the line feed and a carriage return before it."""
    @staticmethod
    def delimiter(delimiter: bytes | str | int, *, keep_delimiter: bool = False) -> Framer:
        """Records end with this byte, byte string, or UTF-8 text."""
    @staticmethod
    def any_of(delimiters: bytes, *, keep_delimiter: bool = False) -> Framer:
        """Records end after any of these bytes."""
    @staticmethod
    def fixed(length: int) -> Framer:
        """Records have this many bytes."""
    @staticmethod
    def length_prefixed(width: int = 4, *, endian: Endian = "little", counts: PrefixCounts = "payload") -> Framer:
        """Records are preceded by their length, which has 1, 2, 4 or 8 bytes and may count itself."""
    @staticmethod
    def bson() -> Framer:
        """BSON documents."""
    @staticmethod
    def json_lines(*, check: bool = False, depth: int | None = None) -> Framer:
        """Lines of newline-delimited JSON, with or without a carriage return before the line feed. With `check`, each
        line that is not blank is one value in UTF-8, with at most `depth` arrays and objects inside each other (128 by
        default). Blank lines are not removed from the records, but `Reader.json` skips them."""
    @staticmethod
    def csv(
        delimiter: bytes | str | int = ",",
        *,
        quote: bytes | str | int | None = '"',
        escape: bytes | str | int | None = None,
        doubled_quotes: bool = True,
        comment: bytes | str | int | None = None,
        line_end: Literal["any", "lf", "crlf", "cr"] = "any",
        blank_records: bool = False,
        literal_quotes: bool = False,
        detect_mark: bool = True,
    ) -> Framer:
        """Records of CSV: RFC 4180 with any line end by default. Blank lines and comments are not removed from the
        records, but `Reader.rows` and `Reader.dicts` skip them."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Remote:
    """An object of a web server or an object store, with options for its requests.

        private = ms.Remote("https://example.org/a.csv", headers={"Authorization": "Bearer ..."}, idle_timeout=30)
        for line in ms.open(private):
            ...

    Every function that accepts a path accepts a `Remote`, and a `str` that begins with `https://`, `http://` or
    `s3://`, unless it needs a file, which it maps. A `pathlib.Path` is never a URL. The end of a reader
    means that all bytes of one version of the object were delivered. An object that is written appears complete when
    the writer is closed, or not at all; web servers are sources only.

    `headers`, a mapping or pairs, are sent with each request, but not to another host after a redirect. Their values
    are shown in no message. Those that describe an object, such as `Content-Type` and `x-amz-meta-...`, are sent only
    with the request that creates it.

    Everything after `s3://BUCKET/` is the key as it is, so `%`, `#`, `?` and spaces belong to it. Credentials come from
    the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
    `AWS_ENDPOINT_URL`) or from the machine's metadata service.

    A `Remote` is only a description: it cannot be changed, and any number of readers, writers and threads can use
    it."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        **options: Unpack[RemoteSettings],
    ) -> None: ...
    @property
    def name(self) -> str:
        """The URL as messages show it: without user, password, query and fragment, which may be secret."""

@final
class ListedObject:
    """An object in a list of a store."""

    @property
    def url(self) -> str:
        """The URL."""

    @property
    def size(self) -> int:
        """The number of bytes."""

@final
class SharedPass:
    """A pass over a file or object of CSV that several processes make together."""

    @staticmethod
    def begin(
        path: Location | ListedObject, framer: Framer, size: int, part_size: int, pin: str, decode: str
    ) -> SharedPass | None:
        """Begins a plan whose pass is made in parts of `part_size` bytes; `None` if there is no pass to share. Only the
        first bytes are read."""

    def parts(self) -> list[str]:
        """The parts as JSON, for `follow_part`."""

    def plan(self, results: list[str]) -> Splits:
        """Composes the results of `follow_part`. Parts without one are followed now."""

class Splits(Sequence[Split]):
    """A plan: the splits of a file, in order. A sequence of `Split`.

    `Splits.plan` divides a file. Reading its splits in order, each with `open_split`, returns exactly what one reader
    of the whole file returns: the same records, errors and offsets. A plan depends only on the file and the arguments,
    not on the number of workers."""

    @staticmethod
    def plan(
        path: Location,
        framer: Framer | None = None,
        *,
        size: int = 268435456,
        pin: Literal["none", "identity", "ends", "full"] = "identity",
        decode: Decode = "auto",
        index: str | PathLike[str] | None = None,
        json_elements: str | None = None,
        json_depth: int | None = None,
        number: bool = False,
    ) -> Splits:
        """Divides a regular file, or an object, into splits of about `size` bytes: 256 MiB by default. Records are
        lines by default.

        Lines, most delimiters and records of a fixed length need no pass: a file of any size is divided without reading
        it. CSV, BSON and length-prefixed records are followed from the start of the file. Such a plan knows the number
        of the first record of each split. `Framer.any_of` and `keep_delimiter` cannot be stored; to keep delimiters,
        pass `keep_delimiter` to `open_split`.

        A compressed file is divided at its bgzf blocks or zstd frames, a gzip file at the points of its index, and
        sizes and offsets are of decoded bytes. Other compressed files are one split, and `note` says why. With
        `decode="off"`, the compressed bytes themselves are divided. `index` is the path of the index of a gzip file:
        that of the file with the suffix `.gzidx` by default, if it can be used.

        `json_elements` divides a JSON document after elements of its array, with the limit `json_depth`; they are those
        of readers. All of the document is checked.

        With `number=True`, each split has the number of its first record, so that errors have the numbers of records
        and lines in the whole file. Lines and delimiters need a pass for that.

        `pin` is what each split stores to detect another file or another version of it. `"none"`: nothing, only a
        shorter file is detected. `"identity"`: size, modification time and inode, for one machine. `"ends"`: size and a
        hash of 64 KiB at both ends, and at the start of each split if planning reads the file, for copies on other
        machines. `"full"`: also a hash of each split, for which the file is read once. For an object, each split stores
        the size and the ETag, and every request requires them. The server must have ranges and send a strong ETag."""
    @classmethod
    def from_json(cls, json: str) -> Splits:
        """A plan from JSON."""
    def to_json(self) -> str:
        """The plan as JSON, with each split on its own line."""
    @property
    def file_size(self) -> int:
        """The size of the file in bytes when it was planned."""
    @property
    def records(self) -> int | None:
        """The number of records of the file, if planning counted them. An incomplete or invalid record at the end is
        not counted."""
    @property
    def note(self) -> str | None:
        """Why the file has fewer splits than its size suggests, such as a format that cannot be divided."""
    def shard(self, index: int, count: int, seed: int) -> list[Split]:
        """The splits of worker `index` of `count`, in a random order that `seed` determines, as a list.

        Each split belongs to one worker, and the numbers of splits differ by at most one. The result is the same in
        every language and on every machine. For each epoch of a training loop, use another seed."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Split: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Split]: ...
    def __iter__(self) -> Iterator[Split]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Split:
    """One part of a file or object, complete by itself: the path or URL, the framer, the range, and what detects
    another version.

    It can be pickled, so that `concurrent.futures`, Dask and Ray can send it to a worker, and `to_json` is a line of
    JSON that every language and `millstream run --split` read. A record belongs to the split in which it begins, so a
    split may be read beyond its end, and may contain no record."""

    @classmethod
    def from_json(cls, json: str) -> Split:
        """A split from JSON."""
    def to_json(self) -> str:
        """The split as one line of JSON. A path that is not UTF-8 is left out: see `with_path`. A URL is contained as
        it was given, with its query, which may be secret; the options of a `Remote` are not: see `with_remote`."""
    @property
    def begin(self) -> int:
        """The offset at which the split begins, in bytes from the start of the (decoded) file."""
    @property
    def end(self) -> int | None:
        """The offset after the split, or `None` for the end of the file."""
    @property
    def first_record(self) -> int | None:
        """The number of the first record (the first of the file is 0), if planning counted the records."""
    @property
    def rows(self) -> int | None:
        """The number of its records without blank lines and comments of CSV, if planning counted them. A header is one
        of them. If an incomplete or invalid record ended the count, the number of the last split is not known."""
    @property
    def framer(self) -> Framer:
        """How the records are found."""
    @property
    def path(self) -> str | None:
        """The file's absolute path."""
    def with_path(self, path: str | PathLike[str]) -> Split:
        """The same split of a file with another path, such as a copy on another machine. If it needs an index that is
        next to the file, the copy must have one too."""
    @property
    def url(self) -> str | None:
        """The object's URL as it was given. It may contain secrets."""
    @property
    def name(self) -> str:
        """The name of the file or object as messages show it: a URL without user, password, query and fragment."""
    def with_remote(self, remote: Remote) -> Split:
        """The same split of another object, such as a copy, or with other options of its requests, which JSON and
        pickle do not contain, because headers may be secret.

            split = split.with_remote(ms.Remote(split.url, headers={"Authorization": token}))"""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Memory(Buffer):
    """Immutable bytes that can be viewed."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Batch(Sequence[T], Generic[T]):
    """Many records at once: one block of bytes, and the offset of each record. A sequence of records.

    Offsets, positions and record numbers are counted from the start of the stream and from 0. A batch keeps its memory
    as long as it, or a view of it, is referenced."""

    @property
    def data(self) -> memoryview:
        """The block of bytes, including delimiters: a read-only view."""
    @property
    def offsets(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The offsets of the records in `data`, followed by the end of the last one: numpy's `uint32`, or a view
        without numpy."""
    @property
    def first_record(self) -> int:
        """The number of its first record in the stream."""
    @property
    def first_line(self) -> int | None:
        """The line number of its first record (the first is 1), if it and all records before it are lines."""
    @property
    def offset(self) -> int:
        """The position of `data` in the stream, in bytes."""
    @property
    def terminated(self) -> bool:
        """Whether the last record ends with its delimiter. All others do."""
    @property
    def trim(self) -> tuple[int, int, bool]:
        """How many bytes of each record are not content: at the front, at the end if it is terminated, and whether a
        carriage return before those is not content either."""
    def to_list(self) -> list[T]:
        """The records as a list."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[T]: ...
    def __iter__(self) -> Iterator[T]: ...

class Reader(Iterator[T], Generic[T]):
    """Reads a source record by record, as `bytes`, or as `str` if an encoding is given.

    A reader is created by a function: `open`, `open_split`, `command`, `pipeline`, `shell`, `stdin`, `tcp`,
    `from_bytes`, `from_fd`, `from_file`, `from_callback`. Records are lines by default. As `bytes`, lines have no line
    ends. As `str`, the iteration yields lines with their line ends, like a Python text file with `newline=""`, so that
    `csv.reader` and others find the line feeds inside quotes; `keep_delimiter=False` removes the line ends. Records in
    batches and pipes have no line ends.

    A reader is also a file: without an encoding in binary mode (an `io.BufferedIOBase`), with an encoding in text mode
    (an `io.TextIOBase`). Its `readline` keeps the line feeds, as in files; the iteration does not. Every call continues
    where the previous call ended, even if that was another method.

    One call at a time: a call from another thread raises `InUse`."""

    @staticmethod
    def path(path: Location, **options: Any) -> Reader[Any]: ...
    @staticmethod
    def split(split: Split, **options: Any) -> Reader[Any]: ...
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
    def _buffered(self) -> Iterator[T]: ...
    def _read_buffered(self, delimiter: bytes | str | int, /) -> T | None: ...
    def _drop(self) -> None: ...
    def next_batch(self, max_records: int | None = None) -> Batch[T] | None:
        """The next records, as many as are available, as a `Batch`; `None` at the end."""
    def batches(self, max_records: int | None = None) -> Iterator[Batch[T]]:
        """An iterator over the results of `next_batch`."""
    def rows(self, *, ragged: CsvRagged = "error") -> Iterator[list[T]]:
        """An iterator over the records of CSV, each as a list of its fields, for a reader with `Framer.csv`. Blank
        lines and comments are not records. Once `dicts` has read the header, rows have as many fields, and `ragged`
        works as in `dicts`."""
    @overload
    def dicts(self, *, ragged: Literal["error", "pad"] = "error") -> Iterator[dict[T, T]]: ...
    @overload
    def dicts(self, *, ragged: Literal["collect"]) -> Iterator[dict[T | None, T | list[T]]]:
        """An iterator over the records of CSV, each as a dict from the header's names to its fields. The header is the
        first record, which the reader keeps for later iterators. A record with another number of fields is an error,
        after which the iterator continues with the next record. With `ragged="pad"`, fields that are missing at its end
        are empty; a record with more fields than the header is still an error. With `ragged="collect"`, it has them as
        a list with the key `None`, as in `csv.DictReader`."""
    def json(self, loads: Callable[[bytes], Any] | None = None) -> Iterator[Any]:
        """An iterator over the records of JSON as values, for a reader with `Framer.json_lines` or `json_elements`.
        Blank lines are not records.

        `loads` gets the bytes of a record, such as `orjson.loads`: `json.loads` by default, for UTF-8. If it raises a
        `ValueError`, that is the cause of an error of the kind `json_invalid` with the record and its line, and the
        iterator continues with the next record."""
    def count(self) -> int:
        """Counts the records up to the end, without creating them. The record limit does not apply."""
    def columns(
        self,
        sep: bytes | str | int,
        types: Mapping[str, ColumnType] | Sequence[ColumnType],
        *,
        missing: str | None = None,
        max_records: int | None = None,
        workers: int | None = None,
    ) -> Table:
        """The records' fields as columns of these types, up to the end, or of `max_records`, as a `Table`.

        A type is `int` (64 bits), `float`, `str`, `bytes`, the name of a numpy number type (`"int32"`) or that type,
        and `None` for a field to ignore. A field equal to `missing` (for example `""`) is a missing value; any other
        field that is not of its type raises a `NumberError` or `EncodingError` with the line and column, and the
        column's name as `path`; the earlier rows are in its `partial`. Fields after the last column are ignored; too
        few are an error. Quotes have no meaning: for CSV with quotes use `millstream.columns`. `workers` threads build
        the columns, including this one: up to four by default."""
    def skip_record(self) -> bool:
        """Skips a record, however long, and returns whether there was one."""
    def read(self, size: int | None = -1, /) -> T:
        """Up to `size` bytes, or characters if there is an encoding; all that are left if negative. Data read before an
        error is in its `partial`."""
    def read1(self: Reader[bytes], size: int | None = -1, /) -> bytes:
        """Available bytes, after at most one read."""
    def readinto(self: Reader[bytes], buffer: Buffer, /) -> int:
        """Fills memory, and returns how many bytes there were."""
    def readinto1(self: Reader[bytes], buffer: Buffer, /) -> int:
        """Fills memory like `readinto`, after at most one read."""
    def readline(self, size: int | None = -1, /) -> T:
        """The next line with its line feed, as in files; nothing at the end. `size` limits its bytes or characters."""
    def readlines(self, hint: int | None = -1, /) -> list[T]:
        """Lines as a list, up to a number of bytes or characters."""
    def readuntil(self, delimiter: bytes | str | int = 10) -> T:
        """The data up to a delimiter, including it; at the end the rest, or nothing."""
    def peek(self: Reader[bytes], size: int | None = 0, /) -> bytes:
        """The content of the buffer, after one read if it is empty. Nothing is consumed."""
    def waits(self) -> bool | None:
        """Whether the next batch requires a wait; `None` if unknown, as for a function."""
    def waits_for(self) -> int | None:
        """The file descriptor that is readable when the next batch requires no wait, if there is one."""
    @property
    def terminator(self) -> bytes:
        """The bytes that end a record when it is written again."""
    def cancel(self) -> None:
        """Ends a wait of another thread, which raises `Cancelled`; if no thread waits, the next call does."""
    def close(self) -> None:
        """Ends the reading at the current position, and stops its commands: within two seconds. An error that ended the
        reading is raised again, unless a time limit caused it."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def name(self) -> str:
        """The name of the source in error messages."""
    @property
    def mode(self) -> Literal["rb", "r"]:
        """`"rb"`, or `"r"` if there is an encoding."""
    @property
    def closed(self) -> bool: ...
    @property
    def position(self) -> tuple[int, int]:
        """How many bytes and records have been taken."""
    @property
    def ends(self) -> list[CommandEnd]:
        """How commands ended, for those that have ended so far: a list of `CommandEnd`."""
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
class BinaryReader(Reader[bytes]): ...

@final
class TextReader(Reader[str]):
    @property
    def encoding(self) -> str: ...
    @property
    def errors(self) -> str: ...
    @property
    def newlines(self) -> None: ...

@final
class Table:
    """Columns of equal length, each with its name and type.

    `table[name]` is a column: numbers as a numpy array, read-only and not copied; text as objects. For missing values,
    floating point numbers are NaN, integers are masked, and objects are `None`. `len(table)` is the number of rows.
    Through Arrow's PyCapsule interface, pyarrow, polars and pandas accept a table without a copy."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
    def keys(self) -> tuple[str, ...]:
        """The names of the columns, so that `dict(table)` has all columns."""
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int:
        """The number of rows."""
    def __getitem__(self, name: str, /) -> np.ndarray[Any, Any]:
        """A column: see the class."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class CommandWriterOptions(WriterSettings, total=False):
    """The options of a writer to a command."""

    current_dir: str | PathLike[str] | None
    env: Mapping[str, str] | None
    stderr: Stderr
    allow_failure: bool

@final
class Job:
    """A job that writes parts to a directory, which become visible together or not at all.

        job = ms.Job.begin("out")
        parts = []
        for task in range(3):
            with job.part(task, ".txt") as part:
                part.write(f"from task {task}\\n")
            parts.append(part.result)
        job.commit(parts)

    `begin` locks the directory, which must be empty. The job can be pickled, so that any process can write parts, and
    the results of the parts can be pickled too. A task can be attempted any number of times, also at the same time:
    `commit` gets the part of one successful attempt. It first writes a manifest that lists the parts, then moves all of
    them to their names, and creates `_SUCCESS` last. Programs that list the directory must wait for `_SUCCESS`.

    If the process that commits is killed, `millstream commit resume DIRECTORY` completes the job if it has a manifest,
    and `millstream commit abort DIRECTORY` removes it. The directory must be in a file system that all processes
    share, or a URL: `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`. A pickled job has no options of a `Remote`: see
    `with_remote`."""

    @staticmethod
    def begin(directory: Location) -> Job:
        """Begins a job that writes to an empty directory, which is created if it does not exist."""
    @staticmethod
    def join(directory: Location, id: str) -> Job | None:
        """Begins the job with this id, or joins it if another process has begun it. Returns `None` if it has a
        manifest: its parts are certain, and `resume` completes it.

            job = ms.Job.join("out", "0123456789abcdef0123456789abcdef")

        Processes that share only the id can write one job, and work that is repeated after a crash is published once:
        the id, of 32 hexadecimal digits, names the work."""
    @staticmethod
    def resume(directory: Location) -> None:
        """Completes the job of a directory whose process was killed after it had written the manifest, as
        `millstream commit resume` does. If the job is complete, nothing changes."""
    @staticmethod
    def parts(directory: Location) -> list[str] | None:
        """The paths or URLs of the parts of a complete job, in the order of their tasks, or `None` if the directory has
        no job.

        Other files in the directory are ignored. An unfinished job is an error that names the command to run."""
    @classmethod
    def from_json(cls, json: str) -> Job:
        """A job from JSON."""
    def to_json(self) -> str:
        """The job as one line of JSON."""
    @property
    def id(self) -> str:
        """The id of the job: 32 hexadecimal digits."""
    @property
    def directory(self) -> str:
        """The absolute path of the directory, or its URL."""
    def with_remote(self, remote: Remote) -> Job:
        """The same job with options for its requests, which JSON and pickle do not contain, because headers may be
        secret.

            job = job.with_remote(ms.Remote(job.directory, endpoint="http://127.0.0.1:9000"))"""
    def part(self, task: int, extension: str = "") -> PartWriter:
        """Begins the part of an attempt of a task. `extension` is the end of its name, such as `".csv"`."""
    def commit(self, parts: Sequence[Part]) -> None:
        """Makes these parts visible, at most one of each task. If this fails before the manifest is written, none is.
        It can be called again with the same parts."""
    def abort(self) -> None:
        """Removes the job and all of its parts, unless it is complete. Calling this again does nothing."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Part:
    """The result of a task of a `Job`: a complete part, which `commit` makes visible. It can be pickled."""

    @classmethod
    def from_json(cls, json: str) -> Part:
        """A part from JSON."""
    def to_json(self) -> str:
        """The part as one line of JSON."""
    @property
    def task(self) -> int:
        """The number of the task."""
    @property
    def name(self) -> str:
        """The name of the file when it is visible."""
    @property
    def size(self) -> int:
        """The size in bytes."""
    @property
    def hash(self) -> str:
        """The hash of its bytes, such as `"blake3:af13..."`."""
    @property
    def records(self) -> int | None:
        """The number of records, or `None` if the task did not count them."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class PartWriter:
    """Writes the part of one attempt of a task: `Job.part` creates it.

    `close`, which `with` calls, completes the part, and then `result` is what `Job.commit` needs. After an exception,
    `with` discards the part, and so does garbage collection without `close`. One call at a time."""

    def write(self, data: Buffer | str, /) -> int:
        """Writes bytes or UTF-8 text, and returns the number of bytes."""
    def add_records(self, count: int) -> None:
        """Adds to the number of records, which the manifest contains."""
    def close(self) -> None:
        """Completes the part: all of its bytes are on the disk or in the store, and `result` can be read."""
    def abort(self) -> None:
        """Discards the part."""
    @property
    def result(self) -> Part:
        """The part, after `close`."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether the part is complete or discarded."""
    def tell(self) -> int:
        """Bytes written so far."""
    def flush(self) -> None:
        """Does nothing: `close` writes everything."""
    def writable(self) -> bool: ...
    def readable(self) -> bool: ...
    def seekable(self) -> bool: ...

@final
class WriterEnd:
    """How a writer ended."""

    @property
    def bytes(self) -> int:
        """Bytes accepted."""
    @property
    def written(self) -> int:
        """Bytes passed to the system, after encoding."""
    @property
    def memory(self) -> builtins.bytes | None:
        """Everything that was written, if the sink was memory."""
    @property
    def commands(self) -> list[CommandEnd]:
        """How the commands ended."""

@final
class Writer:
    """Writes records to a sink: `Writer.path`, `fd`, `stdout`, `command`, `memory` or `callback` creates one.

    Only `close`, which `with` calls, reports whether everything succeeded. After an exception, `with` aborts the writer
    instead: then a file that appears only if it is complete does not appear. A writer that is not closed is flushed
    when it is garbage-collected, and reports a loss; Python's development mode warns of it.

    One call at a time: a call from another thread raises `InUse`."""

    @staticmethod
    def path(path: Location, **options: Unpack[WriterSettings]) -> Writer:
        """A file or an object of a store (see `Remote`), which appears complete when the writer is closed; compressed
        according to the suffix of its name."""
    @staticmethod
    def command(argv: Sequence[str | PathLike[str]], **options: Unpack[CommandWriterOptions]) -> Writer:
        """A command's standard input. `close` raises `CommandFailed` if it fails. The options are also those of
        `millstream.command` for a command, except `stdin`."""
    @staticmethod
    def stdout(**options: Unpack[WriterSettings]) -> Writer:
        """Standard output. Flush before other code prints."""
    @staticmethod
    def fd(fd: int, **options: Unpack[WriterSettings]) -> Writer:
        """A duplicate of a file descriptor, which stays open."""
    @staticmethod
    def memory(**options: Unpack[WriterSettings]) -> Writer:
        """Memory: see `WriterEnd.memory`."""
    @staticmethod
    def callback(write: Callable[[bytes], int | None], **options: Unpack[WriterSettings]) -> Writer:
        """A function, such as the `write` of a file; it returns how many bytes it accepted, or `None` for all."""
    def write(self, data: Buffer | str, /) -> int:
        """Writes bytes or UTF-8 text, and returns the number of bytes."""
    def put(self, *values: object, sep: str = " ", end: str = "\n") -> None:
        """Writes values as `print` does. Numbers and booleans look the same as in every language of Millstream."""
    def _write_buffered(self, data: Buffer | str, /) -> int | None: ...
    def _put_buffered(self, *values: object, sep: str = " ", end: str = "\n") -> bool: ...
    def _drop(self) -> None: ...
    def _give_up(self) -> None: ...
    def writelines(self, lines: Iterable[Buffer | str], /) -> None:
        """Writes pieces of bytes or text; no line ends are added."""
    def flush(self) -> None:
        """Passes everything to the system."""
    def close(self) -> WriterEnd | None:
        """Ends the writing, and reports whether everything succeeded, as a `WriterEnd`; a file appears now. `None` if
        it was closed before. If closing fails, it can be repeated."""
    def abort(self) -> None:
        """Gives up: the content of the buffer is discarded, and a file that appears only if it is complete does not
        appear.

        It does not wait for the sink to accept anything; a command is stopped if it does not exit within two
        seconds."""
    def cancel(self) -> None:
        """Ends a wait of another thread, which raises `Cancelled`; if no thread waits, the next call does."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def name(self) -> str:
        """The name of the sink in error messages."""
    @property
    def closed(self) -> bool: ...
    @property
    def accepted(self) -> int:
        """Bytes accepted so far."""
    def writable(self) -> Literal[True]: ...
    def readable(self) -> Literal[False]: ...
    def seekable(self) -> Literal[False]: ...

class Types:
    """The classes for the types that Python lacks, by MongoDB's names of these types."""

    def __init__(
        self, classes: dict[str, Any], date: type[datetime.datetime] | None, zone: datetime.timezone
    ) -> None: ...

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
    """Records or documents as columns, through Arrow's PyCapsule interface. They can be taken once.

    `columns[name]` is one column as a numpy array, as that of a `Table`. It decodes all columns and keeps them; from
    then on, they can be taken any number of times. The counts are those of the batches that have been taken.

    `unknown`, `mismatched` and `lost_types` are counted for documents, `rejected` and `rejects` for other records."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
    def keys(self) -> tuple[str, ...]:
        """The names of the columns, so that `dict(columns)` has all columns."""
    def __getitem__(self, name: str, /) -> Any: ...
    @property
    def unknown(self) -> int:
        """How many members had no column and how many keys repeated, in the batches that have been taken."""
    @property
    def mismatched(self) -> int:
        """How many values did not fit their column and are null, in the batches that have been taken."""
    @property
    def lost_types(self) -> dict[str, int]:
        """How many values lost their type, by type: symbols and JavaScript become text, bytes have no subtype."""
    @property
    def rejected(self) -> int:
        """How many bad records were left out."""
    @property
    def rejects(self) -> list[tuple[Error, bytes]]:
        """The first 1,000 bad records that were left out: the error and the bytes of each."""
    def take_rejects(self) -> list[tuple[Error, bytes]]:
        """The bad records that were left out since the last call. Only with `keeps`, these are all of them."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def document_columns(
    source: Buffer | Location | Reader[Any],
    *,
    schema: dict[str, Any] | None = None,
    infer: int | None = None,
    mixed: str | None = None,
    mismatch: str | None = None,
    unknown: str | None = None,
    absent: str | None = None,
) -> Columns: ...
def record_columns(
    source: Buffer | Location | Reader[Any],
    framer: Framer | None,
    *,
    header: bool,
    schema: str | None,
    infer: int | Literal["all", "off"],
    nulls: list[str],
    special_numbers: bool,
    decimals: bool,
    duplicates: str,
    ragged: str,
    on_bad: str,
    threads: int,
    names: list[str] | None = None,
    keeps: bool = False,
) -> Columns: ...
def inferred_schema(
    sources: Sequence[Location],
    framer: Framer,
    *,
    header: bool = True,
    nulls: Sequence[str] = (),
    special_numbers: bool = False,
    decimals: bool = False,
    duplicates: str = "error",
    on_bad: str = "stop",
) -> str: ...
