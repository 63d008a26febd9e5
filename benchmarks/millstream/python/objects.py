"""Millstream's runner for `benchmarks/competitors/python/objects.py`."""

import subprocess
import sys
from pathlib import Path

import millstream
import pyarrow
import pyarrow.compute

sys.path.insert(0, str(Path(__file__).parents[2] / "competitors/python"))
import objects


def table(path, threads):
    return pyarrow.table(millstream.columns(path, "jsonl", threads=threads))


def elements(path, threads):
    count = total = 0
    columns = millstream.columns(path, "json", schema={"amount": "int64"}, threads=threads)
    for batch in pyarrow.RecordBatchReader.from_stream(columns):
        count += batch.num_rows
        total += pyarrow.compute.sum(batch["amount"]).as_py() or 0
    return {"count": count, "sum": total}


def convert(path, threads, out):
    given = ["--no-header"] if path.endswith(".csv") else []
    words = ["millstream", "convert", path, "-o", out, "-j", str(threads), *given]
    subprocess.run(words, check=True)


objects.main({"millstream": table}, {"millstream": elements}, {"millstream": convert})
