"""Plans of tables: files and objects are divided into splits, and any process can turn a split into Arrow batches.

The engines (`millstream.ray`, `millstream.dask`, ...) are thin modules over `plan_lines`, `plan_csv`, `plan_delimited`,
`plan_jsonl` and `plan_bson`, which run once on the driver, and `read_split`, which runs in the tasks."""

from __future__ import annotations

import base64
import concurrent.futures
import dataclasses
import errno
import fnmatch
import glob
import hashlib
import itertools
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypedDict, TypeVar

from . import _engines
from ._columns import columns as columns_of
from ._errors import Error
from ._native import (
    Framer,
    Job,
    Remote,
    SharedPass,
    Split,
    Splits,
    Writer,
    document_columns,
    follow_part,
    inferred_schema,
    is_directory_of_objects,
    is_pattern_of_objects,
    is_url,
    location_name,
    matching_objects,
    option_error,
    plan_objects,
    record_columns,
)
from ._open import open as open_path
from ._open import open_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    import pyarrow as pa

    from ._columns import DataType
    from ._native import Columns, ListedObject
    from .bson import ColumnType

#: The size of a split in bytes.
SPLIT_SIZE = 128 << 20

#: The size of the parts of a pass that other processes make.
_PART_SIZE = 256 << 20

#: How many objects are opened at the same time.
_AHEAD = 16

#: How often a split is read again after an error that may pass, and the first pause in seconds, which doubles.
_RETRIES = 3
_PAUSE = 0.2

#: Errors of the system that may pass.
_TRANSIENT = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.EINTR,
    errno.EIO,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
    errno.ESTALE,
    errno.ETIMEDOUT,
}

#: The most records from which types are inferred by default.
_INFER = 10_000


class PlanOptions(TypedDict, total=False):
    """The options of every plan.

    `split_size` is the size of a split in bytes: 128 MiB by default. `columns` are the columns that are returned, in
    this order. With `decode="off"`, files are not decoded; the objects of a pattern are then planned without a request
    for each of them, if their records need no pass. `pin` is what detects another version of a file: `"identity"`
    (size, modification time and inode) by default, or `"ends"` or `"full"` for copies on other machines, as for
    `Splits.plan`."""

    split_size: int
    columns: Sequence[str] | None
    pin: Literal["none", "identity", "ends", "full"]
    decode: Literal["auto", "off"]


class LinesOptions(PlanOptions, total=False):
    """The options of lines. With `schema={"line": "binary"}`, lines need not be UTF-8.

    With `rejects`, a directory or its URL, bad records are left out, and each split writes its own to a file there:
    see `count_rejects`. `on_bad` follows from it: `"skip"`, or `"stop"` without it."""

    schema: Mapping[str, DataType] | str | None
    on_bad: Literal["stop", "skip"]
    rejects: str | os.PathLike[str] | None


class JsonOptions(LinesOptions, total=False):
    """The options of newline-delimited JSON: those of `millstream.columns`. Types are inferred from the first file that
    is not empty, or with `infer="all"` from all records of all files, which this process then reads once more."""

    infer: int | Literal["all", "off"]
    decimals: bool
    duplicates: Literal["error", "first", "last"]


#: Calls a function with each of these values, in any processes, and returns the results in the same order.
Map: TypeAlias = "Callable[[Callable[[str], str], Sequence[str]], Iterable[str]]"


class DelimitedOptions(LinesOptions, total=False):
    """The options of delimited text: those of `millstream.columns` and `Framer.csv`. Types are inferred from the first
    file, or with `infer="all"` from all records of all files, which this process then reads once more.

    With `map`, other processes read the files to plan them, 256 MiB for each call, and this process composes what they
    found: `millstream.ray.map_tasks`, `millstream.dask.map_tasks`, or the method `map` of an executor of
    `concurrent.futures`. The plan is the same as without it."""

    map: Map | None
    header: bool
    quote: str | None
    escape: str | None
    comment: str | None
    infer: int | Literal["all", "off"]
    nulls: Iterable[str]
    special_numbers: bool
    decimals: bool


class CsvOptions(DelimitedOptions, total=False):
    """The options of CSV: those of delimited text, and the delimiter."""

    delimiter: str


class BsonOptions(PlanOptions, total=False):
    """The options of BSON documents: the columns, as for `bson.columns`. A column that no document has is null."""

    schema: Mapping[str, ColumnType]


#: One file or object, or several. Text with `*`, `?` or `[` that is not the name of a file is a pattern, as is the URL
#: of a store with `*`; `**` stands for any directories. The directory of a job stands for the parts in its manifest.
#: Each process takes the credentials of objects from its environment.
Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One split, and how its records become columns. It is complete by itself and can be pickled.

    `rows` is the number of its rows if the plan knows it and no record is left out, and `size` is that of its bytes,
    after decoding if that is known."""

    #: The split as JSON.
    split: str
    #: The number of the split in the plan; the first is 0.
    number: int
    size: int
    rows: int | None
    format: Literal["lines", "csv", "jsonl", "bson"]
    #: The columns that are returned.
    columns: tuple[str, ...]
    #: The types of all columns, as JSON. See `_parsed`.
    types: str
    #: The names of the fields of a record of CSV.
    names: tuple[str, ...] = ()
    #: The start of the header of CSV in the file, if it has one.
    header: int | None = None
    nulls: tuple[str, ...] = ()
    special_numbers: bool = False
    decimals: bool = False
    duplicates: str = "error"
    #: The file of the bad records that are left out.
    rejects: str | None = None


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """A table: its columns, and the tasks whose rows, in order, are its rows. The same files and options give the same
    plan."""

    tasks: tuple[Task, ...]
    schema: pa.Schema

    @property
    def size(self) -> int:
        """The number of bytes of all tasks."""
        return sum(task.size for task in self.tasks)

    def select(self, columns: Sequence[str]) -> TablePlan:
        """The plan of only these columns, in this order. If the types were given, others are not parsed."""
        names = tuple(_chosen(self.schema, columns))
        tasks = (dataclasses.replace(task, columns=names) for task in self.tasks)
        return TablePlan(tuple(tasks), _selected(self.schema, names))


def plan_lines(paths: Paths, **options: Unpack[LinesOptions]) -> TablePlan:
    """Plans the lines of files, without reading them: a table with one column, `line`."""
    schema, plan = _split_options(paths, options)
    plan.pop("on_bad")
    files = _files(paths)
    fields, arrow = _types(columns_of(b"", "lines", schema=schema, threads=1))
    task = {"format": "lines", "types": _as_json(fields)}
    framer = Framer.lines()
    return _plan(arrow, ((path, framer, task) for path in files), **plan)


def plan_jsonl(paths: Paths, **options: Unpack[JsonOptions]) -> TablePlan:
    """Plans newline-delimited JSON: each line is an object, whose members are the columns."""
    schema, plan = _split_options(paths, options)
    plan, own = _divide(plan)
    files = _files(paths)
    infer = own.pop("infer", _INFER)
    framer = Framer.json_lines()
    first = next((path for path in files if Splits.plan(path, decode="off").file_size), files[0])
    fields, arrow = _types(_columns(files, first, framer, schema=schema, infer=infer, **own))
    own.pop("on_bad")
    task = {"format": "jsonl", "types": _as_json(fields, inferred=schema is None), **own}
    return _plan(arrow, ((path, framer, task) for path in files), **plan)


def plan_csv(paths: Paths, **options: Unpack[CsvOptions]) -> TablePlan:
    """Plans CSV. Each file is read once, because a line feed can be inside quotes."""
    rest: Any = {**options}
    delimiter = rest.pop("delimiter", ",")
    return _plan_delimited(paths, delimiter, {"quote": '"', **rest})


def plan_delimited(paths: Paths, delimiter: str, **options: Unpack[DelimitedOptions]) -> TablePlan:
    """Plans text whose fields are separated by a delimiter, without quotes by default."""
    return _plan_delimited(paths, delimiter, {"quote": None, **options})


def _plan_delimited(paths: Paths, delimiter: str, options: dict[str, Any]) -> TablePlan:
    schema, rest = _split_options(paths, options)
    plan, own = _divide(rest)
    dialect = {name: own.pop(name) for name in ("quote", "escape", "comment") if name in own}
    framer = Framer.csv(delimiter, **dialect)
    files = _files(paths)
    header, infer = own.pop("header", True), own.pop("infer", _INFER)
    own["nulls"] = tuple(own.get("nulls", ()))
    plan["map"] = own.pop("map", None)
    fields, arrow = _types(_columns(files, files[0], framer, header=header, schema=schema, infer=infer, **own))
    own.pop("on_bad")
    task = {"format": "csv", "types": _as_json(fields, inferred=schema is None), **own}

    def parts() -> Iterator[tuple[str, Framer, dict[str, Any]]]:
        for path in files:
            # An error if its columns are others.
            _records(path, framer, header, task, 1)
            names, begin = _first_record(path, framer)
            if not header:
                names = [str(number) for number in range(len(names))]
            yield path, framer, {**task, "names": tuple(names), "header": begin if header else None}

    return _plan(arrow, parts(), **plan)


def plan_bson(paths: Paths, **options: Unpack[BsonOptions]) -> TablePlan:
    """Plans BSON documents. Each file is read once, and the number of rows of each task is known."""
    schema, plan = _split_options(paths, options)
    if plan.pop("on_bad") == "skip":
        raise option_error("rejects for BSON", "none: a document that is not valid is an error")
    if schema is None:
        raise option_error("no schema for BSON", 'one, such as schema={"_id": "objectId", "price": "double"}')
    files = _files(paths)
    arrow = _document_schema(schema)
    task = {"format": "bson", "types": json.dumps(schema)}
    return _plan(arrow, ((path, Framer.bson(), task) for path in files), **plan)


_Table = TypeVar("_Table")


class Readers(Generic[_Table]):
    """The functions of an engine, which pass a plan to `read`."""

    def __init__(self, read: Callable[[TablePlan], _Table]) -> None:
        self._read = read

    def lines(self, paths: Paths, **options: Unpack[LinesOptions]) -> _Table:
        """Reads lines as one column, `line`."""
        return self._read(plan_lines(paths, **options))

    def csv(self, paths: Paths, **options: Unpack[CsvOptions]) -> _Table:
        """Reads CSV."""
        return self._read(plan_csv(paths, **options))

    def delimited(self, paths: Paths, delimiter: str, **options: Unpack[DelimitedOptions]) -> _Table:
        """Reads text whose fields are separated by a delimiter, without quotes by default."""
        return self._read(plan_delimited(paths, delimiter, **options))

    def jsonl(self, paths: Paths, **options: Unpack[JsonOptions]) -> _Table:
        """Reads newline-delimited JSON."""
        return self._read(plan_jsonl(paths, **options))

    def bson(self, paths: Paths, **options: Unpack[BsonOptions]) -> _Table:
        """Reads BSON documents into the columns of a schema. The number of rows of each split is known."""
        return self._read(plan_bson(paths, **options))


def _split_options(paths: Paths, options: Any) -> tuple[Any, dict[str, Any]]:
    """The schema, and the other options, which then have `on_bad`."""
    rest = dict(options)
    rejects, on_bad = rest.get("rejects"), rest.get("on_bad")
    if on_bad not in (None, "stop", "skip"):
        raise option_error(f"on_bad={on_bad!r}", "'stop' or 'skip'")
    if on_bad == "skip" and rejects is None:
        raise option_error('on_bad="skip" without rejects', "rejects=DIRECTORY, where tasks write what they leave out")
    if on_bad == "stop" and rejects is not None:
        raise option_error('rejects with on_bad="stop"', "one of them")
    if rejects is not None:
        _check_rejects(paths, os.fspath(rejects))
    rest["on_bad"] = "stop" if rejects is None else "skip"
    return rest.pop("schema", None), rest


def _divide(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divides options into those of `_plan` and others."""
    own = {*PlanOptions.__annotations__, "rejects"}
    return (
        {name: value for name, value in options.items() if name in own},
        {name: value for name, value in options.items() if name not in own},
    )


def _some(parts: list[str], name: str) -> list[str]:
    """The parts of a job, at least one."""
    if not parts:
        raise option_error(f"the job in {name}, which wrote no parts", "at least one")
    return parts


class _Listed(str):
    """The URL of an object that was found in a list, with its entry, which has the version."""

    entry: ListedObject

    def __new__(cls, entry: ListedObject) -> _Listed:
        url = super().__new__(cls, entry.url)
        url.entry = entry
        return url


def _files(paths: Paths) -> list[str]:
    """The files, in the order of the arguments; those of a pattern are in the order of their names."""
    files: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        name = os.fspath(path)
        if isinstance(path, str) and is_directory_of_objects(path) and (parts := Job.parts(path)) is not None:
            files.extend(_some(parts, path))
        elif isinstance(path, str) and is_url(path):
            found = [_Listed(entry) for entry in matching_objects(path)] if is_pattern_of_objects(path) else [path]
            if not found:
                raise FileNotFoundError(errno.ENOENT, f"{path}: no object matches the pattern", path)
            files.extend(found)
        elif isinstance(path, str) and glob.has_magic(path) and not os.path.exists(path):
            found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)), key=os.fsencode)
            if not found:
                message = f"{path}: no file matches the pattern"
                raise FileNotFoundError(errno.ENOENT, message, path)
            # An error if one has an unfinished job, of which the pattern matches only some parts.
            for directory in {os.path.dirname(file) or "." for file in found}:
                Job.parts(directory)
            files.extend(map(os.path.abspath, found))
        elif os.path.isdir(path) and (parts := Job.parts(path)) is not None:
            files.extend(map(os.path.abspath, _some(parts, name)))
        else:
            files.append(os.path.abspath(name))
    if not files:
        raise option_error("no path", "at least one")
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        # The query of a URL may be secret.
        raise option_error(f"{location_name(twice)} twice", "each file or object once")
    for file in files:
        try:
            file.encode()
        except UnicodeEncodeError:
            raise option_error(f"the path {os.fsencode(file)!r}", "a path in UTF-8") from None
    return files


def matching_files(path: str) -> list[str]:
    """The files of a path or pattern, or none."""
    try:
        return _files(path)
    except FileNotFoundError:
        return []


def version_of(file: str) -> str:
    """What detects another version of a file or object, as JSON."""
    [whole] = Splits.plan(file, size=2**63 - 1, decode="off")
    return json.dumps(json.loads(whole.to_json())["pin"])


def with_version(task: Task, versions: Mapping[str, str]) -> Task:
    """The task for the version of its file that these names have. If that is another one, reading it is an error."""
    split = Split.from_json(task.split)
    version = versions[split.url or os.fspath(split.path or "")]
    return dataclasses.replace(task, split=json.dumps({**json.loads(task.split), "pin": json.loads(version)}))


def declared_schema(format: str, schema: Any, columns: Sequence[str] | None) -> pa.Schema:
    """The columns of a plan with a schema, without a file."""
    if format == "bson":
        returned = _document_schema(schema)
    else:
        known: Any = "lines" if format == "lines" else "jsonl"
        returned = _returned(_schema(columns_of(b"", known, schema=schema, threads=1)))
    return _selected(returned, _chosen(returned, columns))


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    names = schema.names if columns is None else list(columns)
    for name in names:
        if name not in schema.names:
            raise option_error(f"the column {name!r}", f"one of {', '.join(schema.names)}")
    return names


def _plan(
    schema: pa.Schema,
    parts: Iterable[tuple[str, Framer, dict[str, Any]]],
    split_size: int = SPLIT_SIZE,
    columns: Sequence[str] | None = None,
    pin: Literal["none", "identity", "ends", "full"] = "identity",
    decode: Literal["auto", "off"] = "auto",
    rejects: str | os.PathLike[str] | None = None,
    map: Map | None = None,
) -> TablePlan:
    names = _chosen(schema, columns)
    tasks: list[Task] = []
    parts = list(parts)
    plans: Iterator[Splits]
    if map is not None:
        plans = _shared(map, [(path, framer) for path, framer, _ in parts], split_size, pin, decode)
    elif parts and all(is_url(path) for path, _, _ in parts):
        objects = [path.entry if isinstance(path, _Listed) else path for path, _, _ in parts]
        plans = iter(plan_objects(objects, parts[0][1], split_size, pin, decode))
    else:
        plans = (Splits.plan(path, framer, size=split_size, pin=pin, decode=decode) for path, framer, _ in parts)
    for splits, (_, _, options) in zip(plans, parts, strict=True):
        for split in splits:
            end = max(splits.file_size, split.begin) if split.end is None else split.end
            tasks.append(
                Task(
                    split=split.to_json(),
                    number=len(tasks),
                    size=end - split.begin,
                    rows=None if rejects is not None else _rows(split, options.get("header")),
                    columns=tuple(names),
                    **options,
                )
            )
    if rejects is not None:
        tasks = _with_rejects(tasks, rejects)
    return TablePlan(tuple(tasks), _selected(schema, names))


def _shared(
    map: Map,
    files: Sequence[tuple[str, Framer]],
    split_size: int,
    pin: Literal["none", "identity", "ends", "full"],
    decode: Literal["auto", "off"],
) -> Iterator[Splits]:
    """Plans files, whose passes other processes make."""

    def begin(file: tuple[str, Framer]) -> SharedPass | None:
        path, framer = file
        return SharedPass.begin(
            path.entry if isinstance(path, _Listed) else path, framer, split_size, _PART_SIZE, pin, decode
        )

    with concurrent.futures.ThreadPoolExecutor(_AHEAD) as pool:
        passes = list(pool.map(begin, files))
    parts = [[] if shared is None else shared.parts() for shared in passes]
    results = iter(map(_follow, [part for of_file in parts for part in of_file]))
    for (path, framer), shared, of_file in zip(files, passes, parts, strict=True):
        if shared is None:
            yield Splits.plan(path, framer, size=split_size, pin=pin, decode=decode)
        else:
            yield shared.plan(list(itertools.islice(results, len(of_file))))


def _follow(part: str) -> str:
    """Follows the records of a part of a pass. Errors of the system that may pass are retried."""
    for attempt in range(_RETRIES):
        try:
            return follow_part(part)
        except OSError as error:
            if not _may_pass(error):
                raise
        time.sleep(_PAUSE * 2**attempt)
    return follow_part(part)


def _rows(split: Split, header: int | None) -> int | None:
    """The number of rows of a split, if the plan knows it. The header, if there is one, begins at this byte."""
    has_header = header is not None and split.begin <= header and (split.end is None or header < split.end)
    return None if split.rows is None else split.rows - (has_header and split.rows > 0)


# Rejects: each task writes a file whose name depends only on the plan and the task, so repeated attempts replace it.


def _with_rejects(tasks: Sequence[Task], directory: str | os.PathLike[str]) -> list[Task]:
    """The tasks with the files of their rejects."""
    name = os.fspath(directory)
    if not is_url(name):
        name = os.path.abspath(name)
        os.makedirs(name, exist_ok=True)
    plan = hashlib.sha256(json.dumps([dataclasses.asdict(task) for task in tasks]).encode()).hexdigest()[:16]
    files = (f"{name.rstrip('/')}/{plan}-{number:06}-of-{len(tasks):06}.jsonl" for number in range(len(tasks)))
    return [dataclasses.replace(task, rejects=file) for task, file in zip(tasks, files, strict=True)]


def _check_rejects(paths: Paths, directory: str) -> None:
    """Checks that no pattern of the input matches a file of rejects, which another read would then take for input."""
    base = directory if is_url(directory) else os.path.abspath(directory)
    files = [f"{base.rstrip('/')}/{digit * 16}-000000-of-000001.jsonl" for digit in "0123456789abcdef"]
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        if not isinstance(path, str) or is_url(path) != is_url(directory):
            continue
        if is_pattern_of_objects(path):
            pattern, hides = re.sub(r"\{[^/]*?\}", "*", path), False
        elif not is_url(path) and glob.has_magic(path) and not os.path.exists(path):
            pattern, hides = os.path.abspath(path), True
        else:
            continue
        if any(_matches(pattern.split("/"), file.split("/"), hides) for file in files):
            raise option_error(
                f"rejects={directory!r}, whose files the pattern {path!r} matches", "a directory that it does not match"
            )


def _matches(pattern: Sequence[str], name: Sequence[str], hides: bool) -> bool:
    """Whether a pattern matches a name, both divided at slashes. Names that begin with a dot can be hidden."""
    if not pattern or not name:
        return not name and all(part == "**" for part in pattern)
    first, part = pattern[0], name[0]
    is_hidden = hides and part.startswith(".") and not first.startswith(".")
    if first == "**":
        return _matches(pattern[1:], name, hides) or (not is_hidden and _matches(pattern, name[1:], hides))
    return not is_hidden and fnmatch.fnmatchcase(part, first) and _matches(pattern[1:], name[1:], hides)


def count_rejects(directory: str | os.PathLike[str]) -> int:
    """Counts the bad records that were left out, when a table has been read with `rejects=directory`.

        orders = millstream.ray.read_csv("orders/*.csv", rejects="bad")
        millstream.ray.write_parquet(orders, "copy")
        millstream.arrow.count_rejects("bad")

    Each split has written a file, which is empty if it had no bad record. A split that was read again has replaced its
    file. If a split was not read to its end, this is an error."""
    name = os.fspath(directory)
    pattern = f"{name.rstrip('/')}/*.jsonl" if is_url(name) else os.path.join(glob.escape(name), "*.jsonl")
    files = _files(pattern)
    plans: dict[tuple[str, str], list[str]] = {}
    for file in files:
        found = re.fullmatch(r"([0-9a-f]{16})-\d{6,}-of-(\d{6,})\.jsonl", file.rpartition("/")[2])
        if found is None:
            raise option_error(f"the file {location_name(file)}", "files of rejects only")
        plans.setdefault((found[1], found[2]), []).append(file)
    if len(plans) > 1:
        raise option_error(f"the rejects of {len(plans)} reads in {name}", "a directory for each read")
    [(_, count)] = plans
    if len(files) < int(count):
        raise option_error(
            f"the rejects of {len(files)} of {int(count)} splits in {name}", "a table that was read whole"
        )
    total = 0
    for file in files:
        with open_path(file, decode="off") as lines:
            total += sum(1 for _ in lines)
    return total


#: The most bytes of a bad record that are kept, as by the command line.
_RAW = 1 << 20


def _lines_of(columns: Columns) -> bytes:
    """The bad records that were left out since the last call, in the form of `millstream convert --rejects`."""
    lines = (
        {
            "source": error.name,
            "byte": error.offset,
            "record": error.record,
            "line": error.line,
            "column": error.column,
            "kind": error.kind,
            "message": str(error).removesuffix(f"; {error.hint}"),
            "raw": base64.b64encode(raw[:_RAW]).decode(),
        }
        for error, raw in columns.take_rejects()
    )
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines).encode()


def _first_record(path: str, framer: Framer) -> tuple[list[str], int]:
    """The fields of the first record of CSV that is neither blank nor a comment, and where it begins."""
    # Little of an object is needed.
    start = Remote(path, connections=1, range_size=1 << 20) if is_url(path) else path
    with open_path(start, framer=framer) as reader:
        fields = next(reader.rows(), [])
        _, records = reader.position
    with open_path(start, framer=framer) as reader:
        for _ in range(records - 1):
            next(reader)
        return [field.decode(errors="surrogateescape") for field in fields], reader.position[0]


# Types: they are stored as the JSON of a schema.


def _schema(columns: Columns) -> Any:
    arrow: Any = _engines.load("arrow", "pyarrow")
    return arrow.RecordBatchReader.from_stream(columns).schema


def _document_schema(schema: Mapping[str, ColumnType]) -> pa.Schema:
    return _returned(_schema(document_columns(b"", schema=dict(schema), absent="null")))


def _returned(schema: Any) -> pa.Schema:
    """The columns as they are returned: columns of JSON are text."""
    arrow: Any = _engines.load("arrow", "pyarrow")
    return arrow.schema([arrow.field(field.name, _plain(arrow, field.type), field.nullable) for field in schema])


def _plain(arrow: Any, of: Any) -> Any:
    if isinstance(of, arrow.BaseExtensionType):
        return _plain(arrow, of.storage_type)
    if arrow.types.is_struct(of):
        return arrow.struct([arrow.field(inner.name, _plain(arrow, inner.type), inner.nullable) for inner in of])
    if arrow.types.is_list(of):
        inner = of.value_field
        return arrow.list_(arrow.field(inner.name, _plain(arrow, inner.type), inner.nullable))
    return of


def _columns(files: Sequence[str], first: str, framer: Framer, *, schema: Any, infer: Any, **options: Any) -> Columns:
    """The columns of the first file. With `infer="all"`, their types are those of all files together."""
    if schema is None and infer == "all":
        schema = inferred_schema(files, framer, **options)
    return columns_of(first, framer, schema=schema, infer=infer, threads=1, **options)


def _types(columns: Columns) -> tuple[list[dict[str, Any]], pa.Schema]:
    """The fields of the JSON of a schema, and the schema of what is returned."""
    arrow: Any = _engines.load("arrow", "pyarrow")
    schema = _schema(columns)
    return [_stored(arrow, field) for field in schema], _returned(schema)


def _stored(arrow: Any, field: Any) -> dict[str, Any]:
    return {"name": field.name, **_stored_type(arrow, field)}


def _stored_type(arrow: Any, field: Any) -> dict[str, Any]:
    of = field.type
    stored: dict[str, Any] = {} if field.nullable else {"nullable": False}
    if isinstance(of, arrow.BaseExtensionType) or b"ARROW:extension:name" in (field.metadata or {}):
        return {"type": "json", **stored}
    if arrow.types.is_struct(of):
        return {"type": "struct", "fields": [_stored(arrow, inner) for inner in of], **stored}
    if arrow.types.is_list(of):
        return {"type": "list", "item": _stored_type(arrow, of.value_field), **stored}
    name = str(of).replace("tz=", "")
    return {"type": {"double": "float64", "float": "float32", "date32[day]": "date32"}.get(name, name), **stored}


def _as_json(fields: list[dict[str, Any]], *, inferred: bool = False) -> str:
    """The JSON of a schema. Inferred types accept only text that prints back losslessly."""
    return json.dumps({"fields": fields, "inferred": inferred})


def _selected(schema: Any, names: Sequence[str]) -> Any:
    arrow: Any = _engines.load("arrow", "pyarrow")
    return arrow.schema([schema.field(name) for name in names])


def _records(source: Any, framer: Framer, header: bool, task: Mapping[str, Any], threads: int) -> Columns:
    """The columns of records, with the types of a task."""
    return record_columns(
        source,
        framer,
        header=header,
        schema=task["types"],
        infer="off",
        nulls=list(task.get("nulls", ())),
        special_numbers=task.get("special_numbers", False),
        decimals=task.get("decimals", False),
        duplicates=task.get("duplicates", "error"),
        ragged="error",
        on_bad="stop" if task.get("rejects") is None else "skip",
        threads=threads,
        names=None if header or task["format"] != "csv" or "names" not in task else list(task["names"]),
        keeps=True,
    )


# Reading


def read_split(task: Task, *, threads: int = 1) -> Iterator[pa.RecordBatch]:
    """Reads the rows of one split as batches of Arrow. Each call returns the same rows.

    Errors are those of Millstream, with the file, the record and the byte, and a note about the split. A record number
    counts from the start of the file if the plan has followed it (CSV, BSON), and otherwise from the start of the
    split. Errors of the system that may pass are retried as long as no batch was returned."""
    attempt = 0
    while True:
        is_started = False
        try:
            for batch in _batches(task, threads):
                is_started = True
                yield batch
            return
        except Exception as raised:
            error = raised if isinstance(raised, Error) else _error(task, raised)
            if is_started or attempt == _RETRIES or not _may_pass(error):
                raise _located(task, error) from None
        time.sleep(_PAUSE * 2**attempt)
        attempt += 1


def _may_pass(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _TRANSIENT


def _error(task: Task, raised: Exception) -> Exception:
    """The error of Millstream that pyarrow raised as one of its own, which lacks the details: it is raised again by
    reading the columns directly."""
    try:
        columns = _open(task, 1)
        if columns is not None:
            # This decodes all columns, even if there is none.
            columns[(*columns.names, "")[0]]
    except Error as error:
        # It holds columns, which cannot be pickled.
        error.partial = None
        return error
    except KeyError:
        pass
    return raised


def _located(task: Task, error: Exception) -> Exception:
    """The error with the name of its column, options that exist, and a note about the split."""
    split = Split.from_json(task.split)
    if isinstance(error, Error):
        _replace(error, 'or set on_bad="skip"', "or set rejects")
    end = "the end" if split.end is None else split.end
    error.add_note(f"in split {task.number} of the plan: bytes {split.begin} to {end} of {split.name}")
    return error


def _replace(error: Error, old: str, new: str) -> None:
    """Replaces text in an error."""
    if error._message:
        error._message = error._message.replace(old, new)
    if error.expected:
        error.expected = error.expected.replace(old, new)
    error.args = tuple(arg.replace(old, new) if isinstance(arg, str) else arg for arg in error.args)


def _batches(task: Task, threads: int) -> Iterator[pa.RecordBatch]:
    if task.rejects is None:
        columns = _open(task, threads)
        if columns is not None:
            yield from _decoded(task, columns)
        return
    # The file appears when it is closed, and not after an error, or if the rest of the split is not read.
    with Writer.path(task.rejects, existing="replace", encode="off") as out:
        columns = _open(task, threads)
        if columns is not None:
            for batch in _decoded(task, columns):
                out.write(_lines_of(columns))
                yield batch
            out.write(_lines_of(columns))


def _decoded(task: Task, columns: Columns) -> Iterator[pa.RecordBatch]:
    arrow: Any = _engines.load("arrow", "pyarrow")
    reader = arrow.RecordBatchReader.from_stream(columns)
    positions = [reader.schema.names.index(name) for name in task.columns]
    read = [reader.schema.field(position) for position in positions]
    fields = [(name, _plain(arrow, of.type), of.nullable) for name, of in zip(task.columns, read, strict=True)]
    selected = arrow.schema([arrow.field(*field) for field in fields])
    for batch in reader:
        arrays = [batch.column(position) for position in positions]
        cast = [of if of.type == to else of.cast(to) for of, to in zip(arrays, selected.types, strict=True)]
        yield arrow.RecordBatch.from_arrays(cast, schema=selected) if cast else batch.select([])


def _open(task: Task, threads: int) -> Columns | None:
    """The columns of the split; `None` if it has no rows."""
    split = Split.from_json(task.split)
    types = _parsed(task)
    if task.format == "bson":
        return document_columns(open_split(split), schema=types, absent="null")
    if task.header is not None and split.end is not None and split.end <= task.header:
        return None
    has_header = task.header is not None and split.begin <= task.header
    options = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    options["types"] = json.dumps(types)
    return _records(open_split(split), split.framer, has_header, options, threads)


def _parsed(task: Task) -> dict[str, Any]:
    """The types of the columns that are parsed. These are all columns if the types were inferred, because each value
    must fit, and if bad records are left out, because these must be the same whatever is selected."""
    types: dict[str, Any] = json.loads(task.types)
    if task.format == "bson":
        return {name: of for name, of in types.items() if name in task.columns}
    if types["inferred"] or task.rejects is not None:
        return types
    return {**types, "fields": [field for field in types["fields"] if field["name"] in task.columns]}
