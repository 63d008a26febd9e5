"""Tests of frames of Dask, on processes of this machine."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attempts
import data
import driver
import examples
import kill
import millstream as ms
import objects
import pyarrow as pa
import pytest
from millstream import _cluster, bson
from millstream import dask as source
from millstream._jobs import Output
from millstream.arrow import count_rejects
from nodes import DaskNodes

dask: Any = importlib.import_module("dask")
distributed: Any = importlib.import_module("distributed")


pytest_plugins = ["servers"]


@pytest.fixture(scope="module", autouse=True)
def client(server: Path | None) -> Iterator[Any]:
    _ = server
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="512MiB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def collect(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame.compute(), preserve_index=False).replace_schema_metadata().combine_chunks()


def fail(frame: Any) -> Any:
    """The same rows, of which the later ones fail."""

    def check(part: Any) -> Any:
        if len(part) and part["id"].iloc[0] > 2_000:
            raise ZeroDivisionError("a late row")
        return part

    return frame.map_partitions(check, meta=frame._meta)


def test_rows_are_those_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data.csv(tmp_path / "a.csv")
    frame = source.read_csv(path, split_size=data.SIZE)
    assert frame.npartitions > 10
    assert collect(frame) == data.single(path)
    assert frame["price"].sum().compute() == sum(range(data.ROWS)) / 4
    monkeypatch.setattr(_cluster, "_PART_SIZE", 200_000)
    assert collect(source.read_csv(path, split_size=data.SIZE, map=source.map_tasks)) == data.single(path)
    path = data.jsonl(tmp_path / "a.jsonl")
    assert collect(source.read_jsonl(path, split_size=data.SIZE)) == data.single(path)
    path = data.lines(tmp_path / "a.txt")
    frame = source.read_lines(path, split_size=data.SIZE)
    assert collect(frame) == data.single(path)
    assert len(frame) == data.ROWS + 1
    path = data.delimited(tmp_path / "a.del")
    whole = data.plain(ms.columns(path, ms.Framer.csv("|", quote=None)))
    assert collect(source.read_delimited(path, "|", split_size=data.SIZE)) == whole
    path = data.documents(tmp_path / "a.bson")
    documents = source.read_bson(path, schema=data.TYPES, split_size=20_000)
    assert documents.npartitions > 2
    whole = data.plain(bson.columns(path, schema=data.TYPES))
    # In pandas each column can have nulls.
    assert collect(documents).cast(whole.schema) == whole


def test_columns_that_are_not_used_are_not_parsed(tmp_path: Path) -> None:
    """With given types."""
    path = tmp_path / "a.csv"
    path.write_text("n,id\nx,1\ny,2\n")
    frame = source.read_csv(path, schema={"n": "int64", "id": "int64"})
    assert frame["id"].sum().compute() == 3
    assert len(frame[["id"]].compute()) == 2
    with pytest.raises(ms.Error, match="in n, at line 2, column 1"):
        frame.compute()


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    marker = tmp_path / "killed"
    frame = source.read_csv(path, split_size=data.SIZE)
    function = functools.partial(kill.once, marker=str(marker))
    assert collect(frame.map_partitions(function, meta=frame._meta)) == data.single(path)
    assert marker.exists()


def test_a_lost_node_changes_nothing(tmp_path: Path) -> None:
    """Partitions that were on the node are read again, also if they are to be written."""
    path, out = data.csv(tmp_path / "a.csv"), tmp_path / "out"
    with contextlib.closing(DaskNodes(tmp_path)) as nodes, distributed.Client(nodes.address) as client:
        frame = source.read_csv(path, split_size=data.SIZE).persist()

        def lose() -> None:
            distributed.wait(frame)
            [address] = [of for of, worker in client.scheduler_info()["workers"].items() if worker["name"] == name]
            assert client.has_what()[address]
            nodes.lose(name)

        [name, _] = nodes.names()
        lose()
        assert collect(frame) == data.single(path)
        nodes.replace()
        # This one has all partitions.
        [name, _] = nodes.names()
        lose()
        source.write_parquet(frame, out)
    assert data.written(out) == data.single(path)


def test_bad_records_are_counted_once(tmp_path: Path) -> None:
    """Also if tasks are run again after a worker was killed."""
    path, bad, marker = data.bad(tmp_path / "a.csv"), tmp_path / "bad", tmp_path / "killed"
    frame = source.read_csv(path, split_size=data.SIZE, rejects=bad)
    function = functools.partial(kill.once, marker=str(marker))
    assert collect(frame.map_partitions(function, meta=frame._meta)) == data.single(path, on_bad="skip")
    assert marker.exists()
    assert count_rejects(bad) == data.BAD
    assert len(frame["price"]) == data.ROWS - data.BAD
    assert count_rejects(bad) == data.BAD


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 1000 + b"x\n")
    frame = source.read_csv(path, infer=10, split_size=512)
    with pytest.raises(ms.Error, match=r"in n, at line 1002, column 1") as caught:
        frame.compute()
    assert (caught.value.offset, caught.value.record) == (2002, 1001)
    assert any("in split 3 of the plan" in note for note in caught.value.__notes__)
    path.write_bytes(b"n\n" + b"1\n" * 1000)
    frame = source.read_csv(path, split_size=512)
    path.write_bytes(b"n\n2\n")
    with pytest.raises(ms.FileError, match="source shrank"):
        frame.compute()


def test_rows_are_written_once(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    frame, out, marker = source.read_csv(path, split_size=data.SIZE), tmp_path / "out", tmp_path / "killed"
    killed = frame.map_partitions(functools.partial(kill.once, marker=str(marker)), meta=frame._meta)
    source.write_csv(killed, out)
    assert marker.exists()
    assert len(ms.Job.parts(out) or []) == frame.npartitions
    assert collect(source.read_csv(out)) == data.single(path)
    with pytest.raises(ms.Error, match="already exists"):
        source.write_csv(frame, out)
    failed = tmp_path / "failed"
    with pytest.raises(ZeroDivisionError):
        source.write_parquet(fail(frame), failed)
    assert list(failed.iterdir()) == []


@pytest.mark.parametrize("counted", [0, 1])
def test_two_attempts_at_once_write_nothing_twice(counted: int, tmp_path: Path) -> None:
    """The part of one of them counts, whichever it is."""
    path, out, begun = data.csv(tmp_path / "a.csv"), tmp_path / "out", tmp_path / "begun"
    begun.mkdir()
    first, *rest = source.read_csv(path, split_size=data.SIZE).to_delayed()
    output = Output.begin(out, "parquet")
    at_once, write = attempts.AtOnce(output, begun), dask.delayed(source._write_partition, pure=False)
    twice, others = dask.compute(
        [write(at_once, 0, first) for _ in range(2)],
        [write(output, number, part) for number, part in enumerate(rest, 1)],
    )
    [staging] = out.glob(".millstream-job-*/")
    assert len(list(staging.iterdir())) == len(rest) + 2
    output.commit([twice[counted], *others])
    assert len(ms.Job.parts(out) or []) == len(rest) + 1
    assert data.written(out) == data.single(path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_driver(when: str, tmp_path: Path) -> None:
    driver.check("dask", when, data.lines(tmp_path / "a.txt"), tmp_path / "out")


def test_the_example_with_commands(tmp_path: Path) -> None:
    examples.check_command("import millstream.dask", tmp_path)


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.dask", tmp_path, capsys)


def engine() -> objects.Engine:
    def read(format: str, url: str, size: int) -> Any:
        return getattr(source, f"read_{format}")(url, split_size=size)

    return objects.Engine("dask", read, lambda frame, _: collect(frame), source.write_parquet, fail)


def test_jobs_in_a_store(store: Path, tmp_path: Path) -> None:
    objects.check_jobs(engine(), store, tmp_path)


@pytest.mark.usefixtures("store")
def test_errors_in_a_store(tmp_path: Path) -> None:
    objects.check_corruption(engine(), tmp_path)
    objects.check_replacement(engine(), tmp_path)
