"""Columns of 11 tab-separated fields in Python, with other libraries or with Millstream
(benchmarks/millstream/python/columns.py).

Usage: columns.py WAY BAM

The fields are those that all aligned reads have, as text, which `samtools` writes before the clock starts. The first
pass gives the answer; the median of the others is reported. A pass starts with opening the file and ends with a table
of typed columns, whose numbers are NumPy arrays.
"""

import subprocess
import sys
import time
from pathlib import Path

TEXT = ["qname", "rname", "cigar", "rnext", "seq", "qual"]
NUMBERS = ["flag", "pos", "mapq", "pnext", "tlen"]
NAMES = ["qname", "flag", "rname", "pos", "mapq", "cigar", "rnext", "pnext", "tlen", "seq", "qual"]


def pandas(path):
    import pandas

    types = {name: "int64" if name in NUMBERS else "str" for name in NAMES}
    table = pandas.read_csv(
        path, sep="\t", header=None, names=NAMES, dtype=types, quoting=3, na_filter=False, engine="c"
    )
    return table, [table[name].to_numpy() for name in NUMBERS]


def polars(path):
    import polars

    types = {name: polars.Int64 if name in NUMBERS else polars.String for name in NAMES}
    table = polars.read_csv(path, separator="\t", has_header=False, schema=types, quote_char=None)
    return table, [table[name].to_numpy() for name in NUMBERS]


def pyarrow(path):
    import pyarrow
    import pyarrow.csv

    types = {name: pyarrow.int64() if name in NUMBERS else pyarrow.string() for name in NAMES}
    table = pyarrow.csv.read_csv(
        path,
        pyarrow.csv.ReadOptions(column_names=NAMES),
        pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
        pyarrow.csv.ConvertOptions(column_types=types),
    )
    return table, [table[name].to_numpy() for name in NUMBERS]


def text_bytes(table):
    """Returns the size in bytes of the text columns, counted by Arrow for every library."""
    import pyarrow
    import pyarrow.compute

    columns = [column.cast(pyarrow.large_string()) for column in pyarrow.table(table).select(TEXT).columns]
    return sum(pyarrow.compute.sum(pyarrow.compute.binary_length(column)).as_py() for column in columns)


WAYS = {"pandas": pandas, "polars": polars, "pyarrow": pyarrow}


def main(ways):
    way, bam = ways[sys.argv[1]], Path(sys.argv[2])
    path = bam.with_suffix(".text")
    if not path.exists():
        line = 'samtools view --no-PG "$0" | cut -f 1-11 >"$1"'
        subprocess.run(["bash", "-o", "pipefail", "-c", line, bam, path], check=True)
    table, numbers = way(path)
    answer = {"count": len(numbers[0]), **{name: int(column.sum()) for name, column in zip(NUMBERS, numbers)}}
    answer["text"] = text_bytes(table)
    del table, numbers
    times = []
    while len(times) < 3:
        start = time.perf_counter_ns()
        result = way(path)
        times.append(time.perf_counter_ns() - start)
        del result
    print(*(f"{key}={value}" for key, value in answer.items()), f"ns={sorted(times)[1]}")


if __name__ == "__main__":
    main(WAYS)
