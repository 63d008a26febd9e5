"""Millstream's runner for `benchmarks/competitors/cluster/engines.py`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import engines

# The types of the documents.
DOCUMENTS = {
    "id": "long", "name": "string", "score": "double", "tags": ["string"], "active": "bool", "created": "date",
}  # fmt: skip


class Ray(engines.Ray):
    line, number = "line", "1"

    def source(self):
        self.data
        import millstream.ray

        return millstream.ray

    @property
    def options(self):
        return {} if self.split is None else {"split_size": self.split}

    def text(self, path):
        return self.source().read_lines(path, **self.options)

    def table(self, path):
        return self.source().read_csv(path, header=False, columns=["1"], schema={"1": "int64"}, **self.options)

    def parquet(self, path):
        source = self.source()
        return engines.written(lambda out: source.write_parquet(source.read_bson(path, schema=DOCUMENTS), out))

    def scan(self, path):
        """Plans CSV, whose pass is made in tasks."""
        import millstream.arrow

        options = {"header": False, "schema": {"1": "int64"}, "map": self.source().map_tasks}
        return {"count": sum(task.rows for task in millstream.arrow.plan_csv(path, **options).tasks)}

    def tasks(self, path):
        """Reads each line of a file with a task."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"row\n" * engines.TASKS)
            file.flush()
            rows = self.source().read_lines(file.name, split_size=len(b"row\n")).materialize()
            return {"count": rows.count()}


class Arrow:
    """No engine."""

    def plan(self, path):
        """Plans the objects of a store that only lists them."""
        import millstream.arrow

        self.store  # noqa: B018
        plan = millstream.arrow.plan_lines("s3://bucket/data/*.log", decode="off")
        return {"count": len(plan.tasks)}

    def close(self):
        self.store.kill()

    @engines.cached_property
    def store(self):
        script = Path(engines.__file__).with_name("listing.py")
        store = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
        port = store.stdout.readline().decode().strip()
        names = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}
        os.environ.update(names, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="SECRET")
        return store


class Spark(engines.Spark):
    line = "line"

    @engines.cached_property
    def source(self):
        import millstream.spark

        millstream.spark.register(self.session)
        source = self.session.read.format("millstream")
        return source if self.split is None else source.option("splitSize", self.split)

    def text(self, path):
        return self.source.load(path)

    def table(self, path):
        schema = '{"fields": [{"name": "1", "type": "int64"}]}'
        return self.source.options(framing="csv", header="false", columns="1", schema=schema).load(path)


class Dask(engines.Dask):
    def source(self):
        self.frames
        import millstream.dask

        return millstream.dask

    @property
    def options(self):
        return {} if self.split is None else {"split_size": self.split}

    def lines(self, path):
        return self.source().read_lines(path, **self.options)["line"]

    def count(self, path):
        return {"count": len(self.lines(path))}

    def lengths(self, path):
        import dask

        lines = self.lines(path)
        count, length = dask.compute(lines.size, lines.str.len().sum())
        return {"count": int(count), "length": int(length)}

    def table(self, path):
        source = self.source()
        return source.read_csv(path, header=False, columns=["1"], schema={"1": "int64"}, **self.options)["1"]


class Daft(engines.Daft):
    def csv(self, path):
        import millstream.daft

        column, options = self.daft.col("1"), {} if self.split is None else {"split_size": self.split}
        rows = millstream.daft.read_csv(path, header=False, columns=["1"], schema={"1": "int64"}, **options)
        values = rows.agg(column.count().alias("count"), column.sum().alias("sum")).to_pydict()
        return {"count": values["count"][0], "sum": values["sum"][0]}


if __name__ == "__main__":
    engines.main({"arrow": Arrow, "ray": Ray, "spark": Spark, "dask": Dask, "daft": Daft})
