"""Reads CSV without a header in Python, as benchmarks/runners/src/bin/tables does in Rust.

Usage: tables.py count|sum|show WAY FILE [--threads N] [--columns N] [--passes]

`count` counts the records, `sum` also adds up the second column, and `show` prints all records as JSON. With `--passes` the median time of a pass is printed too, without the time that loading the library takes.
Python's own reader visits every field; the others decide what they read for a sum.
"""

import argparse
import json
import os
import sys
import time


def csv(work, path, _threads, _columns):
    import csv

    csv.field_size_limit(2**31)
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        reader = csv.reader(file, strict=True)
        if work == "show":
            return [record for record in reader if record]
        if work == "count":
            return {"count": sum(1 for record in reader if record)}
        count = fields = length = total = 0
        for record in reader:
            count += 1
            fields += len(record)
            length += sum(map(len, record))
            total += int(record[1])
        return {"count": count, "fields": fields, "length": length, "sum": total}


def polars(work, path, threads, columns):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    if work == "count":
        return {"count": polars.scan_csv(path, has_header=False).select(polars.len()).collect().item()}
    schema = {str(column): polars.String for column in range(columns)}
    if work == "show":
        return polars.read_csv(path, has_header=False, schema=schema).rows()
    table = polars.scan_csv(path, has_header=False, schema=schema | {"1": polars.Int64})
    count, total = table.select(polars.len(), polars.col("1").sum()).collect().row(0)
    return {"count": count, "sum": total}


def duckdb(work, path, threads, columns, sniffs=False):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    types = {f"c{column}": "BIGINT" if (work, column) == ("sum", 1) else "VARCHAR" for column in range(columns)}
    dialect = f"auto_detect=false, delim=',', quote='\"', escape='\"', columns={types}"
    select = {"count": "count(*)", "sum": "count(*), sum(c1)", "show": "*"}[work]
    options = "all_varchar=true" if sniffs else dialect
    rows = connection.execute(f"SELECT {select} FROM read_csv(?, header=false, {options})", [path]).fetchall()
    return rows if work == "show" else dict(zip(["count", "sum"], rows[0]))


def duckdb_sniffer(work, path, threads, columns):
    return duckdb(work, path, threads, columns, sniffs=True)


def pyarrow(work, path, threads, columns):
    import pyarrow
    import pyarrow.csv

    pyarrow.set_cpu_count(threads)
    read = pyarrow.csv.ReadOptions(autogenerate_column_names=True, use_threads=threads > 1)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    if work == "sum":
        import pyarrow.compute

        table = pyarrow.csv.read_csv(path, read, parse)
        return {"count": table.num_rows, "sum": pyarrow.compute.sum(table["f1"]).as_py()}
    # Otherwise the type of a column is what its first block contains.
    texts = {f"f{column}": pyarrow.string() for column in range(columns)}
    convert = pyarrow.csv.ConvertOptions(column_types=texts)
    if work == "show":
        table = pyarrow.csv.read_csv(path, read, parse, convert)
        return list(zip(*(column.to_pylist() for column in table.columns)))
    return {"count": sum(batch.num_rows for batch in pyarrow.csv.open_csv(path, read, parse, convert))}


WAYS = {"csv": csv, "polars": polars, "duckdb": duckdb, "duckdb-sniffer": duckdb_sniffer, "pyarrow": pyarrow}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["count", "sum", "show"])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--passes", action="store_true")
    options = parser.parse_args()

    def run():
        return WAYS[options.way](options.work, options.path, options.threads, options.columns)

    result = run()
    if options.work == "show":
        records = [[field if field is not None else "" for field in record] for record in result]
        json.dump(records, sys.stdout)
        return
    text = " ".join(f"{key}={value}" for key, value in result.items())
    if options.passes:
        times = []
        for _ in range(3):
            start = time.perf_counter_ns()
            run()
            times.append(time.perf_counter_ns() - start)
        text += f" ns={sorted(times)[1]}"
    print(text)


if __name__ == "__main__":
    main()
