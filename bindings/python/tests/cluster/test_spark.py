"""Tests of the data source of Spark, on processes of this machine. They need Java 17."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import examples
import pyarrow as pa
import pytest

sql: Any = importlib.import_module("pyspark.sql")
source: Any = importlib.import_module("millstream.spark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    source.register(session)
    yield session
    session.stop()


#: A partition takes longer here than elsewhere.
ROWS = 5_000


def read(spark: Any, path: Path, framing: str, **options: Any) -> Any:
    reader = spark.read.format("millstream").option("framing", framing).option("splitSize", data.SIZE)
    return reader.options(**options).load(str(path))


def collect(frame: Any, like: pa.Table) -> pa.Table:
    return frame.toArrow().cast(like.schema).combine_chunks()


def test_rows_are_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame = read(spark, path, "csv")
    assert frame.rdd.getNumPartitions() > 2
    whole = data.single(path)
    assert collect(frame, whole) == whole
    path = data.jsonl(tmp_path / "a.jsonl", ROWS)
    whole = data.single(path)
    assert collect(read(spark, path, "jsonl"), whole) == whole
    path = data.lines(tmp_path / "a.txt", ROWS)
    whole = data.single(path)
    frame = read(spark, path, "lines")
    assert collect(frame, whole) == whole
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


@pytest.mark.usefixtures("spark")
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples.check("millstream.spark", tmp_path, capsys)
