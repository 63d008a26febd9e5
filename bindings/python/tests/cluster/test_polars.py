"""Tests of scans with polars."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import data
import examples
import millstream as ms
import pytest
from millstream import _cluster, arrow, bson
from millstream import polars as source

pl: Any = importlib.import_module("polars")


def test_frames_are_those_of_one_machine(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    assert source.scan_csv(path, split_size=data.SIZE).collect().equals(pl.from_arrow(data.single(path)))
    path = data.jsonl(tmp_path / "a.jsonl")
    assert source.scan_jsonl(path, split_size=data.SIZE).collect().equals(pl.from_arrow(data.single(path)))
    path = data.lines(tmp_path / "a.txt")
    assert source.scan_lines(path, split_size=data.SIZE).collect().equals(pl.from_arrow(data.single(path)))
    path = data.delimited(tmp_path / "a.del")
    whole = data.plain(ms.columns(path, ms.Framer.csv("|", quote=None)))
    assert source.scan_delimited(path, "|", split_size=data.SIZE).collect().equals(pl.from_arrow(whole))
    path = data.documents(tmp_path / "a.bson")
    documents = source.scan_bson(path, schema=data.TYPES, split_size=20_000)
    assert documents.collect().equals(pl.from_arrow(data.plain(bson.columns(path, schema=data.TYPES))))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_projections_predicates_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    path = data.csv(tmp_path / "a.csv")
    whole = pl.from_arrow(data.single(path))
    scan = source.scan_csv(path, split_size=data.SIZE)
    price, number = pl.col("price"), pl.col("id")
    queries: list[Any] = [
        lambda frame: frame.select(price.sum()),
        lambda frame: frame.select(pl.len()),
        lambda frame: frame.filter(number % 100 == 7).select("text"),
        lambda frame: frame.filter(price > 100).head(5),
        lambda frame: frame.head(5000).filter(number > 4990),
        lambda frame: frame.select("price", "id").head(3),
        lambda frame: frame.slice(100, 5),
        lambda frame: frame.tail(2),
    ]
    for query in queries:
        assert query(scan).collect(engine=engine).equals(query(whole.lazy()).collect()), query
    read: list[int] = []

    def read_split(task: _cluster.Task, **options: Any) -> Any:
        read.append(task.number)
        return _cluster.read_split(task, **options)

    monkeypatch.setattr(source, "read_split", read_split)
    assert scan.head(5).collect(engine=engine).height == 5
    assert read == [0]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_columns_that_are_not_used_are_not_parsed(tmp_path: Path, engine: str) -> None:
    """With given types."""
    path = tmp_path / "a.csv"
    path.write_text("n,id,text\nx,1,a\ny,2,b\n")
    scan = source.scan_csv(path, schema={"n": "int64", "id": "int64", "text": "string"})
    number = pl.col("id")
    assert scan.select("text", "id").collect(engine=engine).rows() == [("a", 1), ("b", 2)]
    assert scan.filter(number > 1).select("text").collect(engine=engine).rows() == [("b",)]
    for query in (scan, scan.filter(pl.col("n") > 1).select("text")):
        with pytest.raises((ms.Error, pl.exceptions.ComputeError), match="in n, at line 2, column 1"):
            query.collect(engine=engine)


def test_bad_records(tmp_path: Path) -> None:
    path = data.bad(tmp_path / "a.csv")
    scan = source.scan_csv(path, split_size=data.SIZE, rejects=tmp_path / "bad")
    assert scan.collect().equals(pl.from_arrow(data.single(path, on_bad="skip")))
    assert arrow.count_rejects(tmp_path / "bad") == data.BAD


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 1000 + b"x\n")
    with pytest.raises((ms.Error, pl.exceptions.ComputeError), match="line 1002, column 1"):
        source.scan_csv(path, infer=10, split_size=512).collect()


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.polars", tmp_path, capsys)
