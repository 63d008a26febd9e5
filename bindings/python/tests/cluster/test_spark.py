"""Tests of the data source of Spark, on processes of this machine. They need Java 17."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import driver
import examples
import kill
import millstream as ms
import objects
import pyarrow as pa
import pytest

sql: Any = importlib.import_module("pyspark.sql")
source: Any = importlib.import_module("millstream.spark")


pytest_plugins = ["servers"]


class Killing(source.MillstreamSource):  # type: ignore[misc]
    """Kills the process of one task after it has written its part."""

    @classmethod
    def name(cls) -> str:
        return "killing"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        marker = self.options.pop("marker")
        writer = super().writer(schema, overwrite)
        writer._output = kill.AfterWriting(writer._output, marker)
        return writer


class Committing(source.MillstreamSource):  # type: ignore[misc]
    """Kills the driver while it commits."""

    @classmethod
    def name(cls) -> str:
        return "committing"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        when, group = self.options.pop("when"), int(self.options.pop("group"))
        writer = super().writer(schema, overwrite)
        writer._output = kill.WhileCommitting(writer._output, when, group)
        return writer


def start() -> Any:
    """A session that attempts each task three times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    source.register(session)
    # Other processes cannot import the modules of these tests.
    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")
    for module in (kill, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    session.dataSource.register(Killing)
    session.dataSource.register(Committing)
    return session


@pytest.fixture(scope="module")
def spark(server: Path | None) -> Iterator[Any]:
    _ = server
    session = start()
    yield session
    session.stop()


#: A partition takes longer here than elsewhere.
ROWS = objects.ROWS


def read(spark: Any, path: Path | str, framing: str, **options: Any) -> Any:
    reader = spark.read.format("millstream").option("framing", framing).option("splitSize", data.SIZE)
    return reader.options(**options).load(str(path))


def collect(frame: Any, schema: pa.Schema) -> pa.Table:
    return frame.toArrow().cast(schema).combine_chunks()


def test_rows_are_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame = read(spark, path, "csv")
    assert frame.rdd.getNumPartitions() > 2
    whole = data.single(path)
    assert collect(frame, whole.schema) == whole
    path = data.jsonl(tmp_path / "a.jsonl", ROWS)
    whole = data.single(path)
    assert collect(read(spark, path, "jsonl"), whole.schema) == whole
    path = data.lines(tmp_path / "a.txt", ROWS)
    whole = data.single(path)
    frame = read(spark, path, "lines")
    assert collect(frame, whole.schema) == whole
    assert frame.count() == ROWS + 1


def test_options(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame = read(spark, path, "csv", columns="price, id", limit=3)
    assert frame.columns == ["price", "id"]
    assert frame.count() > 3
    assert frame.count() <= 3 * frame.rdd.getNumPartitions()
    schema = '{"fields": [{"name": "id", "type": "int32"}]}'
    assert read(spark, path, "csv", schema=schema).dtypes == [("id", "int")]
    for wrong in [{"colour": "red"}, {"header": "maybe"}]:
        with pytest.raises(Exception, match="invalid option"):
            read(spark, path, "csv", **wrong).collect()


def test_errors(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 50_000 + b"x\n")
    frame = read(spark, path, "csv")
    with pytest.raises(Exception, match="in n, at byte 100002, record 50001"):
        frame.collect()
    path.write_bytes(b"n\n2\n")
    with pytest.raises(Exception, match="source shrank"):
        frame.collect()


def fail(frame: Any) -> Any:
    """The same rows, of which the later ones fail."""

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if batch["id"][0].as_py() > 2_000:
                raise ZeroDivisionError("a late row")

    return frame.mapInArrow(check, frame.schema)


def write(frame: Any, out: Path | str, name: str = "millstream", **options: str) -> None:
    frame.write.format(name).options(**{"framing": "parquet", **options}).mode("append").save(str(out))


def test_rows_are_written_once(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame, out = read(spark, path, "csv"), tmp_path / "out"
    write(frame, out)
    whole = data.single(path)
    assert data.written(out).cast(whole.schema) == whole
    assert len(ms.Job.parts(out) or []) == frame.rdd.getNumPartitions()
    write(frame, tmp_path / "csv", framing="csv")
    copy = read(spark, tmp_path / "csv", "csv")
    assert collect(copy.orderBy("id"), whole.schema) == whole
    with pytest.raises(Exception, match="already exists"):
        write(frame, out)
    # Partitions without rows have no parts.
    write(frame.where("id < 0"), tmp_path / "empty")
    assert ms.Job.parts(tmp_path / "empty") == []


def test_attempts_that_fail_or_are_killed_write_nothing(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    whole, frame, marker = data.single(path), read(spark, path, "csv"), tmp_path / "killed"

    def fail_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if importlib.import_module("pyspark").TaskContext.get().attemptNumber() == 0:
            raise ZeroDivisionError

    write(frame.mapInArrow(fail_first, frame.schema), tmp_path / "failed")
    assert data.written(tmp_path / "failed").cast(whole.schema) == whole
    write(frame, tmp_path / "killed-out", "killing", marker=str(marker))
    assert marker.exists()
    assert data.written(tmp_path / "killed-out").cast(whole.schema) == whole


def test_a_job_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame, out = read(spark, path, "csv"), tmp_path / "out"
    with pytest.raises(Exception, match="ZeroDivisionError"):
        write(fail(frame), out)
    assert list(out.iterdir()) == []
    for wrong in ({"framing": "xml"}, {"header": "true"}):
        with pytest.raises(Exception, match="invalid option"):
            write(frame, out, **wrong)
    with pytest.raises(Exception, match='the mode "overwrite"'):
        frame.write.format("millstream").mode("overwrite").save(str(out))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_driver(when: str, tmp_path: Path) -> None:
    driver.check("spark", when, data.lines(tmp_path / "a.txt"), tmp_path / "out")


@pytest.mark.usefixtures("spark")
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.spark", tmp_path, capsys)


def engine(spark: Any) -> objects.Engine:
    def rows(format: str, url: str, size: int) -> Any:
        return read(spark, url, format, splitSize=size)

    return objects.Engine("spark", rows, collect, write, fail)


def test_jobs_in_a_store(spark: Any, store: Path, tmp_path: Path) -> None:
    objects.check_jobs(engine(spark), store, tmp_path)


@pytest.mark.usefixtures("store")
def test_errors_in_a_store(spark: Any, tmp_path: Path) -> None:
    objects.check_corruption(engine(spark), tmp_path)
    objects.check_replacement(engine(spark), tmp_path)
