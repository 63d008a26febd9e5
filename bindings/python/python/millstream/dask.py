"""Files as a `dask.dataframe.DataFrame` of Arrow types.

    millstream.dask.read_csv("orders/*.csv")["price"].sum().compute()

The process that calls these functions plans the splits and the types, and each split is a partition. A partition that
is computed again has the same rows. The extra is `millstream[dask]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import TablePlan, Task, plan_bson, plan_csv, plan_delimited, plan_jsonl, plan_lines, read_split

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from ._cluster import BsonOptions, CsvOptions, DelimitedOptions, JsonOptions, LinesOptions, Paths

_frames: Any = _engines.load("dask", "dask", "dask.dataframe")
_pandas: Any = _engines.load("dask", "pandas")
_arrow: Any = _engines.load("arrow", "pyarrow")

__all__ = ["read_bson", "read_csv", "read_delimited", "read_jsonl", "read_lines", "read_plan"]


def _partition(task: Task, schema: Any, columns: Sequence[str] | None = None) -> Any:
    """The rows of a task. `columns` are those that the optimiser of Dask selects."""
    table = _arrow.Table.from_batches(read_split(task), schema=schema)
    return _frame(table if columns is None else table.select(list(columns)))


def _frame(table: Any) -> Any:
    return table.to_pandas(types_mapper=_pandas.ArrowDtype)


def read_plan(plan: TablePlan) -> Any:
    """Reads the tasks of a plan, each as a partition."""
    meta = _frame(plan.schema.empty_table())
    if not plan.tasks:
        return _frames.from_pandas(meta, npartitions=1)
    return _frames.from_map(_partition, list(plan.tasks), schema=plan.schema, meta=meta, label="millstream")


def read_lines(paths: Paths, **options: Unpack[LinesOptions]) -> Any:
    """Reads lines as one column, `line`."""
    return read_plan(plan_lines(paths, **options))


def read_csv(paths: Paths, **options: Unpack[CsvOptions]) -> Any:
    """Reads CSV."""
    return read_plan(plan_csv(paths, **options))


def read_delimited(paths: Paths, delimiter: str, **options: Unpack[DelimitedOptions]) -> Any:
    """Reads text whose fields are separated by a delimiter, without quotes by default."""
    return read_plan(plan_delimited(paths, delimiter, **options))


def read_jsonl(paths: Paths, **options: Unpack[JsonOptions]) -> Any:
    """Reads newline-delimited JSON."""
    return read_plan(plan_jsonl(paths, **options))


def read_bson(paths: Paths, **options: Unpack[BsonOptions]) -> Any:
    """Reads BSON documents into the columns of a schema."""
    return read_plan(plan_bson(paths, **options))
