"""Lines of a command's output in Python, read with the standard library or with Millstream
(benchmarks/millstream/python/lines.py).

Usage: lines.py WAY COMMAND [ARGUMENT...]

The first pass gives the answer. The second is timed, from starting the command until its exit status is known.
"""

import subprocess
import sys
import time


def over(lines):
    """Returns the number of lines and their total length in bytes."""
    count = length = 0
    for line in lines:
        count += 1
        length += len(line)
    return count, length


def popen(argv, **options):
    with subprocess.Popen(argv, stdout=subprocess.PIPE, **options) as process:
        count, length = over(process.stdout)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return count, length - count  # Each line has its line feed.


WAYS = {
    # The usual way.
    "popen": popen,
    # The same with a buffer and a pipe of 1 MiB.
    "popen-large": lambda argv: popen(argv, bufsize=1 << 20, pipesize=1 << 20),
}


def main(ways):
    way, argv = ways[sys.argv[1]], sys.argv[2:]
    count, length = way(argv)
    start = time.perf_counter_ns()
    again = way(argv)
    elapsed = time.perf_counter_ns() - start
    assert again == (count, length)
    print(f"{count=} {length=} ns={elapsed}")


if __name__ == "__main__":
    main(WAYS)
