"""Reads files with the engines of clusters on this machine.

Usage: engines.py WORK ENGINE [FILE] [--split BYTES] [--workers N] [--passes N]

`count` counts the lines of a text. `lengths` counts them and adds up the lengths, so that the engine transfers the
column. `csv` counts the records of CSV without a header and adds up the second column. `parquet` writes documents of BSON
as Parquet. `tasks` reads a row with each of 200 tasks of Ray, `plan` plans 100,000 objects, and `scan` reads parts of
256 MiB in tasks, or plans CSV with such tasks.

The engine is started, and reads a small file in the same way, before the clock starts. `--split` is the size of a part
of the file, for engines that have such an option, and `--workers` the number of tasks at the same time, 2 by default.
With `--passes`, the work is done N times: each pass prints the line `ready` and begins after a line on standard input,
and an error is a line `failed`; the engine continues.
"""

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from datetime import datetime
from functools import cache, cached_property, partial

WORKERS = 2
TASKS = 200
COLUMNS = 10
PART = 256 << 20


def ray_session():
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def dask_session():
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None))


def spark_session():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", f"local[{WORKERS}]"))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def summed(column, name, batch):
    """The number of rows of a batch of Arrow, and the sum of a column, as a batch of one row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = batch[column]
    if name == "length":
        values = pc.binary_length(values)
    return pa.table({"count": [batch.num_rows], name: [pc.sum(values).as_py() or 0]})


class Ray:
    split = None

    @cached_property
    def data(self):
        ray_session()
        import ray.data

        return ray.data

    def close(self):
        import ray

        ray.shutdown()

    def text(self, path):
        return self.data.read_text(path)

    newlines_in_values = True

    def table(self, path):
        import pyarrow.csv as csv

        return self.data.read_csv(
            path,
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            parse_options=csv.ParseOptions(newlines_in_values=self.newlines_in_values),
            convert_options=csv.ConvertOptions(include_columns=["f1"]),
        )

    line, number = "text", "f1"

    def count(self, path):
        return {"count": self.text(path).count()}

    def sums(self, dataset, column, name):
        batches = dataset.map_batches(partial(summed, column, name), batch_format="pyarrow", batch_size=None)
        parts = batches.take_all()
        return {key: sum(part[key] for part in parts) for key in ("count", name)}

    def lengths(self, path):
        return self.sums(self.text(path), self.line, "length")

    def csv(self, path):
        return self.sums(self.table(path), self.number, "sum")

    def parquet(self, path):
        # A task for each processor, as a program that is written for this would have.
        import bson

        parts = divided(path, WORKERS)
        tasks = self.data.from_items([{"path": path, "start": start, "end": end} for start, end in parts])

        def decoded(task):
            with open(task["path"], "rb") as file:
                file.seek(task["start"])
                yield from bson.decode_all(file.read(task["end"] - task["start"]))

        return written(lambda out: tasks.repartition(len(parts)).flat_map(decoded).write_parquet(out))

    def tasks(self, path):
        """Reads a row with each task, from memory."""
        data = self.data
        from ray.data.block import BlockMetadata
        from ray.data.datasource import Datasource, ReadTask

        class OneRow(Datasource):
            def get_name(self):
                return "OneRow"

            def estimate_inmemory_data_size(self):
                return 8 * TASKS

            def get_read_tasks(self, parallelism, per_task_row_limit=None, data_context=None):
                metadata = BlockMetadata(num_rows=None, size_bytes=8, exec_stats=None, input_files=None)
                return [ReadTask(one_row, metadata) for _ in range(TASKS)]

        def one_row():
            import pyarrow as pa

            return [pa.table({"line": ["row"]})]

        rows = data.read_datasource(OneRow(), override_num_blocks=TASKS).materialize()
        return {"count": rows.count()}

    def scan(self, path):
        """Reads parts of 256 MiB, each in a task, into a buffer of 256 KiB."""
        self.data
        import ray

        @ray.remote
        def read(start):
            left, buffer = PART, bytearray(256 << 10)
            with open(path, "rb", buffering=0) as file:
                file.seek(start)
                while left and (count := file.readinto(memoryview(buffer)[:left])):
                    left -= count
            return left < PART

        return {"count": sum(ray.get([read.remote(start) for start in range(0, os.path.getsize(path), PART)]))}


class RayLines(Ray):
    """Ray's default, in which a line end is always the end of a record."""

    newlines_in_values = False


class Spark:
    split = None

    @cached_property
    def session(self):
        session = spark_session()
        if self.split is not None:
            session.conf.set("spark.sql.files.maxPartitionBytes", self.split)
        return session

    def close(self):
        self.session.stop()

    def text(self, path):
        return self.session.read.text(path)

    def table(self, path):
        # The escape of RFC 4180; the default is a backslash.
        return self.typed.option("multiLine", True).option("escape", '"').csv(path)

    @property
    def typed(self):
        types = ["long", "long"] + (COLUMNS - 2) * ["string"]
        return self.session.read.schema(", ".join(f"`{number}` {name}" for number, name in enumerate(types)))

    line = "value"

    def count(self, path):
        return {"count": self.text(path).count()}

    def lengths(self, path):
        from pyspark.sql import functions as f

        count, length = self.text(path).agg(f.count("*"), f.sum(f.octet_length(self.line))).first()
        return {"count": count, "length": length}

    def csv(self, path):
        from pyspark.sql import functions as f

        count, total = self.table(path).agg(f.count("*"), f.sum(f.col("1"))).first()
        return {"count": count, "sum": total}

    def parquet(self, path):
        import bson

        def decoded(tasks):
            import pyarrow as pa

            for task in tasks:
                for start, end in zip(*(column.to_pylist() for column in task.columns)):
                    with open(path, "rb") as file:
                        file.seek(start)
                        documents = bson.decode_all(file.read(end - start))
                    for first in range(0, len(documents), 10_000):
                        yield pa.RecordBatch.from_pylist(documents[first : first + 10_000])

        parts = self.session.createDataFrame(divided(path, WORKERS), "start long, end long").repartition(WORKERS)
        types = "id long, name string, score double, tags array<string>, active boolean, created timestamp"
        return written(lambda out: parts.mapInArrow(decoded, types).write.parquet(out))


class SparkLines(Spark):
    """Spark's default, in which each line is a record, also inside quotes."""

    def table(self, path):
        return self.typed.option("escape", '"').csv(path)


class Sail(Spark):
    @cached_property
    def session(self):
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        self.server = SparkConnectServer("127.0.0.1", 0)
        self.server.start(background=True)
        host, port = self.server.listening_address
        return SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()

    def close(self):
        # The server would not end.
        os._exit(0)


class Dask:
    split = None
    # One part for each file: by default Dask divides files at any line end.
    block = None

    @cached_property
    def frames(self):
        self.client = dask_session()
        import dask.dataframe

        return dask.dataframe

    def close(self):
        self.client.shutdown()

    def table(self, path):
        return self.frames.read_csv(path, header=None, usecols=[1], blocksize=self.block)[1]

    def bag(self, path):
        self.frames
        import dask.bag

        return dask.bag.read_text(path, blocksize=self.split or 128 << 20)

    def count(self, path):
        return {"count": self.bag(path).count().compute()}

    def lengths(self, path):
        import dask

        lines = self.bag(path)
        # The lines have their ends.
        count, length = dask.compute(lines.count(), lines.map(len).sum())
        return {"count": count, "length": length - count}

    def csv(self, path):
        import dask

        column = self.table(path)
        count, total = dask.compute(column.size, column.sum())
        return {"count": int(count), "sum": int(total)}


class DaskBlocks(Dask):
    @property
    def block(self):
        return self.split or "default"


class Daft:
    @cached_property
    def daft(self):
        os.environ["DAFT_PROGRESS_BAR"] = "0"
        import daft

        return daft

    def close(self):
        pass

    def csv(self, path):
        column = self.daft.col("column_2")
        row = self.daft.read_csv(path, has_headers=False).agg(column.count().alias("count"), column.sum().alias("sum"))
        values = row.to_pydict()
        return {"count": values["count"][0], "sum": values["sum"][0]}


ENGINES = {
    "ray": Ray, "ray-lines": RayLines, "spark": Spark, "spark-lines": SparkLines, "sail": Sail, "dask": Dask,
    "dask-blocks": DaskBlocks, "daft": Daft,
}  # fmt: skip


@cache
def divided(path, parts):
    """Divides a file of BSON into ranges of whole documents."""
    size = os.path.getsize(path)
    ranges, start, at = [], 0, 0
    with open(path, "rb", buffering=1 << 20) as file:
        while at < size:
            length = int.from_bytes(file.read(4), "little")
            file.seek(length - 4, os.SEEK_CUR)
            at += length
            if at >= size * (len(ranges) + 1) // parts:
                ranges.append((start, at))
                start = at
    return ranges


def written(write):
    """Counts the rows of Parquet that a function writes into a directory."""
    import pyarrow.dataset

    out = tempfile.mkdtemp(dir="/dev/shm")
    os.rmdir(out)
    try:
        write(out)
        table = pyarrow.dataset.dataset(out, format="parquet").to_table(columns=["id"])
        return {"count": table.num_rows, "ids": sum(table["id"].to_pylist())}
    finally:
        shutil.rmtree(out, ignore_errors=True)


def small(work):
    """The content of a file that the engine reads before the clock starts."""
    if work == "parquet":
        import bson

        return bson.encode({"id": 1, "name": "a", "score": 1.5, "tags": ["b"], "active": True, "created": datetime(2026, 1, 1)}) * 1000
    return b"1,2" + b",text" * (COLUMNS - 2) + b"\n" if work in ("csv", "scan") else b"a line\n"


def main(engines=ENGINES):
    global WORKERS
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["count", "lengths", "csv", "parquet", "tasks", "plan", "scan"])
    parser.add_argument("engine", choices=engines)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--split", type=int)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--passes", type=int)
    options = parser.parse_args()
    WORKERS = options.workers
    warnings.simplefilter("ignore")
    engine = engines[options.engine]()
    engine.split = options.split
    run = getattr(engine, options.work)
    with tempfile.NamedTemporaryFile() as file:
        file.write(small(options.work) * 1000)
        file.flush()
        run(file.name)
    if options.work == "parquet":
        # A dump of several collections is divided already.
        divided(options.path, WORKERS)
    for _ in range(options.passes or 1):
        if options.passes:
            print("ready", flush=True)
            sys.stdin.readline()
        start = time.perf_counter_ns()
        try:
            answer = run(options.path)
        except Exception as error:
            if not options.passes:
                raise
            print("failed", type(error).__name__, *str(error).split(), flush=True)
            continue
        answer["ns"] = time.perf_counter_ns() - start
        print(" ".join(f"{key}={value}" for key, value in answer.items()), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
