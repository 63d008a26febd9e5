"""Files that `millstream convert` converts, and what Python's own parsers find in them."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

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


def orders() -> list[dict[str, Any]]:
    """Objects with objects and arrays in them, and members that are null or missing."""
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
    return values


def write_orders(path: Path, values: list[dict[str, Any]]) -> None:
    lines = [json.dumps(value, ensure_ascii=number % 2 == 0) for number, value in enumerate(values)]
    text = "[" + ",\n".join(lines) + "]" if path.suffix == ".json" else "".join(line + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def write_people(path: Path) -> pa.Table:
    """Writes CSV, and returns what it contains."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for row in rows():
            text = '"' + row[-1].replace('"', '""') + '"'
            file.write(",".join([*row[:-1], text]) + "\n")
    return expected_of_csv(path)
