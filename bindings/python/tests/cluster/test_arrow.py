"""Tests of Arrow streams, and of DuckDB and pyarrow.dataset on them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import data
import examples
import millstream as ms
import pyarrow as pa
import pytest
from millstream import arrow

duckdb: Any = importlib.import_module("duckdb")
dataset: Any = importlib.import_module("pyarrow.dataset")


def test_duckdb(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    rows = duckdb.connect().register("rows", arrow.read_csv(path, split_size=data.SIZE))
    [found] = rows.sql("select count(*), sum(id), sum(price), sum(length(text)) from rows").fetchall()
    whole = data.single(path)
    ids = range(data.ROWS)
    lengths = sum(len(text) for text in whole["text"].to_pylist())
    assert found == (data.ROWS, sum(ids), sum(ids) / 4, lengths)


def test_datasets(tmp_path: Path) -> None:
    path = data.jsonl(tmp_path / "a.jsonl")
    reader = arrow.read_jsonl(path, split_size=data.SIZE)
    scanned = dataset.Scanner.from_batches(reader, columns=["id", "at"]).to_table()
    assert scanned.combine_chunks() == data.single(path).select(["id", "at"])
    dataset.write_dataset(
        arrow.read_lines(path, split_size=data.SIZE), tmp_path / "out", format="parquet", preserve_order=True
    )
    written = dataset.dataset(tmp_path / "out").to_table().combine_chunks()
    assert written == data.plain(ms.columns(path, "lines"))


def test_bad_records(tmp_path: Path) -> None:
    path = data.bad(tmp_path / "a.csv")
    bad = tmp_path / "bad"
    rows = duckdb.connect().register("rows", arrow.read_csv(path, split_size=data.SIZE, rejects=bad))
    assert rows.sql("select count(*) from rows").fetchall() == [(data.ROWS - data.BAD,)]
    assert arrow.count_rejects(bad) == data.BAD


def test_errors_are_those_of_millstream(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 1000 + b"x\n")
    with pytest.raises(ms.Error, match=r"a\.csv.*found.*x.*, in n, at line 1002, column 1"):
        arrow.read_csv(path, infer=10, split_size=512).read_all()
    rows = duckdb.connect().register("rows", arrow.read_csv(path, infer=10, split_size=512))
    with pytest.raises(duckdb.Error, match="line 1002"):
        rows.sql("select sum(n) from rows").fetchall()


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n")
    assert arrow.read_csv(path).read_all() == pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())})
    path.write_bytes(b"")
    assert arrow.read_lines(path).read_all().num_rows == 0
    assert arrow.read_csv(path).read_all().num_columns == 0


@pytest.mark.parametrize("imported", ["pyarrow.compute as pc\n\nimport millstream.arrow", "duckdb", "pathlib"])
def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str], imported: str) -> None:
    examples.check(imported, tmp_path, capsys)


def test_the_example_with_processes(tmp_path: Path) -> None:
    examples.check_script(tmp_path)
