"""Tests of the data source of Spark, on processes of this machine. They need Java 17."""

from __future__ import annotations

import datetime
import gzip
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import converted
import data
import driver
import examples
import kill
import lost
import millstream as ms
import objects
import other_readers
import pyarrow as pa
import pytest
from millstream import _spark_filters, arrow
from standalone import standalone

filters: Any = importlib.import_module("pyspark.sql.datasource")
sql: Any = importlib.import_module("pyspark.sql")
source: Any = importlib.import_module("millstream.spark")


pytest_plugins = ["servers"]


class KillingStream(source._StreamWriter):  # type: ignore[misc]
    marker = ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        return kill.once(super().write(iterator), self.marker)


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

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        marker = self.options.pop("marker")
        writer = super().streamWriter(schema, overwrite)
        killing = KillingStream(writer._path, writer._format)
        killing.marker = marker
        return killing


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
        .config("spark.sql.session.timeZone", "UTC")
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


def test_bad_records_are_counted_once(spark: Any, tmp_path: Path) -> None:
    """Also if tasks are run again after their process was killed."""
    path, bad, marker = data.bad(tmp_path / "a.csv", ROWS), tmp_path / "bad", tmp_path / "killed"
    frame = read(spark, path, "csv", rejects=str(bad))
    whole = data.single(path, on_bad="skip")

    def killed(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield kill.once(batch, str(marker))

    assert collect(frame.mapInArrow(killed, frame.schema), whole.schema) == whole
    assert marker.exists()
    assert arrow.count_rejects(bad) == data.BAD
    assert frame.count() == ROWS - data.BAD
    assert arrow.count_rejects(bad) == data.BAD
    with pytest.raises(Exception, match="the options limit and rejects"):
        read(spark, path, "csv", rejects=str(bad), limit=5)


def test_options(spark: Any, tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", ROWS)
    frame = read(spark, path, "csv", columns="price, id", limit=3)
    assert frame.columns == ["price", "id"]
    assert frame.count() > 3
    assert frame.count() <= 3 * frame.rdd.getNumPartitions()
    schema = '{"fields": [{"name": "id", "type": "int32"}]}'
    assert read(spark, path, "csv", schema=schema).dtypes == [("id", "int")]
    with pytest.raises(Exception, match=r"the option 'colour' with framing=csv, expected framing, splitSize"):
        read(spark, path, "csv", colour="red")
    with pytest.raises(Exception, match=r"the option 'header' with framing=lines"):
        read(spark, path, "lines", header=False)
    with pytest.raises(Exception, match=r"framing=delimited without the option delimiter"):
        read(spark, path, "delimited")
    with pytest.raises(Exception, match=r"a schema of Spark, expected the types as JSON in the option schema"):
        spark.read.format("millstream").option("framing", "csv").schema("id long").load(str(path)).collect()
    given = spark.read.format("millstream").option("framing", "csv").schema("id long, text string, price double")
    assert given.load(str(path)).count() == ROWS
    with pytest.raises(Exception, match=r"the option order, expected it only for spark\.readStream"):
        read(spark, path, "csv", order="name").collect()


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("splitSize", "0", "a whole number, 1 or more"),
        ("splitSize", "64k", "a whole number, 1 or more"),
        ("limit", "-1", "a whole number, 0 or more"),
        ("infer", "some", 'a whole number, 1 or more, or "all" or "off"'),
        ("header", "maybe", '"true" or "false"'),
        ("specialNumbers", "1", '"true" or "false"'),
        ("decode", "gzip", '"auto" or "off"'),
        ("pin", "all", '"none" or "identity" or "ends" or "full"'),
        ("quote", "é", "one byte"),
        ("delimiter", "", "one byte"),
    ],
)
def test_values_of_options(spark: Any, tmp_path: Path, option: str, text: str, expected: str) -> None:
    path = data.csv(tmp_path / "a.csv", 10)
    with pytest.raises(Exception, match="invalid option") as caught:
        read(spark, path, "csv", **{option: text})
    assert f"{option}={text!r}, expected {expected}" in str(caught.value)


def test_options_are_those_of_other_engines(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("#x\n1|NA|'a|b'|1.50|NaN\n2||c|2.25|1\n")
    names: dict[str, Any] = {"nulls": ["NA", ""], "special_numbers": True, "decimals": True, "infer": 2, "pin": "full"}
    dialect: dict[str, Any] = {"delimiter": "|", "quote": "'", "comment": "#", "header": False}
    whole = arrow.read_csv(path, **names, **dialect).read_all().combine_chunks()
    options = {"nulls": "NA,", "specialNumbers": "true", "decimals": "TRUE", "infer": "2", "pin": "full"}
    frame = read(spark, path, "csv", **options, **dialect)
    assert frame.dtypes[3:] == [("3", "decimal(38,2)"), ("4", "double")]
    assert str(collect(frame, whole.schema)) == str(whole)
    path.write_text("1|'a|b'\n")
    for quote, columns in {"'": 2, "": 3}.items():
        frame = read(spark, path, "delimited", delimiter="|", quote=quote, header=False, infer="off")
        assert frame.first()[-1] == ("a|b" if quote else "b'")
        assert len(frame.columns) == columns
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "a": 2}\n')
    assert read(spark, path, "jsonl", duplicates="last").first() == (2,)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a line\n"))
    assert read(spark, path, "lines").first() == ("a line",)
    with pytest.raises(Exception, match="utf8 invalid"):
        read(spark, path, "lines", decode="off").collect()


def test_documents(spark: Any, tmp_path: Path) -> None:
    path = data.documents(tmp_path / "a.bson")
    frame = read(spark, path, "bson", schema=json.dumps(data.TYPES), splitSize=20_000)
    assert frame.rdd.getNumPartitions() > 2
    assert dict(frame.dtypes) == {
        "_id": "binary",
        "price": "double",
        "at": "timestamp",
        "tags": "array<string>",
        "inner.n": "bigint",
    }
    whole = arrow.read_bson(path, schema=data.TYPES).read_all().combine_chunks()
    assert collect(frame, whole.schema) == whole
    assert read(spark, path, "bson", schema=json.dumps(data.TYPES), columns="price").columns == ["price"]
    for wrong, found in {
        "": "framing=bson without the option schema, expected the types as JSON",
        "{": "schema='{' ",
        "[]": "schema='\\[\\]', expected the types as JSON",
        '{"n": "int", "n": "long"}': "a name twice",
        '{"n": "float"}': 'the type "float"',
    }.items():
        with pytest.raises(Exception, match=found):
            read(spark, path, "bson", **({"schema": wrong} if wrong else {}))
    with pytest.raises(Exception, match="rejects for BSON"):
        read(spark, path, "bson", schema=json.dumps(data.TYPES), rejects=str(tmp_path / "bad"))
    with pytest.raises(Exception, match=r"in price, (.|\n)*in split 0 of the plan"):
        read(spark, path, "bson", schema='{"price": "int"}').collect()


def test_a_stream_of_documents(spark: Any, tmp_path: Path) -> None:
    data.documents(tmp_path / "a.bson", 10)
    reader = spark.readStream.format("millstream").options(framing="bson", schema='{"price": "double"}')
    writer = reader.load(f"{tmp_path}/*.bson").writeStream.format("millstream").option("framing", "csv")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "out")).awaitTermination()
    copy = read(spark, f"{tmp_path}/out/*/part-*.csv", "csv")
    assert [row.price for row in copy.collect()] == [n / 4 for n in range(10)]


def test_converted_files(spark: Any, tmp_path: Path) -> None:
    """Spark's own reader of Parquet has the values that `millstream convert` wrote."""
    path, out = tmp_path / "people.csv", tmp_path / "people.parquet"
    expected = converted.write_people(path)
    converted.convert(path, "--null", "NA", "-o", out)
    frame = spark.read.parquet(str(out))
    assert dict(frame.dtypes) == {
        **{"id": "bigint", "large": "decimal(20,0)", "x": "double", "day": "date"},
        **{"at": "timestamp_ntz", "zoned": "timestamp", "yes": "boolean", "code": "string", "text": "string"},
    }
    assert collect(frame, expected.schema) == expected
    values, path = converted.orders(), tmp_path / "orders.jsonl"
    converted.write_orders(path, values)
    converted.convert(path, "-o", tmp_path / "orders.parquet")
    rows = spark.read.parquet(str(tmp_path / "orders.parquet")).orderBy("id").collect()
    assert [row.asDict(recursive=True) for row in rows] == [{"place": None} | value for value in values]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_types_that_spark_infers(spark: Any, tmp_path: Path, format: str) -> None:
    other_readers.check("Spark", other_readers.spark(spark), format, tmp_path)


def test_errors(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"n\n" + b"1\n" * 50_000 + b"x\n")
    frame = read(spark, path, "csv")
    with pytest.raises(Exception, match="in n, at line 50002, column 1"):
        frame.collect()
    path.write_bytes(b"n\n2\n")
    with pytest.raises(Exception, match="source shrank"):
        frame.collect()
    # The plan is made once, also with a schema.
    path = data.lines(tmp_path / "a.txt", 10)
    frame = read(spark, path, "lines")
    data.lines(path, 11)
    with pytest.raises(Exception, match="source changed"):
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


def test_the_other_examples(spark: Any, tmp_path: Path) -> None:
    examples.write_orders(tmp_path)
    names = examples.run("filterPushdown", tmp_path, spark=spark)
    try:
        assert names["orders"].count() == 2000
        examples.run("orders.write.", tmp_path, **names)
        assert read(spark, tmp_path / "copy", "csv").count() == 2000
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    data.documents(tmp_path / "orders/a.bson", 10)
    names = examples.run('"objectId"', tmp_path, spark=spark)
    assert [row.price for row in names["orders"].collect()] == [n / 4 for n in range(10)]
    shutil.rmtree(tmp_path / "copy")
    query = examples.run("readStream", tmp_path, spark=spark)["query"]
    query.processAllAvailable()
    query.stop()
    assert read(spark, tmp_path / "copy/*/part-*.csv", "csv").count() == 3000


def test_the_example_with_commands(spark: Any, tmp_path: Path) -> None:
    examples.check_command("mapInArrow(", tmp_path, spark=spark)


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


#: What filters are compared with: nulls, both zeros, and text that is not ASCII.
FILTERED = """\
{"n": 1, "x": 0.5, "s": "a", "b": true, "d": "2000-01-01"}
{"n": 2, "x": -0.0, "s": "ab", "b": false, "d": "1999-12-31"}
{"n": 3, "x": 0.0, "s": "é", "b": null, "d": null}
{"n": null, "x": -1.5, "s": "", "b": true, "d": "2000-01-02"}
{"n": 5, "x": null, "s": null, "b": false, "d": "2000-01-01"}
"""

#: Conditions, and the filters that Spark passes for them.
FILTERS = {
    "n = 2": filters.EqualTo(("n",), 2),
    "n != 2": filters.Not(filters.EqualTo(("n",), 2)),
    "n <=> 2": filters.EqualNullSafe(("n",), 2),
    "not (n <=> 2)": filters.Not(filters.EqualNullSafe(("n",), 2)),
    "n >= 2": filters.GreaterThanOrEqual(("n",), 2),
    "n < 3": filters.LessThan(("n",), 3),
    "n in (1, 5)": filters.In(("n",), (1, 5)),
    "n not in (1, 5)": filters.Not(filters.In(("n",), (1, 5))),
    "n is null": filters.IsNull(("n",)),
    "n is not null": filters.IsNotNull(("n",)),
    "x > 0": filters.GreaterThan(("x",), 0.0),
    "x <= 0": filters.LessThanOrEqual(("x",), 0.0),
    "x = 0": filters.EqualTo(("x",), 0.0),
    "not (x > 0)": filters.Not(filters.GreaterThan(("x",), 0.0)),
    "s = 'a'": filters.EqualTo(("s",), "a"),
    "s > 'b'": filters.GreaterThan(("s",), "b"),
    "s like 'a%'": filters.StringStartsWith(("s",), "a"),
    "s like '%b'": filters.StringEndsWith(("s",), "b"),
    "s like '%b%'": filters.StringContains(("s",), "b"),
    "s not like 'a%'": filters.Not(filters.StringStartsWith(("s",), "a")),
    "b": filters.EqualTo(("b",), True),
    "d >= date'2000-01-01'": filters.GreaterThanOrEqual(("d",), datetime.date(2000, 1, 1)),
}

#: Filters that would not have the same result, or that Arrow cannot apply.
REFUSED = [
    filters.LessThan(("x",), float("nan")),
    filters.In(("x",), (0.0, 0.5)),
    filters.In(("n",), (1, None)),
    filters.EqualTo(("n",), 2**70),
    filters.EqualTo(("at", "n"), 1),
    filters.EqualTo(("t",), datetime.datetime(2000, 1, 1)),
    filters.GreaterThan(("b",), False),
    filters.StringContains(("n",), "1"),
]


def test_filters(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(FILTERED)
    types = {"n": "int64", "x": "float64", "s": "string", "b": "bool", "d": "date32", "t": "timestamp[us]"}
    schema = json.dumps({"fields": [{"name": name, "type": of} for name, of in types.items()]})
    frame = read(spark, path, "jsonl", schema=schema)
    expected = frame.selectExpr(*(f"{condition} as `{condition}`" for condition in FILTERS)).toArrow()
    batch = frame.toArrow().combine_chunks().to_batches()[0]
    for condition, of in FILTERS.items():
        assert _spark_filters.is_supported(of, batch.schema), condition
        assert _spark_filters.apply([of], batch) == batch.filter(expected[condition].combine_chunks()), condition
    for of in REFUSED:
        assert not _spark_filters.is_supported(of, batch.schema), of
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushing = read(spark, path, "jsonl", schema=schema, pushFilters="true", limit=3)
        pushed = pushing.where("n > 1 and d = date'1999-12-31'")
        assert " Filter " not in pushed._jdf.queryExecution().executedPlan().toString()
        assert [row.n for row in pushed.collect()] == [2]
        pushed = pushing.where("n > 1 and (x < 1 or s = 'a')")
        assert " Filter " in pushed._jdf.queryExecution().executedPlan().toString()
        # A limit counts the rows before filters.
        assert [row.n for row in pushed.collect()] == [2, 3]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    with pytest.raises(Exception, match=r"filterPushdown\.enabled"):
        read(spark, path, "jsonl", schema=schema, pushFilters="true").where("n > 1").collect()


class Stream:
    """A query that copies the CSV files of a folder."""

    def __init__(self, spark: Any, place: Path, **options: Any) -> None:
        self.spark = spark
        self.input = place / "in"
        self.input.mkdir()
        self.out = place / "out"
        self.checkpoint = place / "checkpoint"
        self.options = options

    def add(self, *names: str) -> None:
        for name in names:
            # The file appears complete.
            staged = self.input / f"{name}.tmp"
            staged.write_text(f"name,n\n{name},1\n{name},2\n")
            staged.rename(self.input / f"{name}.csv")

    def run(self, change: Callable[[Any], Any] = lambda frame: frame, name: str = "millstream", **options: str) -> None:
        """Runs until all files that exist are read. The rows are changed before they are written in this format."""
        schema = '{"fields": [{"name": "name", "type": "string"}, {"name": "n", "type": "int32"}]}'
        reader = self.spark.readStream.format("millstream").options(framing="csv", schema=schema)
        frame = reader.options(**self.options).load(f"{self.input}/*.csv")
        writer = change(frame).writeStream.format(name).options(framing="csv", **options)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        writer.start(str(self.out)).awaitTermination()

    def repeat(self) -> Path:
        """Makes the query forget that it has completed its last batch, and returns its directory."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink()
        [directory] = self.out.glob(f"*-{last:010}")
        return directory

    def batches(self) -> list[list[str]]:
        """The names in each batch."""
        found = []
        for directory in sorted(self.out.iterdir()):
            rows = [Path(part).read_text().splitlines()[1:] for part in ms.Job.parts(directory) or []]
            assert all(part == [f"{part[0][:-2]},1", f"{part[0][:-2]},2"] for part in rows)
            found.append([part[0][:-2].strip('"') for part in rows])
        return found


def test_a_stream_reads_each_file_once(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, maxFilesPerTrigger=2)
    # Spark begins with a batch of no files, which leaves nothing.
    stream.run()
    assert not stream.out.exists()
    stream.add("b", "c", "d")
    stream.run()
    assert stream.batches() == [["b", "c"], ["d"]]
    # One file is late, and one is another version of a file that was read.
    stream.add("a", "c", "e")
    stream.run()
    stream.run()
    assert stream.batches() == [["b", "c"], ["d"], ["e"]]


def test_a_stream_in_the_order_of_appearance(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, order="appearance")
    stream.add("b", "c")
    stream.run()
    # One file is late and older than the others, and one is another version of a file that was read.
    stream.add("a", "c", "d")
    os.utime(stream.input / "a.csv", (0, 0))
    stream.run()
    (stream.input / "b.csv").unlink()
    stream.add("e")
    stream.run()
    # The name has been forgotten.
    stream.add("b")
    stream.run()
    assert stream.batches() == [["b", "c"], ["a", "d"], ["e"], ["b"]]


def test_a_batch_that_is_repeated_is_visible_once(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    stream.add("a", "b")
    stream.run()
    # It is complete, has a manifest, has begun, or has not begun.
    for state in range(4) if objects.DEEP else [1, 2]:
        directory = stream.repeat()
        job = directory.name.partition("-")[0]
        if state > 1:
            shutil.rmtree(directory)
        if state == 1:
            (directory / "_SUCCESS").unlink()
            (directory / f".millstream-job-{job}").mkdir()
        elif state == 2:
            assert ms.Job.join(directory, job) is not None
        stream.run()
        assert stream.batches() == [["a", "b"]]
    stream.add("late")
    stream.run()
    assert stream.batches() == [["a", "b"], ["late"]]


def test_a_task_of_a_stream_that_is_killed(spark: Any, tmp_path: Path) -> None:
    """Before it has written its part, and after it."""
    stream = Stream(spark, tmp_path)
    before, after = str(tmp_path / "before"), str(tmp_path / "after")

    def killed(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield kill.once(batch, before)

    stream.add("a", "b")
    stream.run(lambda frame: frame.mapInArrow(killed, frame.schema))
    stream.add("c", "d")
    stream.run(name="killing", marker=after)
    assert Path(before).exists()
    assert Path(after).exists()
    assert stream.batches() == [["a", "b"], ["c", "d"]]


def test_a_batch_whose_file_has_changed(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    stream.add("a", "b")
    stream.run()
    shutil.rmtree(stream.repeat())
    stream.add("b")
    with pytest.raises(Exception, match="source changed"):
        stream.run()
    assert [path for path in stream.out.glob("*/*") if path.name[0] != "."] == []


def test_a_stream_in_a_store(spark: Any, store: Path, tmp_path: Path) -> None:
    path = data.lines(tmp_path / "a.txt", ROWS)
    for name in ("a b.txt", "c.txt"):
        objects.put(f"s3://bucket/stream/in/{name}", path)
    reader = spark.readStream.format("millstream").option("splitSize", data.SIZE)
    writer = reader.load("s3://bucket/stream/in/*.txt").writeStream.format("millstream")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    for _ in range(2):
        writer.start("s3://bucket/stream/out").awaitTermination()
    [directory] = (store / "stream/out").iterdir()
    copy = read(spark, f"s3://bucket/stream/out/{directory.name}/", "lines")
    assert copy.count() == 2 * (ROWS + 1)
    assert collect(copy, data.LINES) == pa.concat_tables([data.single(path)] * 2).combine_chunks()


@pytest.mark.parametrize(("order", "second"), [("name", ["new"]), ("appearance", ["late", "new"])])
def test_late_objects(spark: Any, store: Path, tmp_path: Path, order: str, second: list[str]) -> None:
    """An object that is overwritten after it was read is not read again."""
    folder, path = f"s3://bucket/late/{order}", tmp_path / "line"
    reader = spark.readStream.format("millstream").option("order", order).load(f"{folder}/in/*")
    writer = reader.writeStream.format("millstream").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for lines in ({"b": "first"}, {"a": "late", "b": "again", "c": "new"}):
        for name, line in lines.items():
            path.write_text(f"{line}\n")
            objects.put(f"{folder}/in/{name}", path)
        writer.start(f"{folder}/out").awaitTermination()
    found = [
        [row.line for row in read(spark, f"{folder}/out/{directory.name}/", "lines").collect()]
        for directory in sorted((store / f"late/{order}/out").iterdir())
    ]
    assert found == [["first"], second]


def test_an_object_of_a_batch_that_is_replaced(spark: Any, store: Path, tmp_path: Path) -> None:
    path = data.lines(tmp_path / "a.txt", 100)
    objects.put("s3://bucket/replaced/in/a.txt", path)
    reader = spark.readStream.format("millstream").load("s3://bucket/replaced/in/*.txt")
    writer = reader.writeStream.format("millstream").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start("s3://bucket/replaced/out").awaitTermination()
    # The batch is repeated.
    shutil.rmtree(tmp_path / "checkpoint/commits")
    [directory] = (store / "replaced/out").iterdir()
    shutil.rmtree(directory)
    objects.put("s3://bucket/replaced/in/a.txt", data.lines(path, 99))
    with pytest.raises(Exception, match="source changed"):
        writer.start("s3://bucket/replaced/out").awaitTermination()
    assert list((store / "replaced/out").glob("*/part-*")) == []


def test_options_of_streams(spark: Any, tmp_path: Path) -> None:
    for wrong in [{"framing": "xml"}, {"order": "size"}, {"limit": "1"}]:
        place = tmp_path / next(iter(wrong))
        place.mkdir()
        with pytest.raises(Exception, match="invalid option"):
            Stream(spark, place, **wrong).run()


@pytest.mark.skipif(not objects.DEEP, reason="it starts a cluster: set MILLSTREAM_DEEP=1")
def test_speculation(tmp_path: Path) -> None:
    path, out, attempts = data.lines(tmp_path / "a.txt", ROWS), tmp_path / "out", tmp_path / "attempts"
    attempts.mkdir()
    bad, good = tmp_path / "bad", path.read_bytes()
    path.write_bytes(b"\xff\n" + good.replace(b"\n", b"\n\xff\n"))
    program = Path(__file__).with_name("speculation.py")
    pyspark = Path(importlib.import_module("pyspark").__file__ or "").parent
    with standalone(pyspark, tmp_path) as cluster:
        subprocess.run([sys.executable, program, cluster.address, path, out, attempts, bad], check=True, timeout=300)
    begun = [name.partition("-")[0] for name in os.listdir(attempts)]
    assert begun.count("0") > 1
    parts = [Path(part).read_bytes() for part in ms.Job.parts(out) or []]
    assert len(parts) == len(set(begun))
    assert b"".join(parts).splitlines() == good.splitlines()
    assert arrow.count_rejects(bad) == good.count(b"\n") + 1


@pytest.mark.skipif(not objects.DEEP, reason="it starts a cluster: set MILLSTREAM_DEEP=1")
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_a_lost_node_changes_nothing(kind: str, tmp_path: Path) -> None:
    """Rows that were on the node are read again, and each is written once."""
    path, out, notes = data.lines(tmp_path / "a.txt"), tmp_path / "out", tmp_path / "notes"
    notes.mkdir()
    pyspark = Path(importlib.import_module("pyspark").__file__ or "").parent
    with standalone(pyspark, tmp_path) as cluster:
        program = subprocess.Popen([sys.executable, lost.__file__, kind, cluster.address, path, out, notes])
        try:
            while not (begun := list(notes.glob(f"write-{lost.WAITING}-*"))):
                assert program.poll() is None
                time.sleep(0.1)
            host = begun[0].name.split("-")[2]
            # It has written other parts, or has read their rows.
            assert len(list(notes.glob(f"*-{host}-*"))) > 1
            cluster.lose(host)
            assert program.wait(timeout=300) == 0
        finally:
            program.kill()
    assert len(list(notes.glob(f"write-{lost.WAITING}-*"))) == 2
    if kind == "batch":
        assert len(list(notes.glob(f"read-{lost.WAITING}-*"))) == 2
    [directory] = [out] if kind == "batch" else out.iterdir()
    parts = [Path(part).read_bytes() for part in ms.Job.parts(directory) or []]
    assert b"".join(parts).splitlines() == path.read_bytes().splitlines()
