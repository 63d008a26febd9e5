"""Tests of frames of Daft, which runs in this process."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import data
import examples
import millstream as ms
import pyarrow as pa
import pytest
from millstream import arrow, bson
from millstream import daft as source

daft: Any = importlib.import_module("daft")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAFT_PROGRESS_BAR", "0")


def test_frames_are_those_of_one_machine(tmp_path: Path) -> None:
    def check(frame: Any, whole: pa.Table) -> None:
        # Daft has only large strings.
        assert frame.to_arrow().cast(whole.schema).equals(whole)

    path = data.csv(tmp_path / "a.csv")
    check(source.read_csv(path, split_size=data.SIZE), data.single(path))
    path = data.jsonl(tmp_path / "a.jsonl")
    check(source.read_jsonl(path, split_size=data.SIZE), data.single(path))
    path = data.lines(tmp_path / "a.txt")
    check(source.read_lines(path, split_size=data.SIZE), data.single(path))
    path = data.delimited(tmp_path / "a.del")
    whole = data.plain(ms.columns(path, ms.Framer.csv("|", quote=None)))
    check(source.read_delimited(path, "|", split_size=data.SIZE), whole)
    path = data.documents(tmp_path / "a.bson")
    documents = source.read_bson(path, schema=data.TYPES, split_size=20_000)
    check(documents, data.plain(bson.columns(path, schema=data.TYPES)))


def test_bad_records(tmp_path: Path) -> None:
    path, bad = data.bad(tmp_path / "a.csv"), tmp_path / "bad"
    frame = source.read_csv(path, split_size=data.SIZE, rejects=bad)
    whole = data.single(path, on_bad="skip")
    assert frame.to_arrow().cast(whole.schema).equals(whole)
    assert arrow.count_rejects(bad) == data.BAD


def test_projections_predicates_and_limits(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    frame, whole = source.read_csv(path, split_size=data.SIZE), daft.from_arrow(data.single(path))
    price, number = daft.col("price"), daft.col("id")
    queries: list[Any] = [
        lambda frame: frame.sum("price"),
        lambda frame: frame.count(),
        lambda frame: frame.where(number % 100 == 7).select("text"),
        lambda frame: frame.where(price > 100).select("price", "id").limit(5),
        lambda frame: frame.limit(3),
        lambda frame: frame.select(daft.lit(1).alias("one")),
    ]
    for query in queries:
        assert query(frame).to_pydict() == query(whole).to_pydict()


def test_columns_that_are_not_used_are_not_parsed(tmp_path: Path) -> None:
    """With given types."""
    path = tmp_path / "a.csv"
    path.write_text("n,id,text\nx,1,a\ny,2,b\n")
    frame = source.read_csv(path, schema={"n": "int64", "id": "int64", "text": "string"})
    assert frame.select("text", "id").to_pydict() == {"text": ["a", "b"], "id": [1, 2]}
    assert frame.where(daft.col("id") > 1).select("text").to_pydict() == {"text": ["b"]}
    for query in (frame, frame.where(daft.col("n") > 1).select("text")):
        with pytest.raises(daft.exceptions.DaftCoreException, match="in n, at line 2, column 1"):
            query.collect()


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 1000 + b"x\n")
    with pytest.raises(daft.exceptions.DaftCoreException, match="line 1002, column 1"):
        source.read_csv(path, infer=10, split_size=512).collect()


def test_tasks_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    path = data.lines(tmp_path / "a.txt")
    plan = importlib.import_module("millstream.arrow").plan_lines(path, split_size=data.SIZE)
    whole = source._Source(plan)
    task = source._Task(plan.tasks[0], whole.schema)
    again = pickle.loads(pickle.dumps(task))
    assert (again._task, again.schema) == (task._task, task.schema)


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.daft", tmp_path, capsys)
