"""Files as a `dask.dataframe.DataFrame` of Arrow types, and frames as files that appear together.

    orders = millstream.dask.read_csv("orders/*.csv")
    orders["price"].sum().compute()
    millstream.dask.write_parquet(orders, "copy")

The process that calls these functions plans the splits and the types, and each split is a partition. A partition that
is computed again has the same rows.

`write_...` writes each partition, without its index, as one part to an empty directory. All parts become visible, or
none; see `millstream.Job`. The extra is `millstream[dask]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import Readers, TablePlan, Task, read_split
from ._jobs import Output, Writers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._native import Part

_dask: Any = _engines.load("dask", "dask")
_frames: Any = _engines.load("dask", "dask", "dask.dataframe")
_pandas: Any = _engines.load("dask", "pandas")
_arrow: Any = _engines.load("arrow", "pyarrow")

__all__ = [
    "map_tasks",
    "read_bson",
    "read_csv",
    "read_delimited",
    "read_jsonl",
    "read_lines",
    "read_plan",
    "write_csv",
    "write_jsonl",
    "write_lines",
    "write_parquet",
]


def _partition(task: Task, schema: Any, columns: Sequence[str] | None = None) -> Any:
    """The rows of a task. `columns` are those that the optimiser of Dask selects."""
    plan = TablePlan((task,), schema)
    if columns is not None:
        plan = plan.select(columns)
    return _frame(_arrow.Table.from_batches(read_split(plan.tasks[0]), schema=plan.schema))


def _frame(table: Any) -> Any:
    return table.to_pandas(types_mapper=_pandas.ArrowDtype)


def read_plan(plan: TablePlan) -> Any:
    """Reads the tasks of a plan, each as a partition."""
    meta = _frame(plan.schema.empty_table())
    if not plan.tasks:
        return _frames.from_pandas(meta, npartitions=1)
    return _frames.from_map(_partition, list(plan.tasks), schema=plan.schema, meta=meta, label="millstream")


def map_tasks(function: Callable[[str], str], values: Sequence[str]) -> Sequence[str]:
    """Calls a function with each value in a task: for the option `map`, with which tasks plan CSV."""
    task = _dask.delayed(function, pure=False)
    return _dask.compute(*map(task, values))  # type: ignore[no-any-return]


_readers = Readers(read_plan)
read_lines = _readers.lines
read_csv = _readers.csv
read_delimited = _readers.delimited
read_jsonl = _readers.jsonl
read_bson = _readers.bson


def _write_partition(output: Output, number: int, frame: Any) -> Part | None:
    return output.write(number, [_arrow.Table.from_pandas(frame, preserve_index=False)])


def _write(frame: Any, output: Output) -> tuple[Part | None, ...]:
    write = _dask.delayed(_write_partition, pure=False)
    parts = [write(output, number, part) for number, part in enumerate(frame.to_delayed())]
    return _dask.compute(*parts)  # type: ignore[no-any-return]


_writers = Writers(_write)
write_lines = _writers.lines
write_csv = _writers.csv
write_jsonl = _writers.jsonl
write_parquet = _writers.parquet
