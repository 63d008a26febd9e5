"""Tests of datasets of Ray, on a cluster of three nodes of this machine."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
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
from millstream import _cluster
from millstream._jobs import Output
from millstream.arrow import count_rejects, plan_bson, plan_csv
from nodes import NODE, RayNodes

ray: Any = importlib.import_module("ray")
source: Any = importlib.import_module("millstream.ray")

pytest_plugins = ["servers"]


@pytest.fixture(scope="module")
def cluster(server: Path | None) -> Iterator[Any]:
    _ = server
    with contextlib.closing(RayNodes()) as nodes:
        # Other processes cannot import the modules of these tests.
        for module in (attempts, kill):
            ray.cloudpickle.register_pickle_by_value(module)
        ray.init(address=nodes.address, log_to_driver=False)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        # Otherwise the blocks are in the order in which the tasks finish.
        context.execution_options.preserve_order = True
        yield nodes.cluster
        ray.shutdown()


def collect(dataset: Any) -> pa.Table:
    """The rows of a dataset, in order."""
    tables = [ray.get(reference) for reference in dataset.to_arrow_refs()]
    return pa.concat_tables(tables).combine_chunks()


@pytest.mark.usefixtures("cluster")
def test_rows_are_those_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data.csv(tmp_path / "a.csv")
    read = source.read_csv(path, split_size=data.SIZE)
    assert read.schema().names == ["id", "text", "price"]
    assert collect(read) == data.single(path)
    monkeypatch.setattr(_cluster, "_PART_SIZE", 200_000)
    assert collect(source.read_csv(path, split_size=data.SIZE, map=source.map_tasks)) == data.single(path)
    path = data.jsonl(tmp_path / "a.jsonl")
    assert collect(source.read_jsonl(path, split_size=data.SIZE)) == data.single(path)
    path = data.lines(tmp_path / "a.txt")
    read = source.read_lines(path, split_size=data.SIZE)
    assert collect(read) == data.single(path)
    assert read.count() == data.ROWS + 1
    path = data.delimited(tmp_path / "a.del")
    whole = data.plain(ms.columns(path, ms.Framer.csv("|", quote=None)))
    assert collect(source.read_delimited(path, "|", split_size=data.SIZE)) == whole


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    marker = tmp_path / "killed"
    function = functools.partial(kill.once, marker=str(marker))
    read = source.read_csv(path, split_size=data.SIZE).map_batches(function, batch_format="pyarrow", batch_size=None)
    assert collect(read) == data.single(path)
    assert marker.exists()


def test_a_killed_node_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    """Blocks that were on the node are read again, also if they are to be written."""
    path = data.csv(tmp_path / "a.csv")
    node = cluster.add_node(**NODE, resources={"doomed": 100})
    plan = plan_csv(path, split_size=data.SIZE)
    read = source.read_plan(plan, resources={"doomed": 1}).materialize()
    cluster.remove_node(node, allow_graceful=False)
    node = cluster.add_node(**NODE, resources={"doomed": 100})
    assert collect(read) == data.single(path)
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(**NODE, resources={"doomed": 100})
    source.write_parquet(read, tmp_path / "out")
    assert data.written(tmp_path / "out") == data.single(path)


@pytest.mark.usefixtures("cluster")
def test_the_plan_knows_sizes_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.bson"
    path.write_bytes(b"\x0c\x00\x00\x00\x10n\x00\x07\x00\x00\x00\x00" * 1000)
    read = source.read_bson(path, schema={"n": "int"}, split_size=4096)
    tasks = source.MillstreamDatasource(plan_bson(path, schema={"n": "int"}, split_size=4096)).get_read_tasks(9)
    assert sum(task.metadata.num_rows for task in tasks) == 1000
    assert sum(task.metadata.size_bytes for task in tasks) == path.stat().st_size
    # The rows are counted without reading, so it does not matter that the file is gone.
    path.unlink()
    assert read.count() == 1000
    with pytest.raises(Exception, match="No such file"):
        read.materialize()


@pytest.mark.usefixtures("cluster")
def test_rows_of_csv_are_counted_without_reading(tmp_path: Path) -> None:
    for number, text in enumerate([b'id,text\n1,"a\nb"\n\n2,"""\n"\n', b"\nid,text", b"id,text\r\n\r\n3,c\r\n4,"]):
        (tmp_path / f"{number}.csv").write_bytes(text)
    read = source.read_csv(f"{tmp_path}/*.csv", split_size=5)
    rows = collect(read)
    assert (rows["id"].to_pylist(), rows["text"].to_pylist()) == ([1, 2, 3, 4], ["a\nb", '"\n', "c", ""])
    read = source.read_csv(f"{tmp_path}/*.csv", split_size=5)
    for path in tmp_path.iterdir():
        path.unlink()
    assert read.count() == 4


@pytest.mark.usefixtures("cluster")
def test_bad_records_are_counted_once(tmp_path: Path) -> None:
    """Also if tasks are run again after a worker was killed."""
    path, bad, marker = data.bad(tmp_path / "a.csv"), tmp_path / "bad", tmp_path / "killed"
    read = source.read_csv(path, split_size=data.SIZE, rejects=bad)
    function = functools.partial(kill.once, marker=str(marker))
    rows = collect(read.map_batches(function, batch_format="pyarrow", batch_size=None))
    assert marker.exists()
    assert rows == data.single(path, on_bad="skip")
    assert (rows.num_rows, count_rejects(bad)) == (data.ROWS - data.BAD, data.BAD)
    # They are read again to be counted.
    assert read.count() == data.ROWS - data.BAD
    assert count_rejects(bad) == data.BAD


@pytest.mark.usefixtures("cluster")
def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 1000 + b"x\n")
    read = source.read_csv(path, infer=10, split_size=512)
    with pytest.raises(Exception, match=r"line 1002, column 1") as caught:
        read.materialize()
    assert "in split 3 of the plan: bytes 1536 to 2004 of" in str(caught.value)
    path.write_bytes(b"n\n2\n")
    with pytest.raises(Exception, match="source shrank"):
        read.materialize()


@pytest.mark.usefixtures("cluster")
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.ray", tmp_path, capsys)


@pytest.mark.usefixtures("cluster")
def test_the_example_that_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.ray", tmp_path, capsys, writes=True)


@pytest.mark.usefixtures("cluster")
def test_the_example_with_commands(tmp_path: Path) -> None:
    examples.check_command("import ray.data", tmp_path)


def fail(dataset: Any) -> Any:
    """The same rows, of which the later ones fail."""

    def check(table: pa.Table) -> pa.Table:
        if table["id"][0].as_py() > 2_000:
            raise ZeroDivisionError("a late row")
        return table

    return dataset.map_batches(check, batch_format="pyarrow", batch_size=None)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.usefixtures("cluster")
def test_rows_are_written_once(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    out = tmp_path / "out"
    source.write_parquet(source.read_csv(path, split_size=data.SIZE), out)
    assert data.written(out) == data.single(path)
    assert len(names(out)) > 12
    assert names(out)[:2] == ["_SUCCESS", "_millstream.json"]
    # The output is the input of another job.
    lines = data.lines(tmp_path / "a.txt")
    source.write_lines(source.read_lines(lines, split_size=data.SIZE), tmp_path / "lines")
    assert collect(source.read_lines(tmp_path / "lines")) == data.single(lines)
    with pytest.raises(ms.Error, match="already exists"):
        source.write_lines(source.read_lines(lines), tmp_path / "lines")


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_writes_nothing_twice(tmp_path: Path) -> None:
    """The tasks write their parts completely, and are killed before they return them."""
    path = data.csv(tmp_path / "a.csv")
    out, marker = tmp_path / "out", tmp_path / "killed"
    output = Output.begin(out, "parquet")
    sink = source._Datasink(kill.AfterWriting(output, str(marker)))
    source.read_csv(path, split_size=data.SIZE).write_datasink(sink)
    assert marker.exists()
    [staging] = out.glob(".millstream-job-*/")
    assert len(names(staging)) == len(sink.parts) + 1
    output.commit(sink.parts)
    assert data.written(out) == data.single(path)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("counted", [0, 1])
def test_two_attempts_at_once_write_nothing_twice(counted: int, tmp_path: Path) -> None:
    """The part of one of them counts, whichever it is."""
    whole, out, begun = data.single(data.csv(tmp_path / "a.csv")), tmp_path / "out", tmp_path / "begun"
    begun.mkdir()
    output = Output.begin(out, "parquet")

    def write(output: Any, task: int, blocks: list[pa.Table]) -> Any:
        return source._Datasink(output).write(blocks, SimpleNamespace(task_idx=task))

    task = ray.remote(write)
    at_once, first = attempts.AtOnce(output, begun), [whole.slice(0, 1_000), whole.slice(1_000, 5_000)]
    *twice, other = ray.get(
        [task.remote(of, 0, first) for of in (at_once, at_once)] + [task.remote(output, 1, [whole.slice(6_000)])]
    )
    [staging] = out.glob(".millstream-job-*/")
    assert len(names(staging)) == 3
    output.commit([twice[counted], other])
    assert len(names(out)) == 4
    assert data.written(out) == whole


@pytest.mark.usefixtures("cluster")
def test_a_job_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    out = tmp_path / "out"
    with pytest.raises(Exception, match="ZeroDivisionError"):
        source.write_parquet(fail(source.read_csv(path, split_size=data.SIZE)), out)
    assert names(out) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_driver(cluster: Any, when: str, tmp_path: Path) -> None:
    path = data.lines(tmp_path / "a.txt")
    out = tmp_path / "out"
    driver.check("ray", when, path, out, cluster.address)
    if when == "after":
        assert collect(source.read_lines(out)) == data.single(path)


def engine() -> objects.Engine:
    def read(format: str, url: str, size: int) -> Any:
        return getattr(source, f"read_{format}")(url, split_size=size)

    return objects.Engine("ray", read, lambda dataset, _: collect(dataset), source.write_parquet, fail)


@pytest.mark.usefixtures("cluster")
def test_jobs_in_a_store(store: Path, tmp_path: Path) -> None:
    objects.check_jobs(engine(), store, tmp_path)


@pytest.mark.usefixtures("cluster", "store")
def test_errors_in_a_store(tmp_path: Path) -> None:
    objects.check_corruption(engine(), tmp_path)
    objects.check_replacement(engine(), tmp_path)
