"""The data of these tests, and what reading them on one machine returns."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import millstream as ms
import pyarrow as pa
import pyarrow.parquet as pq
from millstream import bson

#: The size of the splits: small enough that the files have many.
SIZE = 64 << 10

ROWS = 20_000

LINES = pa.schema({"line": pa.string()})


def csv(path: Path, rows: int = ROWS) -> Path:
    """CSV with quotes, delimiters and line feeds in fields; some fields are longer than a split."""
    with path.open("w", newline="") as file:
        file.write("id,text,price\n")
        for n in range(rows):
            text = "long\n" * 20_000 if n % 4_000 == 3_999 else f'a "{n}",\n{n},x,\r\n"'
            file.write(f'{n},"{text.replace(chr(34), 2 * chr(34))}",{n / 4}\n')
    return path


def jsonl(path: Path, rows: int = ROWS) -> Path:
    with path.open("w") as file:
        for n in range(rows):
            row = {"id": n, "tags": [str(n)] * (n % 3), "at": {"x": n / 8, "y": None if n % 2 else "é"}, "any": n % 7}
            row["any"] = {} if n % 7 == 0 else n % 7
            file.write(json.dumps(row, ensure_ascii=n % 2 == 0) + "\n")
    return path


#: The number of records of `bad` that are left out.
BAD = 50


def bad(path: Path, rows: int = ROWS) -> Path:
    """CSV of which `BAD` records have too few fields. Together with these, it has this number of rows."""
    with path.open("w", newline="") as file:
        file.write("id,text,price\n")
        for n in range(rows):
            rest = "" if n % (rows // BAD) == 7 else f',"a\n{n}",{n / 4}'
            file.write(f"{n}{rest}\n")
    return path


def lines(path: Path, rows: int = ROWS) -> Path:
    path.write_bytes(b"".join(b"line %d\r of many\r\n" % n for n in range(rows)) + b"the last one")
    return path


def delimited(path: Path, rows: int = ROWS) -> Path:
    """Text with `|` as the delimiter, and quotes that are part of the fields."""
    path.write_text("id|text|price\n" + "".join(f'{n}|"{n}|{n / 4}\n' for n in range(rows)))
    return path


#: The types of `documents`.
TYPES: dict[str, Any] = {"_id": "objectId", "price": "double", "at": "date", "tags": ["string"], "inner.n": "long!"}


def documents(path: Path, rows: int = 1_000) -> Path:
    """Documents of BSON."""

    def document(n: int) -> dict[str, Any]:
        at = datetime.datetime(2024, 1, 1, microsecond=n * 1000, tzinfo=datetime.UTC)
        id = bson.ObjectId(n.to_bytes(12, "big"))
        return {"_id": id, "price": n / 4, "at": at, "tags": ["a"] * (n % 3), "inner": {"n": n}}

    path.write_bytes(b"".join(bson.dumps(document(n)) for n in range(rows)))
    return path


def plain(columns: Any) -> pa.Table:
    """Columns of one machine, with the JSON in them as text."""
    table = pa.table(columns)
    for position, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            table = table.set_column(position, field.name, table[position].cast(field.type.storage_type))
    return table.combine_chunks()


def single(path: Path, **options: Any) -> pa.Table:
    return plain(ms.columns(path, **options))


def written(directory: Path | str) -> pa.Table:
    """The rows that a job has written as Parquet to a directory or URL, by their ids."""
    tables = [pq.read_table(pa.BufferReader(ms.open(part).read())) for part in ms.Job.parts(directory) or []]
    return pa.concat_tables(tables).sort_by("id").combine_chunks()
