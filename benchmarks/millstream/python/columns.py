"""Millstream's runner for `benchmarks/competitors/python/columns.py`."""

import sys
from pathlib import Path

import millstream

sys.path.insert(0, str(Path(__file__).parents[2] / "competitors/python"))
import columns


def millstream(path):
    types = {name: int if name in columns.NUMBERS else str for name in columns.NAMES}
    table = millstream.open(path).columns("\t", types)
    return table, [table[name] for name in columns.NUMBERS]


columns.main({"millstream": millstream})
