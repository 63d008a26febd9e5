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

A frame is written to an empty directory, each partition as one part. All parts become visible, or none; see
`millstream.Job`. Attempts that fail, are killed, or lose against a speculative copy leave nothing visible:

    frame.write.format("millstream").option("framing", "csv").mode("append").save("copy")

The option `framing` is `lines` (the default), `csv`, `jsonl` or `parquet`. Spark requires the mode `append`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import TablePlan, Task, plan_csv, plan_delimited, plan_jsonl, plan_lines, read_split
from ._jobs import FORMATS, Output
from ._native import Part, option_error

if TYPE_CHECKING:
    import pyarrow as pa

_context: Any = _engines.load("spark", "pyspark.taskcontext")
_source: Any = _engines.load("spark", "pyspark.sql.datasource")
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

    def plan(self) -> TablePlan:
        """The plan, which is made once."""
        if self._planned is None:
            self._planned = _plan({name.lower(): value for name, value in self.options.items()})
        return self._planned

    def schema(self) -> Any:
        return _types.from_arrow_schema(self.plan().schema)

    def reader(self, schema: Any) -> Any:
        plan = self.plan()
        if schema != _types.from_arrow_schema(plan.schema):
            raise option_error("a schema of Spark", "the types as JSON in the option schema")
        limit = self.options.get("limit")
        return _Reader(plan, None if limit is None else int(limit))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        if overwrite:
            raise option_error('the mode "overwrite"', '"append", to an empty directory')
        return _Writer(_begin({name.lower(): value for name, value in self.options.items()}))


class _Partition(_source.InputPartition):  # type: ignore[misc]
    def __init__(self, task: Task) -> None:
        self.task = task


class _Reader(_source.DataSourceReader):  # type: ignore[misc]
    def __init__(self, plan: TablePlan, limit: int | None) -> None:
        self._plan = plan
        self._limit = limit

    def partitions(self) -> list[_Partition]:
        return [_Partition(task) for task in self._plan.tasks]

    def read(self, partition: _Partition) -> Iterator[pa.RecordBatch]:
        left = self._limit
        for batch in read_split(partition.task):
            for begin in range(0, batch.num_rows, _ROWS):
                part = batch.slice(begin, _ROWS if left is None else min(_ROWS, left))
                if part.num_rows:
                    yield part
                if left is not None:
                    left -= part.num_rows
                    if left == 0:
                        return


@dataclasses.dataclass
class _Message(_source.WriterCommitMessage):  # type: ignore[misc]
    part: Part | None


class _Writer(_source.DataSourceArrowWriter):  # type: ignore[misc]
    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Message:
        return _Message(self._output.write(_context.TaskContext.get().partitionId(), iterator))

    def commit(self, messages: Sequence[_Message | None]) -> None:
        if None in messages:
            raise option_error(f"no message of partition {messages.index(None)}", "one of each partition")
        self._output.commit(message.part for message in messages if message is not None)

    def abort(self, messages: Sequence[_Message | None]) -> None:
        self._output.job.abort()


def _begin(options: dict[str, str]) -> Output:
    """Begins the job of a frame."""
    framing, path = options.pop("framing", "lines"), options.pop("path", None)
    if path is None:
        raise option_error("no path", "one, such as save(path)")
    if options:
        raise option_error(f"the option {next(iter(options))!r}", "framing")
    for format in FORMATS:
        if framing == format:
            return Output.begin(path, format)
    raise option_error(f"framing={framing!r}", ", ".join(FORMATS))


_FRAMINGS = {"lines": plan_lines, "csv": plan_csv, "delimited": plan_delimited, "jsonl": plan_jsonl}


def _plan(options: dict[str, str]) -> TablePlan:
    framing = options.pop("framing", "lines")
    if framing not in _FRAMINGS:
        raise option_error(f"framing={framing!r}", ", ".join(_FRAMINGS))
    path = options.pop("path", None)
    if path is None:
        raise option_error("no path", "one, such as load(path)")
    given: dict[str, Any] = {}
    options.pop("limit", None)
    for name, value in options.items():
        if name == "splitsize":
            given["split_size"] = int(value)
        elif name == "columns":
            given["columns"] = [column.strip() for column in value.split(",")]
        elif name == "header":
            if value.lower() not in ("true", "false"):
                raise option_error(f"header={value!r}", '"true" or "false"')
            given["header"] = value.lower() == "true"
        elif name in ("schema", "delimiter"):
            given[name] = value
        else:
            raise option_error(
                f"the option {name!r}", "framing, splitSize, schema, columns, limit, header or delimiter"
            )
    plan: Any = _FRAMINGS[framing]
    return plan(path, **given)  # type: ignore[no-any-return]
