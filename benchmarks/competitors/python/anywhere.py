"""Lines at random places of a gzip file with an index (FILE.gzidx), read with indexed_gzip.

Usage: anywhere.py FILE PLACES SIZE

The places spread over the SIZE decoded bytes of the file in a fixed order. The time includes reading the index, once.
"""

import sys
import time

import indexed_gzip


def main():
    path, places, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    start = time.perf_counter_ns()
    count = length = first = 0
    with indexed_gzip.IndexedGzipFile(path, index_file=path + ".gzidx") as file:
        for place in range(places):
            file.seek((place * 2_654_435_761 % (1 << 32)) * size >> 32)
            file.readline()
            line = file.readline().rstrip(b"\n")
            if line:
                count += 1
                length += len(line)
                first += line[0]
    print(f"{count=} {length=} {first=} ns={time.perf_counter_ns() - start}")


if __name__ == "__main__":
    main()
