"""Files as a data source of Spark.

    millstream.spark.register(spark)
    spark.read.format("millstream").option("framing", "csv").load("orders/*.csv")

The splits and the types are planned once, and each split is a partition. A partition that is read again has the same
rows. The extra is `millstream[spark]`.

The options are text:

- `framing`: `lines` (the default), `csv`, `delimited` with the option `delimiter`, `jsonl`, or `bson`, which needs a
  `schema`.
- `schema`: the types as JSON, in the form of docs/types.md, or for BSON that of `millstream.bson.columns`, such as
  `{"_id": "objectId", "price": "double"}`. A schema of Spark is not accepted.
- `columns`: the names of the columns that are returned, separated by commas. Spark does not report which ones a query
  needs, so this makes reading faster.
- `splitSize`, `decode`, `pin`, `rejects`, `header`, `quote`, `escape`, `comment`, `infer`, `nulls`, `specialNumbers`,
  `decimals` and `duplicates` are those of the functions of other engines. Boolean values are `true` or `false`. `nulls`
  are separated by commas, and an empty text is the empty field. An empty `quote`, `escape` or `comment` is none.
- `limit`: the most rows of each partition. It cannot be combined with `rejects`.
- `pushFilters`: `true` applies filters before the rows are sent to Spark. Spark then requires its setting
  `spark.sql.python.filterPushdown.enabled`.

`spark.readStream` reads files and objects that appear, each of them once, with the same options but `limit`, `pin`,
`rejects` and `pushFilters`. All formats but lines need a `schema`. An offset contains the names of the files of a batch
and their versions, so that a batch that is repeated has the same rows, or fails if a file has changed.

- `order`: `name` (the default) reads files in the order of their names, and skips those that appear later than a file
  with a greater name. `appearance` reads each file whose name was not there before. Its offsets contain the names of
  all files. A file that is overwritten after it was read is not read again.
- `maxFilesPerTrigger`: the most files of a batch.

Without one of these two options, the start of a stream also plans the files that exist.

A frame is written to an empty directory, each partition as one part. All parts become visible, or none; see
`millstream.Job`. Attempts that fail, are killed, or lose against a speculative copy leave nothing visible:

    frame.write.format("millstream").option("framing", "csv").mode("append").save("copy")

The option `framing` is `lines` (the default), `csv`, `jsonl` or `parquet`. Spark requires the mode `append`.

`frame.writeStream` writes each batch as a job with the directory `PATH/QUERY-BATCH`, where `QUERY` is the id of the
query without hyphens. A batch that is repeated is visible once, and one without rows has no directory."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _engines, _spark_filters
from ._cluster import (
    BsonOptions,
    CsvOptions,
    JsonOptions,
    LinesOptions,
    TablePlan,
    Task,
    declared_schema,
    matching_files,
    plan_bson,
    plan_csv,
    plan_delimited,
    plan_jsonl,
    plan_lines,
    read_split,
    version_of,
    with_version,
)
from ._jobs import FORMATS, Format, Output
from ._native import Job, Part, is_url, option_error

if TYPE_CHECKING:
    import pyarrow as pa

_context: Any = _engines.load("spark", "pyspark.taskcontext")
_source: Any = _engines.load("spark", "pyspark.sql.datasource")
_limits: Any = _engines.load("spark", "pyspark.sql.streaming.datasource")
_types: Any = _engines.load("spark", "pyspark.sql.pandas.types")

__all__ = ["MillstreamSource", "register"]

#: Batches that are larger are not faster in Spark, and take more memory.
_ROWS = 10_000


def register(session: Any) -> None:
    """Makes the format `millstream` known to a session of Spark."""
    session.dataSource.register(MillstreamSource)


class MillstreamSource(_source.DataSource):  # type: ignore[misc]
    """The format `millstream`."""

    _planned: TablePlan | None = None

    @classmethod
    def name(cls) -> str:
        return "millstream"

    def _own_options(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.options.items()}

    def plan(self) -> TablePlan:
        """The plan, which is made once."""
        if self._planned is None:
            options = _ReadOptions(self._own_options())
            self._planned = options.plan(options.path)
        return self._planned

    def schema(self) -> Any:
        options = _ReadOptions(self._own_options())
        declared = options.declared()
        try:
            # This is called for streams as well, which begin without files and plan each batch.
            known = declared if options.is_stream else None
            return _types.from_arrow_schema(self.plan().schema if known is None else known)
        except FileNotFoundError:
            if declared is None:
                raise
            return _types.from_arrow_schema(declared)

    def reader(self, schema: Any) -> Any:
        options, plan = _ReadOptions(self._own_options(), only=_BATCHES), self.plan()
        _check_schema(schema, plan.schema)
        return (_FilteringReader if options.push_filters else _Reader)(plan, options.limit)

    def streamReader(self, schema: Any) -> Any:
        options = _ReadOptions(self._own_options(), only=_STREAMS)
        declared = options.declared()
        if declared is None:
            raise option_error("a stream without the option schema", "the types as JSON in it")
        _check_schema(schema, declared)
        return _StreamReader(options)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        if overwrite:
            raise option_error('the mode "overwrite"', '"append", to an empty directory')
        return _Writer(Output.begin(*_write_options(self._own_options())))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        if overwrite:
            raise option_error('the output mode "complete"', '"append"')
        # Spark keeps the checkpoint.
        return _StreamWriter(*_write_options(self._own_options(), ignored=("checkpointlocation",)))


def _check_schema(schema: Any, planned: pa.Schema) -> None:
    if schema != _types.from_arrow_schema(planned):
        raise option_error("a schema of Spark", "the types as JSON in the option schema")


# Reading


class _Partition(_source.InputPartition):  # type: ignore[misc]
    def __init__(self, task: Task) -> None:
        self.task = task


def _rows(task: Task, limit: int | None = None, filters: Sequence[Any] = ()) -> Iterator[pa.RecordBatch]:
    """The rows of a task. Those that filters remove count for the limit."""
    left = limit
    for batch in read_split(task):
        for begin in range(0, batch.num_rows, _ROWS):
            part = batch.slice(begin, _ROWS if left is None else min(_ROWS, left))
            if left is not None:
                left -= part.num_rows
            part = _spark_filters.apply(filters, part)
            if part.num_rows:
                yield _as_sent(part)
            if left == 0:
                return


def _as_sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with the types of Arrow that Spark expects for its own types, of which it has fewer."""
    schema = _types.to_arrow_schema(_types.from_arrow_schema(batch.schema), timezone="UTC")
    return batch if batch.schema == schema else batch.cast(schema)


class _Reader(_source.DataSourceReader):  # type: ignore[misc]
    def __init__(self, plan: TablePlan, limit: int | None) -> None:
        self._plan = plan
        self._limit = limit
        self._filters: list[Any] = []

    def partitions(self) -> list[_Partition]:
        return [_Partition(task) for task in self._plan.tasks]

    def read(self, partition: _Partition) -> Iterator[pa.RecordBatch]:
        return _rows(partition.task, self._limit, self._filters)


class _FilteringReader(_Reader):
    """A reader that applies filters. Spark refuses it unless its setting for that is true."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        for of in filters:
            if _spark_filters.is_supported(of, self._plan.schema):
                self._filters.append(of)
            else:
                yield of


class _StreamReader(_source.DataSourceStreamReader, _limits.SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads files that appear.

    An offset is the end of a batch: `files` are the names of its files and what detects another version of them. With
    the order of names, `last` is the greatest name so far; otherwise `read` are the names of all files so far that
    still exist."""

    def __init__(self, options: _ReadOptions) -> None:
        self._options = options
        #: The files that exist, if no others are to be read.
        self._available: list[str] | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"files": {}, "last": ""} if self._options.order == "name" else {"files": {}, "read": []}

    def getDefaultReadLimit(self) -> Any:
        most = self._options.max_files
        return _limits.ReadAllAvailable() if most is None else _limits.ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._available = matching_files(self._options.path)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        files = matching_files(self._options.path) if self._available is None else self._available
        read = {*start.get("read", ()), *start["files"]}
        new = sorted(file for file in files if (file > start["last"] if "last" in start else file not in read))
        if isinstance(limit, _limits.ReadMaxFiles):
            new = new[: limit.max_files]
        if not new:
            return start
        end: dict[str, Any] = {"files": {file: version_of(file) for file in new}}
        return end | ({"last": new[-1]} if "last" in start else {"read": sorted(read.intersection(files))})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[_Partition]:
        if start == end:
            return []
        files = end["files"]
        return [_Partition(with_version(task, files)) for task in self._options.plan(list(files)).tasks]

    def read(self, partition: _Partition) -> Iterator[pa.RecordBatch]:
        return _rows(partition.task)


#: What each framing is planned with, and the options of that.
_FRAMINGS: dict[str, tuple[Callable[..., TablePlan], Any]] = {
    "lines": (plan_lines, LinesOptions),
    "csv": (plan_csv, CsvOptions),
    "delimited": (plan_delimited, CsvOptions),
    "jsonl": (plan_jsonl, JsonOptions),
    "bson": (plan_bson, BsonOptions),
}


def _number(least: int, *others: str) -> Callable[[str], Any]:
    """A number that is not less, or one of other texts."""

    def value(text: str) -> Any:
        if text in others:
            return text
        if not (text.isascii() and text.isdecimal() and int(text) >= least):
            raise ValueError(" or ".join([f"a whole number, {least} or more,", *map(json.dumps, others)]).rstrip(","))
        return int(text)

    return value


def _choice(*texts: str) -> Callable[[str], str]:
    def value(text: str) -> str:
        if text not in texts:
            raise ValueError(" or ".join(f'"{text}"' for text in texts))
        return text

    return value


def _bool(text: str) -> bool:
    return _choice("true", "false")(text.lower()) == "true"


def _byte(text: str) -> str:
    if len(text.encode()) != 1:
        raise ValueError("one byte")
    return text


def _optional_byte(text: str) -> str | None:
    return _byte(text) if text else None


def _columns(text: str) -> list[str]:
    return [column.strip() for column in text.split(",")]


#: The value of the text of each option, or an error that says what is expected.
_VALUES: dict[str, Callable[[str], Any]] = {
    "split_size": _number(1),
    "schema": str,
    "columns": _columns,
    "decode": _choice("auto", "off"),
    "pin": _choice("none", "identity", "ends", "full"),
    "rejects": str,
    "header": _bool,
    "delimiter": _byte,
    "quote": _optional_byte,
    "escape": _optional_byte,
    "comment": _optional_byte,
    "infer": _number(1, "all", "off"),
    "nulls": lambda text: text.split(","),
    "special_numbers": _bool,
    "decimals": _bool,
    "duplicates": _choice("error", "first", "last"),
    "limit": _number(0),
    "push_filters": _bool,
    "order": _choice("name", "appearance"),
    "max_files_per_trigger": _number(1),
}

#: Options that only streams have, or only other reads. A stream detects itself that a file has changed.
_STREAMS, _BATCHES = ("order", "max_files_per_trigger"), ("limit", "push_filters", "rejects", "pin")


def _spelled(name: str) -> str:
    """The name of an option as it is usual in Spark."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class _ReadOptions:
    """The options of a reader, whose names are in lower case. Streams or other reads have `only` some of them."""

    def __init__(self, options: dict[str, str], only: Sequence[str] = (*_BATCHES, *_STREAMS)) -> None:
        self.framing = options.pop("framing", "lines")
        if self.framing not in _FRAMINGS:
            raise option_error(f"framing={self.framing!r}", ", ".join(_FRAMINGS))
        self._plan, own = _FRAMINGS[self.framing]
        self.path = _path(options, "load(path)")
        names = [name for name in _VALUES if name in own.__annotations__ or name in (*_BATCHES, *_STREAMS)]
        self._given = _values(options, names, self.framing)
        #: Whether it has options that only streams have.
        self.is_stream = not self._given.keys().isdisjoint(_STREAMS)
        for name in {*_BATCHES, *_STREAMS} & self._given.keys() - set(only):
            where = "spark.readStream" if name in _STREAMS else "spark.read"
            raise option_error(f"the option {_spelled(name)}", f"it only for {where}")
        self.limit: int | None = self._given.pop("limit", None)
        self.push_filters: bool = self._given.pop("push_filters", False)
        self.order: str = self._given.pop("order", "name")
        self.max_files: int | None = self._given.pop("max_files_per_trigger", None)
        if self.limit is not None and "rejects" in self._given:
            raise option_error("the options limit and rejects", "one of them: rejects needs splits that are read whole")
        if self.framing == "delimited" and "delimiter" not in self._given:
            raise option_error("framing=delimited without the option delimiter", "one byte")
        if self.framing == "bson":
            self._given["schema"] = _document_types(self._given.get("schema"))

    def plan(self, paths: Any) -> TablePlan:
        return self._plan(paths, **self._given)

    def declared(self) -> pa.Schema | None:
        """The columns, if they are known without a file."""
        schema = self._given.get("schema")
        if schema is None and self.framing != "lines":
            return None
        return declared_schema(self.framing, schema, self._given.get("columns"))


def _values(options: dict[str, str], names: Sequence[str], framing: str) -> dict[str, Any]:
    """The values of options, which have these names."""
    known = {_spelled(name).lower(): name for name in names}
    values = {}
    for option, text in options.items():
        if option not in known:
            expected = ", ".join(map(_spelled, names))
            raise option_error(f"the option {option!r} with framing={framing}", f"framing, {expected}")
        name = known[option]
        try:
            values[name] = _VALUES[name](text)
        except ValueError as error:
            raise option_error(f"{_spelled(name)}={text!r}", str(error)) from None
    return values


def _document_types(text: str | None) -> dict[str, Any]:
    """The types of the columns of BSON."""
    expected = 'the types as JSON, such as {"_id": "objectId", "price": "double"}'
    if text is None:
        raise option_error("framing=bson without the option schema", expected)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name twice")
        return dict(pairs)

    try:
        types = json.loads(text, object_pairs_hook=members)
    except ValueError as error:
        raise option_error(f"schema={text!r} ({error})", expected) from None
    if not isinstance(types, dict):
        raise option_error(f"schema={text!r}", expected)
    return types


def _path(options: dict[str, str], example: str) -> str:
    path = options.pop("path", None)
    if path is None:
        raise option_error("no path", f"one, such as {example}")
    return path


# Writing


@dataclasses.dataclass
class _Message(_source.WriterCommitMessage):  # type: ignore[misc]
    part: Part | None
    #: The id of the query, for a task of a stream that has rows.
    query: str = ""


def _parts(messages: Sequence[_Message | None]) -> list[Part | None]:
    if None in messages:
        raise option_error(f"no message of partition {messages.index(None)}", "one of each partition")
    return [message.part for message in messages if message is not None]


class _Writer(_source.DataSourceArrowWriter):  # type: ignore[misc]
    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Message:
        return _Message(self._output.write(_context.TaskContext.get().partitionId(), iterator))

    def commit(self, messages: Sequence[_Message | None]) -> None:
        self._output.commit(_parts(messages))

    def abort(self, messages: Sequence[_Message | None]) -> None:
        self._output.job.abort()


class _StreamWriter(_source.DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writes each batch as a job whose directory and id depend only on the query and the batch. So a batch that is
    repeated is the same job, which is completed once."""

    def __init__(self, path: str, format: Format) -> None:
        self._path = path if is_url(path) else os.path.abspath(path)
        self._format: Format = format

    def _directory(self, query: str, batch: int) -> str:
        return f"{self._path.rstrip('/')}/{query}-{batch:010}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Message:
        first = next(iterator, None)
        if first is None:
            return _Message(None)
        context = _context.TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId").replace("-", "")
        job = Job.join(self._directory(query, int(context.getLocalProperty("streaming.sql.batchId"))), query)
        # If it has a manifest, an earlier attempt of the batch has written it completely.
        rows = itertools.chain([first], iterator)
        part = None if job is None else Output(job, self._format).write(context.partitionId(), rows)
        return _Message(part, query)

    def commit(self, messages: Sequence[_Message | None], batchId: int) -> None:
        parts = _parts(messages)
        query = next((message.query for message in messages if message is not None and message.query), None)
        if query is None:
            # The batch has no rows, and so no job. Spark begins with such a batch if no file exists.
            return
        directory = self._directory(query, batchId)
        job = Job.join(directory, query)
        if job is None:
            Job.resume(directory)
        else:
            Output(job, self._format).commit(parts)

    def abort(self, messages: Sequence[_Message | None], batchId: int) -> None:
        """Leaves the job, of which nothing is visible: when the query is started again, it repeats the batch."""


def _write_options(options: dict[str, str], ignored: Sequence[str] = ()) -> tuple[str, Format]:
    """The directory and the format of a frame."""
    framing, path = options.pop("framing", "lines"), _path(options, "save(path)")
    for name in options.keys() - set(ignored):
        raise option_error(f"the option {name!r}", "framing")
    for format in FORMATS:
        if framing == format:
            return path, format
    raise option_error(f"framing={framing!r}", ", ".join(FORMATS))
