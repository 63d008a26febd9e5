"""Files as a `ray.data.Dataset`, and datasets as files that appear together.

    orders = millstream.ray.read_csv("orders/*.csv")
    orders.map_batches(total, batch_format="pyarrow").take_all()
    millstream.ray.write_parquet(orders, "copy")

The driver plans the splits and the types, and each split is a read task. A task that is run again returns the same
rows.

`write_...` writes to an empty directory, and each write task writes one part. All parts become visible, or none; see
`millstream.Job`. Write tasks that fail or are killed leave nothing visible. The extra is `millstream[ray]`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import Readers, TablePlan, Task, read_split
from ._jobs import Output, Writers
from ._native import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ._native import Part

_ray: Any = _engines.load("ray", "ray")
_errors: Any = _engines.load("ray", "ray.exceptions")
_data: Any = _engines.load("ray", "ray", "ray.data")
_source: Any = _engines.load("ray", "ray.data.datasource")
_block: Any = _engines.load("ray", "ray.data.block")
_arrow: Any = _engines.load("arrow", "pyarrow")

__all__ = [
    "MillstreamDatasource",
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


class MillstreamDatasource(_data.Datasource):  # type: ignore[misc]
    """A source of one read task for each task of a plan."""

    def __init__(self, plan: TablePlan) -> None:
        super().__init__()
        self._plan = plan

    def get_name(self) -> str:
        return "Millstream"

    def estimate_inmemory_data_size(self) -> int | None:
        return self._plan.size

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        return [self._read_task(task, per_task_row_limit) for task in self._plan.tasks]

    def _read_task(self, task: Task, row_limit: int | None) -> Any:
        name = Split.from_json(task.split).name
        metadata = _block.BlockMetadata(num_rows=task.rows, size_bytes=task.size, exec_stats=None, input_files=(name,))
        read = partial(_blocks, task, self._plan.schema)
        return _source.ReadTask(read, metadata, schema=self._plan.schema, per_task_row_limit=row_limit)


def _blocks(task: Task, schema: Any) -> Iterator[Any]:
    is_empty = True
    for batch in read_split(task):
        is_empty = False
        yield _arrow.Table.from_batches([batch])
    if is_empty:
        yield schema.empty_table()


def read_plan(plan: TablePlan, **options: Any) -> Any:
    """Reads the tasks of a plan. Other options are those of `ray.data.read_datasource`."""
    # As many blocks as tasks: otherwise Ray divides the blocks of each task again.
    options.setdefault("override_num_blocks", max(len(plan.tasks), 1))
    return _data.read_datasource(MillstreamDatasource(plan), **options)


def map_tasks(function: Callable[[str], str], values: Sequence[str]) -> list[str]:
    """Calls a function with each value in a task: for the option `map`, with which tasks plan CSV."""
    task = _ray.remote(function)
    try:
        return _ray.get([task.remote(value) for value in values])  # type: ignore[no-any-return]
    except _errors.RayTaskError as error:
        raise error.cause from None


_readers = Readers(read_plan)
read_lines = _readers.lines
read_csv = _readers.csv
read_delimited = _readers.delimited
read_jsonl = _readers.jsonl
read_bson = _readers.bson


class _Datasink(_data.Datasink):  # type: ignore[misc]
    """Writes one part for each write task."""

    def __init__(self, output: Output) -> None:
        self._output = output
        #: The parts, after all tasks have succeeded.
        self.parts: list[Part | None] = []

    def get_name(self) -> str:
        return "Millstream"

    def write(self, blocks: Iterable[Any], ctx: Any) -> Part | None:
        return self._output.write(ctx.task_idx, (_block.BlockAccessor.for_block(block).to_arrow() for block in blocks))

    def on_write_complete(self, write_result: Any) -> None:
        self.parts = write_result.write_returns


def _write(dataset: Any, output: Output) -> list[Part | None]:
    # Ray does not promise to report failures to the sink, so the caller aborts the job.
    sink = _Datasink(output)
    dataset.write_datasink(sink)
    return sink.parts


_writers = Writers(_write)
write_lines = _writers.lines
write_csv = _writers.csv
write_jsonl = _writers.jsonl
write_parquet = _writers.parquet
