"""What `millstream convert` writes, read by other programs and compared with Python's own parsers."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

ROWS = 5_000

# The names, types and parsers of the columns of the CSV file.
COLUMNS: dict[str, tuple[pa.DataType, Callable[[str], Any]]] = {
    "id": (pa.int64(), int),
    "large": (pa.uint64(), int),
    "x": (pa.float64(), float),
    "day": (pa.date32(), dt.date.fromisoformat),
    "at": (pa.timestamp("us"), dt.datetime.fromisoformat),
    "zoned": (pa.timestamp("us", "UTC"), dt.datetime.fromisoformat),
    "yes": (pa.bool_(), lambda text: {"true": True, "false": False}[text]),
    "code": (pa.string(), str),
    "text": (pa.string(), str),
}


def convert(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "millstream", "convert", *words], check=True, timeout=60)


def rows() -> Iterator[list[str]]:
    """Values of every type in the spelling that prints them back; NA is null, except for the text."""
    generator = random.Random(7)
    pieces = ["plain", "a, comma", 'a "quote"', "two\nlines", "\u00e9\u4e2d\U0001f600", "", " ", "NA"]
    for number in range(ROWS):
        moment = dt.datetime(1960 + number % 150, 1 + number % 12, 1 + number % 28, microsecond=number)
        row = [
            str(number - 100),
            str(2**64 - 1 - number),
            repr(generator.choice([generator.random() * 10.0 ** generator.randint(-300, 300), -0.0, 0.1, -7.0])),
            (dt.date(1, 1, 1) + dt.timedelta(days=generator.randrange(3_600_000))).isoformat(),
            moment.isoformat(timespec="microseconds"),
            moment.isoformat(timespec="microseconds") + "Z",
            generator.choice(["true", "false"]),
            f"{generator.randrange(1000):03}",
            generator.choice(pieces),
        ]
        if number > 0 and generator.random() < 0.3:
            row[generator.randrange(len(row) - 1)] = "NA"
        yield row


def expected_of_csv(path: Path) -> pa.Table:
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.reader(file, strict=True))[1:]
    columns = []
    for index, (name, (kind, parse)) in enumerate(COLUMNS.items()):
        # Python's parser does not tell a quoted NA from a plain one; all texts are in quotes.
        texts = [record[index] for record in records]
        values = [None if text == "NA" and name != "text" else parse(text) for text in texts]
        columns.append(pa.array(values, kind))
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    path = tmp_path_factory.mktemp("convert") / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for row in rows():
            text = '"' + row[-1].replace('"', '""') + '"'
            file.write(",".join([*row[:-1], text]) + "\n")
    return path, expected_of_csv(path)


@pytest.mark.parametrize("options", [[], ["-j", "2", "--row-group-size", "1000"], ["--compression", "snappy"]])
def test_parquet_of_csv_is_what_was_read(people: tuple[Path, pa.Table], tmp_path: Path, options: list[str]) -> None:
    path, expected = people
    out = tmp_path / "people.parquet"
    convert(path, "--null", "NA", "-o", out, *options)
    table = pyarrow.parquet.read_table(out)
    assert table.schema.remove_metadata().equals(expected.schema)
    assert table.equals(expected)
    assert table["x"].to_pylist() == expected["x"].to_pylist()
    # Other readers have the same values, and their own names for the types.
    assert pl.read_parquet(out).to_arrow().cast(expected.schema).equals(expected)
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    seen = duckdb.connect()
    seen.execute("SET TimeZone = 'UTC'")
    read = seen.sql(f"SELECT {columns} FROM read_parquet(?)", params=[str(out)]).to_arrow_table()
    assert read.cast(expected.schema).equals(expected)


def test_arrow_of_csv_is_what_was_read(people: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, expected = people
    convert(path, "--null", "NA", "-o", tmp_path / "people.arrow")
    with pa.OSFile(str(tmp_path / "people.arrow")) as file:
        assert pyarrow.ipc.open_file(file).read_all().replace_schema_metadata().equals(expected)
    convert(path, "--null", "NA", "-o", tmp_path / "people.arrows")
    with pa.OSFile(str(tmp_path / "people.arrows")) as file:
        assert pyarrow.ipc.open_stream(file).read_all().replace_schema_metadata().equals(expected)


def test_decimals_keep_their_digits(tmp_path: Path) -> None:
    texts = [f"{number}.{number % 100:02}" for number in range(1, 500)]
    path = tmp_path / "prices.csv"
    path.write_text("price\n" + "\n".join(texts) + "\n")
    convert(path, "--decimals", "-o", tmp_path / "prices.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "prices.parquet")
    assert pa.types.is_decimal128(table.schema.types[0])
    assert table["price"].to_pylist() == [Decimal(text) for text in texts]


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_parquet_of_json_is_what_was_read(tmp_path: Path, form: str) -> None:
    generator = random.Random(8)
    values: list[dict[str, Any]] = []
    for number in range(ROWS):
        value: dict[str, Any] = {
            "id": number,
            "x": generator.random() - 0.5,
            "name": generator.choice(["Ann", 'a "quote"', "\u00e9\n\u4e2d", ""]),
            "ok": generator.choice([True, False, None]),
            "place": {"city": f"city {number % 7}", "zip": generator.randrange(100_000)},
            "tags": [f"t{tag}" for tag in range(generator.randrange(3))],
            "items": [{"sku": f"s{item}", "count": item} for item in range(generator.randrange(3))],
        }
        if number > 0 and number % 5 == 0:
            del value["place"]
        values.append(value)
    path = tmp_path / f"orders.{form}"
    lines = [json.dumps(value, ensure_ascii=number % 2 == 0) for number, value in enumerate(values)]
    text = "".join(line + "\n" for line in lines) if form == "jsonl" else "[" + ",\n".join(lines) + "]"
    path.write_text(text, encoding="utf-8")
    convert(path, "-o", tmp_path / "orders.parquet", "-j", "2")
    table = pyarrow.parquet.read_table(tmp_path / "orders.parquet")
    place = pa.struct([("city", pa.string()), ("zip", pa.int64())])
    item = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), place, pa.list_(pa.string()), pa.list_(item)]
    assert table.column_names == ["id", "x", "name", "ok", "place", "tags", "items"]
    assert [str(kind).replace("item: ", "") for kind in table.schema.types] == [
        str(kind).replace("item: ", "") for kind in kinds
    ]
    assert table.to_pylist() == [{"place": None} | value for value in values]
