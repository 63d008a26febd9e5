"""The tables of docs/types.md are what the readers infer. Those of Spark are compared in `tests/cluster`."""

from __future__ import annotations

from pathlib import Path

import other_readers
import pytest

READERS = {
    "Millstream": other_readers.millstream,
    "pyarrow": other_readers.pyarrow,
    "polars": other_readers.polars,
    "DuckDB": other_readers.duckdb,
}


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("name", READERS)
def test_the_tables_are_right(name: str, format: str, tmp_path: Path) -> None:
    other_readers.check(name, READERS[name], format, tmp_path)
