"""The types that readers infer by default, for the tables of docs/types.md."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Types by name, and the values of each: the answer of a reader.
Columns = dict[str, tuple[str, list[Any]]]

#: Returns the columns of a file in this format, `csv` or `jsonl`.
Reader = Callable[[Path, str], Columns]

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/types.md"


def engine(name: str) -> Any:
    return importlib.import_module(name)


def of_arrow(table: Any) -> Columns:
    types = [getattr(field.type, "extension_name", str(field.type)) for field in table.schema]
    shown = [kind.removeprefix("arrow.").replace("[day]", "") for kind in types]
    return {
        name: (kind, column.to_pylist())
        for name, kind, column in zip(table.column_names, shown, table.columns, strict=True)
    }


def millstream(path: Path, format: str) -> Columns:
    _ = format
    return of_arrow(engine("pyarrow").table(engine("millstream").columns(path)))


def pyarrow(path: Path, format: str) -> Columns:
    module = engine("pyarrow.csv" if format == "csv" else "pyarrow.json")
    return of_arrow((module.read_csv if format == "csv" else module.read_json)(path))


def polars(path: Path, format: str) -> Columns:
    module = engine("polars")
    frame = (module.read_csv if format == "csv" else module.read_ndjson)(path)
    return {column.name: (str(column.dtype), column.to_list()) for column in frame}


def duckdb(path: Path, format: str) -> Columns:
    call = "read_csv(?, header = true)" if format == "csv" else "read_ndjson(?)"
    with contextlib.closing(engine("duckdb").connect()) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(f"SELECT * FROM {call}", params=[str(path)])
        types = zip(found.columns, found.types, strict=True)
        # Its own conversion of timestamps to objects requires a package.
        values = found.to_arrow_table()
        return {name: (str(kind), values[name].to_pylist()) for name, kind in types}


def spark(session: Any) -> Reader:
    """`session` has the time zone UTC."""

    def read(path: Path, format: str) -> Columns:
        reader = session.read
        options = {"header": True, "inferSchema": True} if format == "csv" else {}
        frame = (reader.csv if format == "csv" else reader.json)(str(path), **options)
        values = frame.toArrow()
        return {name: (kind, values[name].to_pylist()) for name, kind in frame.dtypes}

    return read


def shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    text = str(value)
    if text == "":
        return '""'
    return text if text.isprintable() else json.dumps(text).strip('"')


def answer(read: Reader, path: Path, format: str, given: list[str]) -> str:
    """The type of the column `x`, with its values if they are not as given; or `error`, or `no column`."""
    try:
        columns = read(path, format)
    except ImportError:
        raise
    except Exception:
        return "error"
    if "x" not in columns:
        return "no column"
    kind, values = columns["x"]
    found = [shown(value) for value in values]
    is_same = [text.strip('"') for text in found] == [text.strip('"') for text in given]
    return kind if is_same else f"{kind}: {', '.join(found)}"


def table(format: str) -> list[dict[str, str]]:
    """The table of docs/types.md for this format: each row has the answers by reader, and `values`."""
    lines = iter(DOCUMENT.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line == f"<!-- {format} -->":
            break
    names = [name.strip() for name in next(lines).strip("|").split("|")]
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        found.append(dict(zip(names, cells, strict=True)))
    return found


def check(name: str, read: Reader, format: str, place: Path) -> None:
    """Each answer of this reader is the one in the table."""
    rows, path = table(format), place / f"x.{format}"
    assert len(rows) > 5
    for row in rows:
        values = row["values"].split("` `")
        lines = ["x", *values] if format == "csv" else [f'{{"x":{value}}}' for value in values]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = answer(read, path, format, values)
        assert found == row[name], f"{name}, {values}: {found}, not {row[name]}"
