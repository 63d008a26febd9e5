"""A driver that reads and writes a table repeatedly, until it is killed.

Its arguments are the engine, the address of its cluster, and the file of CSV. It writes the line `ready`,
with the id of its node if it is on one.
For each line of standard input, a directory, it reads the file, writes it there as JSON lines, and writes the
line `done` with the number of rows and the sum of their hashes."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from typing import Any

import data
from standalone import session


def checksum(rows: list[dict[str, Any]]) -> str:
    """The number of rows, and the sum of their hashes, which does not depend on their order."""
    hashes = (hashlib.sha256(repr(row).encode()).digest()[:8] for row in rows)
    return f"{len(rows)} {sum(int.from_bytes(of, 'big') for of in hashes)}"


class Ray:
    def __init__(self, address: str, path: str) -> None:
        self.ray: Any = importlib.import_module("ray")
        self.source: Any = importlib.import_module("millstream.ray")
        self.ray.init(address=address, log_to_driver=False)
        self.node: str = self.ray.get_runtime_context().get_node_id()
        self.path = path

    def run(self, out: str) -> list[dict[str, Any]]:
        table = self.source.read_csv(self.path, split_size=data.SIZE)
        rows: list[dict[str, Any]] = table.take_all()
        self.source.write_jsonl(table, out)
        return rows


class Dask:
    node = ""

    def __init__(self, address: str, path: str) -> None:
        distributed: Any = importlib.import_module("distributed")
        self.source: Any = importlib.import_module("millstream.dask")
        self.client = distributed.Client(address)
        self.path = path

    def run(self, out: str) -> list[dict[str, Any]]:
        arrow: Any = importlib.import_module("pyarrow")
        frame = self.source.read_csv(self.path, split_size=data.SIZE)
        rows: list[dict[str, Any]] = arrow.Table.from_pandas(frame.compute(), preserve_index=False).to_pylist()
        self.source.write_jsonl(frame, out)
        return rows


class Spark:
    node = ""

    def __init__(self, address: str, path: str) -> None:
        # A slow attempt gets a second one.
        self.session = session(address, {"spark.speculation": "true"})
        self.path = path

    def run(self, out: str) -> list[dict[str, Any]]:
        reader = self.session.read.format("millstream").options(framing="csv", splitSize=data.SIZE)
        frame = reader.load(self.path)
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
        frame.write.format("millstream").option("framing", "jsonl").mode("append").save(out)
        return rows


ENGINES: dict[str, Any] = {"ray": Ray, "dask": Dask, "spark": Spark}


def main(engine: str, address: str, path: str) -> None:
    # What the engine itself writes is elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work = ENGINES[engine](address, path)
    print("ready", work.node, file=answers, flush=True)
    for line in sys.stdin:
        print("done", checksum(work.run(line.strip())), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
