"""Files as a data source of Spark.

    millstream.spark.register(spark)
    spark.read.format("millstream").option("framing", "csv").load("orders/*.csv")

The splits and the types are planned once, and each split is a partition. A partition that is read again has the same
rows. The extra is `millstream[spark]`.

The options are text:

- `framing`: `lines` (the default), `csv`, `delimited` with the option `delimiter`, or `jsonl`. `header` is `true` or
  `false`.
- `splitSize`: the size of a split in bytes, 128 MiB by default.
- `schema`: the types as JSON, in the form of docs/types.md. A schema of Spark is not accepted.
- `columns`: the names of the columns that are returned, separated by commas. Spark does not report which ones a query
  needs, so this makes reading faster.
- `limit`: the most rows of each partition.
- `rejects`: a directory or its URL for bad records, which are then left out: see `millstream.arrow.count_rejects`. It
  cannot be combined with `limit`.
- `pushFilters`: `true` applies filters before the rows are sent to Spark. Spark then requires its setting
  `spark.sql.python.filterPushdown.enabled`.

`spark.readStream` reads files and objects that appear, each of them once, with the same options but `limit`,
`rejects` and `pushFilters`. All formats but lines need a `schema`. An offset contains the names of the files of a batch
and their versions, so that a batch that is repeated has the same rows, or fails if a file has changed.

- `order`: `name` (the default) reads files in the order of their names, and skips those that appear later than a file
  with a greater name. `appearance` reads each file that was not there before. Its offsets contain the names of all
  files.
- `maxFilesPerTrigger`: the most files of a batch.

Without one of these two options, the start of a stream also plans the files that exist.

A frame is written to an empty directory, each partition as one part. All parts become visible, or none; see
`millstream.Job`. Attempts that fail, are killed, or lose against a speculative copy leave nothing visible:

    frame.write.format("millstream").option("framing", "csv").mode("append").save("copy")

The option `framing` is `lines` (the default), `csv`, `jsonl` or `parquet`. Spark requires the mode `append`.

`frame.writeStream` writes each batch as a job with the directory `PATH/QUERY-BATCH`, where `QUERY` is the id of the
query without hyphens. A batch that is repeated is visible once."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _engines, _spark_filters
from ._cluster import (
    TablePlan,
    Task,
    declared_schema,
    matching_files,
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
                yield part
            if left == 0:
                return


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


_FRAMINGS = {"lines": plan_lines, "csv": plan_csv, "delimited": plan_delimited, "jsonl": plan_jsonl}


#: Options that only streams have, or only other reads.
_STREAMS, _BATCHES = ("order", "maxfilespertrigger"), ("limit", "pushfilters", "rejects")


class _ReadOptions:
    """The options of a reader, whose names are in lower case. Streams or other reads have `only` some of them."""

    def __init__(self, options: dict[str, str], only: Sequence[str] = (*_BATCHES, *_STREAMS)) -> None:
        for name in {*_BATCHES, *_STREAMS} & options.keys() - set(only):
            where = "spark.readStream" if name in _STREAMS else "spark.read"
            raise option_error(f"the option {name!r}", f"it only for {where}")
        #: Whether it has options that only streams have.
        self.is_stream = not options.keys().isdisjoint(_STREAMS)
        self.framing = options.pop("framing", "lines")
        if self.framing not in _FRAMINGS:
            raise option_error(f"framing={self.framing!r}", ", ".join(_FRAMINGS))
        self.path = _path(options, "load(path)")
        limit, self.push_filters = options.pop("limit", None), _bool(options, "pushfilters", "false")
        self.limit = None if limit is None else int(limit)
        most, self.order = options.pop("maxfilespertrigger", None), options.pop("order", "name")
        self.max_files = None if most is None else int(most)
        if self.order not in ("name", "appearance"):
            raise option_error(f"order={self.order!r}", '"name" or "appearance"')
        self._given: dict[str, Any] = {}
        if "header" in options:
            self._given["header"] = _bool(options, "header")
        if self.limit is not None and "rejects" in options:
            raise option_error("the options limit and rejects", "one of them: rejects needs splits that are read whole")
        for name, value in options.items():
            if name == "splitsize":
                self._given["split_size"] = int(value)
            elif name == "columns":
                self._given["columns"] = [column.strip() for column in value.split(",")]
            elif name in ("schema", "delimiter", "rejects"):
                self._given[name] = value
            else:
                raise option_error(
                    f"the option {name!r}",
                    "framing, splitSize, schema, columns, limit, pushFilters, rejects, header, delimiter, order or "
                    "maxFilesPerTrigger",
                )

    def plan(self, paths: Any) -> TablePlan:
        plan: Any = _FRAMINGS[self.framing]
        return plan(paths, **self._given)  # type: ignore[no-any-return]

    def declared(self) -> pa.Schema | None:
        """The columns, if they are known without a file."""
        schema = self._given.get("schema")
        if schema is None and self.framing != "lines":
            return None
        return declared_schema("lines" if self.framing == "lines" else "jsonl", schema, self._given.get("columns"))


def _bool(options: dict[str, str], name: str, default: str = "") -> bool:
    value = options.pop(name, default)
    if value.lower() not in ("true", "false"):
        raise option_error(f"{name}={value!r}", '"true" or "false"')
    return value.lower() == "true"


def _path(options: dict[str, str], example: str) -> str:
    path = options.pop("path", None)
    if path is None:
        raise option_error("no path", f"one, such as {example}")
    return path


# Writing


@dataclasses.dataclass
class _Message(_source.WriterCommitMessage):  # type: ignore[misc]
    part: Part | None
    #: The id of the query, for a stream.
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
        context = _context.TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId").replace("-", "")
        job = Job.join(self._directory(query, int(context.getLocalProperty("streaming.sql.batchId"))), query)
        # If it has a manifest, an earlier attempt of the batch has written it completely.
        part = None if job is None else Output(job, self._format).write(context.partitionId(), iterator)
        return _Message(part, query)

    def commit(self, messages: Sequence[_Message | None], batchId: int) -> None:
        parts = _parts(messages)
        if not messages or messages[0] is None:
            return
        directory = self._directory(messages[0].query, batchId)
        job = Job.join(directory, messages[0].query)
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
