"""Files as a `polars.LazyFrame`.

    millstream.polars.scan_csv("orders/*.csv").select(polars.col("price").sum()).collect()

Files are read split by split when the frame is collected. Only the columns that are used become frames, and with a
schema only these are parsed. Reading stops after the rows that are needed. The extra is `millstream[polars]`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _engines
from ._cluster import Readers, TablePlan, read_split

if TYPE_CHECKING:
    from collections.abc import Iterator

_polars: Any = _engines.load("polars", "polars")
_plugins: Any = _engines.load("polars", "polars.io.plugins")

__all__ = ["scan_bson", "scan_csv", "scan_delimited", "scan_jsonl", "scan_lines", "scan_plan"]


def scan_plan(plan: TablePlan) -> Any:
    """Scans the tasks of a plan."""

    def frames(
        columns: list[str] | None, predicate: Any | None, rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        threads = len(os.sched_getaffinity(0))
        # The columns contain those of the predicate.
        for task in plan.tasks if columns is None else plan.select(columns).tasks:
            if rows == 0:
                return
            for batch in read_split(task, threads=threads):
                frame = _polars.from_arrow(batch)
                if rows is not None:
                    # The rows are counted before the filter.
                    frame = frame.head(rows)
                    rows -= frame.height
                if predicate is not None:
                    frame = frame.filter(predicate)
                yield frame
                if rows == 0:
                    return

    schema = _polars.from_arrow(plan.schema.empty_table()).schema
    # Before polars 2, the source has no name in `explain`.
    name = {"explain_name": "millstream"} if _polars.__version__[:2] != "1." else {}
    return _plugins.register_io_source(frames, schema=schema, is_pure=True, **name)


_readers = Readers(scan_plan)
scan_lines = _readers.lines
scan_csv = _readers.csv
scan_delimited = _readers.delimited
scan_jsonl = _readers.jsonl
scan_bson = _readers.bson
