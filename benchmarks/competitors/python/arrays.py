"""Arrays of a mapped file in Python with pymongo, which copies them.

Usage: arrays.py FILE

The first pass gives the answer; the median of the others is reported. A pass includes opening the file.
"""

import mmap
import sys
import time

import bson


def load():
    with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return bson.decode(mapped)["weights"]


arrays = load()
answer = f"count={len(arrays)} floats={sum(len(array['data']) // 4 for array in arrays)}"
del arrays
times = []
for _ in range(3):
    start = time.perf_counter_ns()
    result = load()
    times.append(time.perf_counter_ns() - start)
    del result
print(answer, f"ns={sorted(times)[1]}")
