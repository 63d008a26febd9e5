"""Millstream's runner for BSON in Python.

Usage: bson.py WAY FILE

The ways are `records` and `columns` (small typed records as dicts and as columns) and `arrays` (a mapped file). The
answers are those of `benchmarks/competitors/bson/pymongo_bson.py`. The first pass gives the answer; the median of the others
is reported. The cyclic garbage collector keeps its default settings.
"""

import datetime
import math
import sys
import time
from pathlib import Path

from millstream import bson

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def records(path):
    data = path.read_bytes()

    def answer():
        documents = bson.decode_all(data)
        return {
            "count": len(documents),
            "ids": sum(document["id"] for document in documents),
            "text": sum(len(text.encode()) for document in documents for text in (document["name"], *document["tags"])),
            "scores": int(64 * math.fsum(document["score"] for document in documents)),
            "tags": sum(len(document["tags"]) for document in documents),
            "active": sum(document["active"] for document in documents),
            "created": sum((document["created"] - EPOCH) // datetime.timedelta(milliseconds=1) for document in documents),
        }

    return answer(), lambda: bson.decode_all(data)


def columns(path):
    import pyarrow
    import pyarrow.compute

    data = path.read_bytes()

    def load():
        return pyarrow.table(bson.columns(data))

    def bytes_of(column):
        return pyarrow.compute.sum(pyarrow.compute.binary_length(column)).as_py()

    def answer():
        table = load()
        tags = pyarrow.compute.list_flatten(table["tags"])
        return {
            "count": len(table),
            "ids": pyarrow.compute.sum(table["id"]).as_py(),
            "text": bytes_of(table["name"]) + bytes_of(tags),
            "scores": int(64 * math.fsum(table["score"].to_pylist())),
            "tags": len(tags),
            "active": pyarrow.compute.sum(table["active"]).as_py(),
            "created": pyarrow.compute.sum(table["created"].cast(pyarrow.int64())).as_py(),
        }

    return answer(), load


def arrays(path):
    def load():
        weights = bson.open(path)["weights"]
        return [weights[index].array("data", "<f4") for index in weights]

    loaded = load()
    return {"count": len(loaded), "floats": sum(array.size for array in loaded)}, load


def main():
    way, path = {"records": records, "columns": columns, "arrays": arrays}[sys.argv[1]], Path(sys.argv[2])
    answer, work = way(path)
    times = []
    while len(times) < 3 or (len(times) < 15 and sum(times) < 400_000_000):
        start = time.perf_counter_ns()
        result = work()
        times.append(time.perf_counter_ns() - start)
        del result
    words = [f"{key}={value % 2**64}" for key, value in answer.items()]
    print(*words, f"ns={sorted(times)[len(times) // 2]}")


main()
