"""A driver on a cluster of Spark that has begun, which writes a slow frame with speculation.

Its arguments are the address of the master, the input, the output, a folder for what the attempts leave,
and one for the bad records."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from standalone import BOTH, session


def main(master: str, path: str, out: str, attempts: str, rejects: str) -> None:
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "100ms",
    }
    spark = session(master, {**BOTH, **settings})
    frame = spark.read.format("millstream").option("splitSize", 64 << 10).option("rejects", rejects).load(path)

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        """Leaves a file for each attempt. The first one of the last partition waits until another one has begun."""
        context: Any = importlib.import_module("pyspark").TaskContext.get()
        partition, attempt = context.partitionId(), context.taskAttemptId()
        Path(attempts, f"{partition}-{attempt}").touch()
        begun = len(list(Path(attempts).glob(f"{partition}-*")))
        yield from batches
        while partition == 0 and begun == 1 and len(list(Path(attempts).glob("0-*"))) == 1:
            time.sleep(0.1)

    frame.mapInArrow(slow, frame.schema).write.format("millstream").mode("append").save(out)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
