"""Files as a `daft.DataFrame`.

    orders = millstream.daft.read_csv("orders/*.csv")
    orders.sum("price").show()

The process that calls these functions plans the splits and the types, and each split is a task of Daft. A task that is
run again has the same rows. The extra is `millstream[daft]`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import Readers, TablePlan, Task, read_split

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_source: Any = _engines.load("daft", "daft", "daft.io.source")
_batches: Any = _engines.load("daft", "daft.recordbatch")
_schemas: Any = _engines.load("daft", "daft.schema")

__all__ = ["read_bson", "read_csv", "read_delimited", "read_jsonl", "read_lines", "read_plan"]


class _Source(_source.DataSource):  # type: ignore[misc]
    def __init__(self, plan: TablePlan) -> None:
        self._plan = plan

    @property
    def name(self) -> str:
        return "Millstream"

    @property
    def schema(self) -> Any:
        return _schemas.Schema.from_pyarrow_schema(self._plan.schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[Any]:
        names = self._plan.schema.names
        # The columns do not contain those of the filters. If there are none, only the rows are needed.
        used = {*(pushdowns.columns or names), *pushdowns.filter_required_column_names()}
        plan = self._plan.select([name for name in names if name in used])
        schema = _Source(plan).schema
        for task in plan.tasks:
            yield _Task(task, schema)


class _Task(_source.DataSourceTask):  # type: ignore[misc]
    """The rows of a task. Daft itself applies what it pushes down as well."""

    def __init__(self, task: Task, schema: Any) -> None:
        self._task = task
        self._schema = schema

    @property
    def schema(self) -> Any:
        return self._schema

    async def read(self) -> AsyncIterator[Any]:
        rows = read_split(self._task)
        # All tasks share one event loop, which must not wait for one of them.
        while (batch := await asyncio.to_thread(next, rows, None)) is not None:
            yield _batches.RecordBatch.from_arrow_record_batches([batch], batch.schema)


def read_plan(plan: TablePlan) -> Any:
    """Reads the tasks of a plan."""
    return _Source(plan).read()


_readers = Readers(read_plan)
read_lines = _readers.lines
read_csv = _readers.csv
read_delimited = _readers.delimited
read_jsonl = _readers.jsonl
read_bson = _readers.bson
