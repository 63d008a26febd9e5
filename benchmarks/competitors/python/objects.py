"""Reads JSON and BSON and writes Parquet in Python.

Usage: objects.py flat|nested|elements|parquet WAY FILE [--threads N] [--passes]

`flat` and `nested` make a table of a file with an object in each line, with inferred types; Arrow counts what is in it.
`elements` picks one member of each element of an array, and adds it up. `parquet` converts CSV without a header,
JSON lines or BSON of `mongodump --gzip` to Parquet with zstd at level 3 and row groups of at most 1,048,576 rows, and counts
what is in that file. With `--passes` the median time of a pass is printed too, without the time that loading the library takes; for programs that
are started, a pass includes their start.
"""

import argparse
import itertools
import os
import subprocess
import tempfile
import time

import tables

ROWS = 1 << 20
# The columns of CSV.
COLUMNS = 10


def polars_table(path, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    return polars.read_ndjson(path).to_arrow()


def duckdb_table(path, threads):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    return connection.sql("SELECT * FROM read_json(?, format='newline_delimited')", params=[path]).to_arrow_table()


def pyarrow_table(path, threads):
    import pyarrow
    import pyarrow.json

    pyarrow.set_cpu_count(threads)
    return pyarrow.json.read_json(path, pyarrow.json.ReadOptions(use_threads=threads > 1))


def content(work, table):
    """Returns what is in a table of objects."""
    import pyarrow
    import pyarrow.compute

    total = lambda column: pyarrow.compute.sum(column).as_py()
    length = lambda column: total(pyarrow.compute.binary_length(column.cast(pyarrow.large_string())))
    found = {"count": table.num_rows, "sum": total(table["amount"])}
    if work == "nested":
        found["length"] = length(pyarrow.compute.struct_field(table["user"], ["place", "city"]))
        found["items"] = total(pyarrow.compute.list_value_length(table["items"]))
    else:
        found["length"] = sum(length(table[name]) for name in ["name", "city", "note"])
    return found


def duckdb_elements(path, threads):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    select = "SELECT count(*), sum(amount) FROM read_json(?, format='array', columns={amount: 'BIGINT'})"
    return dict(zip(["count", "sum"], map(int, connection.execute(select, [path]).fetchone())))


def ijson_elements(path, _threads):
    import ijson.backends.yajl2_c as ijson

    count = total = 0
    with open(path, "rb") as file:
        for amount in ijson.items(file, "item.amount"):
            count += 1
            total += amount
    return {"count": count, "sum": total}


def jq_elements(path, _threads):
    picked = 'inputs | select(length == 2 and .[0][1] == "amount") | .[1]'
    words = ["jq", "-n", "--stream", f"reduce ({picked}) as $amount ([0, 0]; [.[0] + 1, .[1] + $amount]) | .[]", path]
    count, total = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return {"count": int(count), "sum": int(total)}


def jaq_elements(path, _threads):
    words = ["jaq", "[.[].amount] | length, add", path]
    count, total = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return {"count": int(count), "sum": int(total)}


def polars_parquet(path, threads, out):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    if path.endswith(".csv"):
        frame = polars.scan_csv(path, has_header=False, schema=tables.polars_schema("types", COLUMNS))
    else:
        frame = polars.scan_ndjson(path)
    frame.sink_parquet(out, compression="zstd", compression_level=3, row_group_size=ROWS)


def duckdb_parquet(path, threads, out):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    is_csv = path.endswith(".csv")
    source = tables.duckdb_source("types", COLUMNS) if is_csv else "read_json(?, format='newline_delimited')"
    options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE {ROWS}"
    connection.execute(f"COPY (SELECT * FROM {source}) TO '{out}' ({options})", [path])


def pyarrow_parquet(path, threads, out):
    import pyarrow.parquet

    is_csv = path.endswith(".csv")
    table = tables.pyarrow_table("types", path, threads, COLUMNS) if is_csv else pyarrow_table(path, threads)
    pyarrow.parquet.write_table(table, out, compression="zstd", compression_level=3, row_group_size=ROWS)


def pymongo_parquet(path, _threads, out):
    """The documents of a row group are dicts at a time, whose types are those of the first ones."""
    import gzip

    import bson
    import pyarrow.parquet

    with gzip.open(path) as file:
        documents = bson.decode_file_iter(file)
        table = pyarrow.Table.from_pylist(list(itertools.islice(documents, ROWS)))
        with pyarrow.parquet.ParquetWriter(out, table.schema, compression="zstd", compression_level=3) as writer:
            while table.num_rows:
                writer.write_table(table, row_group_size=ROWS)
                table = pyarrow.Table.from_pylist(list(itertools.islice(documents, ROWS)), table.schema)


def parquet_content(path):
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    # The second column is the amount in CSV, too, where each program gives it another name; documents begin with a number.
    column = table.column(0 if "created" in table.column_names else 1)
    return {"count": table.num_rows, "sum": pyarrow.compute.sum(column).as_py()}


TABLES = {"polars": polars_table, "duckdb": duckdb_table, "pyarrow": pyarrow_table}
ELEMENTS = {"duckdb": duckdb_elements, "ijson": ijson_elements, "jq": jq_elements, "jaq": jaq_elements}
PARQUET = {"polars": polars_parquet, "duckdb": duckdb_parquet, "pyarrow": pyarrow_parquet, "pymongo": pymongo_parquet}


def main(into_tables=TABLES, elements=ELEMENTS, parquet=PARQUET):
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["flat", "nested", "elements", "parquet"])
    parser.add_argument("way")
    parser.add_argument("path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passes", action="store_true")
    options = parser.parse_args()
    work, path, threads = options.work, options.path, options.threads

    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as directory:
        out = os.path.join(directory, "out.parquet")

        def run():
            match work:
                case "elements":
                    return elements[options.way](path, threads)
                case "parquet":
                    return parquet[options.way](path, threads, out)
                case _:
                    return into_tables[options.way](path, threads)

        start = time.perf_counter_ns()
        result = run()
        first = time.perf_counter_ns() - start
        match work:
            case "elements":
                pass
            case "parquet":
                result = parquet_content(out)
            case _:
                result = content(work, result)
        text = " ".join(f"{key}={value}" for key, value in result.items())
        if options.passes:
            text += f" ns={tables.median(run, first)}"
    print(text)


if __name__ == "__main__":
    main()
