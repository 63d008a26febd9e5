"""Reads CSV without a header in Python, as benchmarks/runners/src/bin/tables does in Rust.

Usage: tables.py count|sum|texts|types|show WAY FILE [--threads N] [--columns N] [--passes]

`count` counts the records, `sum` also adds up the second column, and `show` prints all records as JSON. `texts` makes a
table of integers and texts, and `types` one that also has a column of floating point numbers and one of dates; Arrow
counts what is in it. With `--passes` the median time of a pass is printed too, without the time that loading the library takes.
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


# The columns of the benchmark's tables: two integers, a price, a date, and texts.
PLAIN = ["int64", "int64", "string", "string"]
TYPED = ["int64", "int64", "float64", "date32"]


def polars_schema(work, columns):
    import polars

    types = {"int64": polars.Int64, "float64": polars.Float64, "date32": polars.Date, "string": polars.String}
    names = (TYPED if work == "types" else PLAIN) + (columns - 4) * ["string"]
    return {str(column): types[name] for column, name in enumerate(names)}


def polars_table(work, path, threads, columns):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    return polars.read_csv(path, has_header=False, schema=polars_schema(work, columns))


def duckdb_source(work, columns):
    """Returns the table function that reads the file of the query's parameter."""
    types = {"int64": "BIGINT", "float64": "DOUBLE", "date32": "DATE", "string": "VARCHAR"}
    names = (TYPED if work == "types" else PLAIN) + (columns - 4) * ["string"]
    fields = {f"c{column}": types[name] for column, name in enumerate(names)}
    return f"read_csv(?, header=false, auto_detect=false, delim=',', quote='\"', escape='\"', columns={fields})"


def duckdb_table(work, path, threads, columns):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    return connection.sql(f"SELECT * FROM {duckdb_source(work, columns)}", params=[path]).to_arrow_table()


def pyarrow_table(work, path, threads, columns):
    import pyarrow
    import pyarrow.csv

    pyarrow.set_cpu_count(threads)
    read = pyarrow.csv.ReadOptions(autogenerate_column_names=True, use_threads=threads > 1)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    types = {"int64": pyarrow.int64(), "float64": pyarrow.float64(), "date32": pyarrow.date32()}
    names = (TYPED if work == "types" else PLAIN) + (columns - 4) * ["string"]
    convert = pyarrow.csv.ConvertOptions(
        column_types={f"f{column}": types.get(name, pyarrow.string()) for column, name in enumerate(names)}
    )
    return pyarrow.csv.read_csv(path, read, parse, convert)


def pandas_table(work, path, _threads, columns):
    import pandas

    types = {"int64": "int64", "float64": "float64", "string": "str", "date32": "str"}
    names = (TYPED if work == "types" else PLAIN) + (columns - 4) * ["string"]
    return pandas.read_csv(
        path,
        header=None,
        names=[str(column) for column in range(columns)],
        dtype={str(column): types[name] for column, name in enumerate(names)},
        parse_dates=["3"] if work == "types" else None,
        date_format="%Y-%m-%d",
        na_filter=False,
        engine="c",
    )


def content(work, table):
    """Returns what is in a table, as Arrow counts it for every library."""
    import pyarrow
    import pyarrow.compute

    table = pyarrow.table(table)
    total = lambda column: pyarrow.compute.sum(column).as_py()
    texts = [column.cast(pyarrow.large_string()) for column in table.columns[4:]]
    length = sum(total(pyarrow.compute.binary_length(column)) for column in texts)
    found = {"count": table.num_rows, "sum": total(table.columns[1]), "length": length}
    if work == "types":
        found["cents"] = total(pyarrow.compute.round(pyarrow.compute.multiply(table.columns[2], 100)).cast(pyarrow.int64()))
        days = table.columns[3].cast(pyarrow.timestamp("s")).cast(pyarrow.date32()).cast(pyarrow.int32())
        found["days"] = total(days.cast(pyarrow.int64()))
    return found


TABLES = {"polars": polars_table, "duckdb": duckdb_table, "pyarrow": pyarrow_table, "pandas": pandas_table}

WAYS = {"csv": csv, "polars": polars, "duckdb": duckdb, "duckdb-sniffer": duckdb_sniffer, "pyarrow": pyarrow}


def median(run, first=0):
    """Returns the median time of a pass in nanoseconds. If `first`, the time of one, is many seconds, no other is made."""
    times = [first] if first > 5_000_000_000 else []
    for _ in range(0 if times else 3):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[len(times) // 2]


def main(tables=TABLES):
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["count", "sum", "texts", "types", "show"])
    parser.add_argument("way")
    parser.add_argument("path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--passes", action="store_true")
    options = parser.parse_args()

    is_table = options.work in ("texts", "types")

    def run():
        return (tables if is_table else WAYS)[options.way](options.work, options.path, options.threads, options.columns)

    result = run()
    if options.work == "show":
        records = [[field if field is not None else "" for field in record] for record in result]
        json.dump(records, sys.stdout)
        return
    if is_table:
        result = content(options.work, result)
    text = " ".join(f"{key}={value}" for key, value in result.items())
    if options.passes:
        text += f" ns={median(run)}"
    print(text)


if __name__ == "__main__":
    main()
