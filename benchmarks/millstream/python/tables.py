"""Millstream's runner for `benchmarks/competitors/python/tables.py`."""

import sys
from pathlib import Path

import millstream
import pyarrow

sys.path.insert(0, str(Path(__file__).parents[2] / "competitors/python"))
import tables


def millstream_table(work, path, threads, columns):
    names = (tables.TYPED if work == "types" else tables.PLAIN) + (columns - 4) * ["string"]
    schema = {str(column): name for column, name in enumerate(names)}
    return pyarrow.table(millstream.columns(path, "csv", header=False, schema=schema, threads=threads))


def millstream_inferred(_work, path, threads, _columns):
    return pyarrow.table(millstream.columns(path, "csv", header=False, threads=threads))


tables.main({"millstream": millstream_table, "inferred": millstream_inferred})
