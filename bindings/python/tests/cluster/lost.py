"""A driver on a cluster of Spark, which loses a node while it writes.

Its arguments are `batch` or `stream`, the address of the master, the input, the output, and a folder in which each
attempt leaves a file: `WHAT-PARTITION-HOST-ATTEMPT`, in which `WHAT` is `read` or `write`. A batch has read all rows
before it writes, and the nodes have them in memory. The first attempt to write the partition `WAITING` never ends."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from standalone import BOTH, session

SIZE = 64 << 10

#: There are more partitions than nodes, so each node has written some before it is lost.
WAITING = 4


def main(kind: str, master: str, path: str, out: str, notes: str) -> None:
    spark = session(master, BOTH)

    def noting(what: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
        def note(batches: Iterator[Any]) -> Iterator[Any]:
            context: Any = importlib.import_module("pyspark").TaskContext.get()
            # An executor runs in the folder of its worker.
            host = next(part for part in Path.cwd().parts if part.startswith("127."))
            task = f"{what}-{context.partitionId()}"
            Path(notes, f"{task}-{host}-{context.taskAttemptId()}").touch()
            is_first = len(list(Path(notes).glob(f"{task}-*"))) == 1
            yield from batches
            while is_first and task == f"write-{WAITING}":
                time.sleep(1)

        return note

    if kind == "batch":
        frame = spark.read.format("millstream").option("splitSize", SIZE).load(path)
        frame = frame.mapInArrow(noting("read"), frame.schema).cache()
        frame.count()
        frame.mapInArrow(noting("write"), frame.schema).write.format("millstream").mode("append").save(out)
    else:
        frame = spark.readStream.format("millstream").option("splitSize", SIZE).load(path)
        writer = frame.mapInArrow(noting("write"), frame.schema).writeStream.format("millstream")
        writer = writer.option("checkpointLocation", os.path.join(notes, "checkpoint")).trigger(availableNow=True)
        writer.start(out).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
