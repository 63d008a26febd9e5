"""Files as Arrow: a `pyarrow.RecordBatchReader`, which DuckDB, pyarrow.dataset and others accept.

    orders = millstream.arrow.read_csv("orders/*.csv")
    duckdb.sql("select sum(price) from orders")

Files are read split by split, in the order of the rows. The extra is `millstream[arrow]`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import (
    TablePlan,
    Task,
    plan_bson,
    plan_csv,
    plan_delimited,
    plan_jsonl,
    plan_lines,
    read_split,
)

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow as pa

    from ._cluster import BsonOptions, CsvOptions, DelimitedOptions, JsonOptions, LinesOptions, Paths

_arrow: Any = _engines.load("arrow", "pyarrow")

__all__ = [
    "TablePlan",
    "Task",
    "plan_bson",
    "plan_csv",
    "plan_delimited",
    "plan_jsonl",
    "plan_lines",
    "read_bson",
    "read_csv",
    "read_delimited",
    "read_jsonl",
    "read_lines",
    "read_plan",
    "read_split",
]


def read_plan(plan: TablePlan, *, threads: int | None = None) -> pa.RecordBatchReader:
    """Reads the tasks of a plan in order, each with this many threads: all processors by default."""
    count = len(os.sched_getaffinity(0)) if threads is None else threads
    batches = (batch for task in plan.tasks for batch in read_split(task, threads=count))
    return _arrow.RecordBatchReader.from_batches(plan.schema, batches)


def read_lines(paths: Paths, **options: Unpack[LinesOptions]) -> pa.RecordBatchReader:
    """Reads lines as one column, `line`."""
    return read_plan(plan_lines(paths, **options))


def read_csv(paths: Paths, **options: Unpack[CsvOptions]) -> pa.RecordBatchReader:
    """Reads CSV."""
    return read_plan(plan_csv(paths, **options))


def read_delimited(paths: Paths, delimiter: str, **options: Unpack[DelimitedOptions]) -> pa.RecordBatchReader:
    """Reads text whose fields are separated by a delimiter, without quotes by default."""
    return read_plan(plan_delimited(paths, delimiter, **options))


def read_jsonl(paths: Paths, **options: Unpack[JsonOptions]) -> pa.RecordBatchReader:
    """Reads newline-delimited JSON."""
    return read_plan(plan_jsonl(paths, **options))


def read_bson(paths: Paths, **options: Unpack[BsonOptions]) -> pa.RecordBatchReader:
    """Reads BSON documents into the columns of a schema."""
    return read_plan(plan_bson(paths, **options))
