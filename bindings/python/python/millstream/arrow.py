"""Files as Arrow: a `pyarrow.RecordBatchReader`, which DuckDB, pyarrow.dataset and others accept.

    orders = millstream.arrow.read_csv("orders/*.csv")
    duckdb.sql("select sum(price) from orders")

Files are read split by split, in the order of the rows. The extra is `millstream[arrow]`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import (
    Readers,
    TablePlan,
    Task,
    count_rejects,
    plan_bson,
    plan_csv,
    plan_delimited,
    plan_jsonl,
    plan_lines,
    read_split,
)

if TYPE_CHECKING:
    import pyarrow as pa


_arrow: Any = _engines.load("arrow", "pyarrow")

__all__ = [
    "TablePlan",
    "Task",
    "count_rejects",
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


_readers = Readers(read_plan)
read_lines = _readers.lines
read_csv = _readers.csv
read_delimited = _readers.delimited
read_jsonl = _readers.jsonl
read_bson = _readers.bson
