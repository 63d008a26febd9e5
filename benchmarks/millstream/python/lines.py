"""Millstream's runners for `benchmarks/competitors/python/lines.py`."""

import sys
from pathlib import Path

import millstream

sys.path.insert(0, str(Path(__file__).parents[2] / "competitors/python"))
import lines


def one_at_a_time(argv):
    return lines.over(millstream.command(argv))


def lists(argv):
    """Each line as an object, in lists of lines."""
    count = length = 0
    for batch in millstream.command(argv).batches():
        more = lines.over(batch.to_list())
        count, length = count + more[0], length + more[1]
    return count, length


def batches(argv):
    """The position of each line, without accessing its bytes."""
    count = length = 0
    for batch in millstream.command(argv).batches():
        count += len(batch)
        length += int(batch.offsets[-1])
    return count, length - count


lines.main({"one-at-a-time": one_at_a_time, "lists": lists, "batches": batches})
