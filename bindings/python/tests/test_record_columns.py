"""Tests of records as columns: the shared vectors of types, and what Python adds."""

from __future__ import annotations

import datetime
import decimal
import os
from pathlib import Path
from typing import Any

import millstream as ms
import polars as pl
import pyarrow as pa
import pytest
from vectors import cases

DATA = b'id,day,name\n1,2024-02-29,"Ann, B."\n2,2024-03-01,007\n'


def test_types_are_inferred_or_given() -> None:
    table = pa.table(ms.columns(DATA, "csv"))
    assert table.schema.types == [pa.int64(), pa.date32(), pa.string()]
    assert table.to_pylist()[1] == {"id": 2, "day": datetime.date(2024, 3, 1), "name": "007"}
    given = {"name": "string!", "id": "decimal128(5, 1)"}
    table = pa.table(ms.columns(DATA, "csv", schema=given))
    assert (table.schema.names, table["id"].to_pylist()) == (["name", "id"], [decimal.Decimal(1), decimal.Decimal(2)])
    assert not table.schema.field("name").nullable
    assert pa.table(ms.columns(DATA, "csv", infer="off")).schema.types == 3 * [pa.string()]
    assert pl.DataFrame(ms.columns(DATA, "csv"))["id"].to_list() == [1, 2]
    assert ms.columns(DATA, "csv")["id"].tolist() == [1, 2]


def test_types_are_inferred_from_all_records(tmp_path: Path) -> None:
    late = b"n\n" + b"1\n" * 20_000
    path = tmp_path / "a.csv"
    for value, of in [(b"2.5", pa.float64()), (b"x", pa.string()), (b"2", pa.int64())]:
        path.write_bytes(late + value)
        for source in (path, late + value, ms.open(path), ms.open(path, read_ahead="on"), ms.from_bytes(late + value)):
            table = pa.table(ms.columns(source, "csv", infer="all"))
            assert (table.schema.types, table.num_rows) == ([of], 20_001)
    path = tmp_path / "a.jsonl.gz"
    with ms.Writer.path(path) as writer:
        writer.write(b'{"a": 1}\n' * 20_000 + b'{"b": true}\n')
    assert pa.table(ms.columns(path, infer="all")).schema.types == [pa.int64(), pa.bool_()]
    document = b'{"items": [' + b'{"a": 1}, ' * 20_000 + b'{"a": "x"}]}'
    table = pa.table(ms.columns(ms.from_bytes(document, json_elements="/items"), infer="all"))
    assert table["a"].to_pylist()[-1] == '"x"'
    # Everything else is refused before it is read.
    pipe, end = os.pipe()
    os.close(end)
    used = ms.from_bytes(b"n\n1\n", framer=ms.Framer.csv())
    next(used)
    sources = {
        "a command": ms.command(["echo", "n"]),
        "a pipe": ms.Reader.fd(pipe),
        "a callback": ms.from_callback(lambda _: pytest.fail("it is read")),
        "a reader that has delivered some of them": used,
    }
    for found, source in sources.items():
        with pytest.raises(ms.OptionError, match="types from all records of") as caught:
            ms.columns(source, "csv", infer="all")
        assert found in str(caught.value)
        assert "infer from a number of records" in str(caught.value)


def test_the_format_follows_from_the_name(tmp_path: Path) -> None:
    for name, text, names in [("a.csv", DATA, ["id", "day", "name"]), ("b.TSV", b"x\ty\n1\t2\n", ["x", "y"])]:
        (tmp_path / name).write_bytes(text)
        assert pa.table(ms.columns(tmp_path / name)).schema.names == names
    with ms.Writer.path(tmp_path / "c.txt.gz") as writer:
        writer.write(b"one\ntwo\n")
    assert pa.table(ms.columns(tmp_path / "c.txt.gz")).to_pydict() == {"line": ["one", "two"]}
    for source, format in [(b"a\n1\n", None), (tmp_path / "x.dat", None), (b"a\n1\n", "xml")]:
        with pytest.raises(ms.OptionError, match="format"):
            ms.columns(source, format)  # type: ignore[arg-type]
    with pytest.raises(ms.OptionError, match="a framer of other records"):
        ms.columns(b"", ms.Framer.bson())


def test_a_misfit_is_an_error_after_the_rows_before_it() -> None:
    columns = ms.columns(b"n\n1\n2\nx\n", "csv", infer=2, threads=1)
    with pytest.raises(ms.DocumentError) as caught:
        columns["n"]
    error = caught.value
    assert (error.kind, error.line, error.column, error.record, error.path) == ("shape_mismatch", 4, 1, 3, "n")
    assert 'on_bad="skip"' in str(error)
    assert error.partial["n"].tolist() == [1, 2]


def test_bad_records_are_left_out_by_option() -> None:
    columns = ms.columns(b'n,m\n1,a\nx,b\n3\n4,"c"d\n5,e\n', "csv", infer=1, on_bad="skip")
    assert columns["n"].tolist() == [1, 5]
    assert columns.rejected == 3
    rejects = [(error.kind, error.line, raw) for error, raw in columns.rejects]
    assert rejects == [
        ("shape_mismatch", 3, b"x,b"),
        ("field_count_mismatch", 4, b"3"),
        ("csv_invalid", 5, b'4,"c"d'),
    ]


def test_options_and_a_command() -> None:
    command = ms.command(["printf", "a;b\n1;NA\n2\n"])
    framer = ms.Framer.csv(delimiter=b";")
    assert pa.table(ms.columns(command, framer, nulls=["NA"], ragged="pad")).to_pydict() == {
        "a": [1, 2],
        "b": [None, None],
    }
    with pytest.raises(ms.CommandFailed):
        ms.columns(ms.command(["sh", "-c", "echo a; echo 1; exit 3"]), "csv")["a"]
    assert pa.table(ms.columns(b"1,2\n", "csv", header=False)).schema.names == ["0", "1"]
    for options in [
        {"infer": 0},
        {"infer": -1},
        {"infer": "none"},
        {"duplicates": "x"},
        {"ragged": "x"},
        {"on_bad": "x"},
        {"schema": {"a": "int"}},
        {"schema": {"a": []}},
    ]:
        with pytest.raises(ms.OptionError):
            ms.columns(b"a\n1\n", "csv", **options)  # type: ignore[arg-type]


LINES = b'{"id": 1, "tags": ["a"], "at": {"x": 0.5}}\n{"id": 2, "tags": [], "at": null}\n'
ROWS = [{"id": 1, "tags": ["a"], "at": {"x": 0.5}}, {"id": 2, "tags": [], "at": None}]


def test_json(tmp_path: Path) -> None:
    assert pa.table(ms.columns(LINES, "jsonl")).to_pylist() == ROWS
    array = b'{"items": [' + LINES.replace(b"}\n{", b"},{") + b"]}"
    (tmp_path / "a.json").write_bytes(array)
    reader = ms.open(tmp_path / "a.json", json_elements="/items")
    assert pa.table(ms.columns(reader)).to_pylist() == ROWS
    (tmp_path / "b.json").write_bytes(array[10:-1])
    assert pa.table(ms.columns(tmp_path / "b.json")).to_pylist() == ROWS
    assert pa.table(ms.columns(array[10:-1], "json")).to_pylist() == ROWS
    (tmp_path / "c.ndjson").write_bytes(LINES)
    assert pa.table(ms.columns(tmp_path / "c.ndjson", schema={"at": {"x": "float64"}})).to_pydict() == {
        "at": [{"x": 0.5}, None]
    }
    twice = b'{"a": 1, "a": 2}\n'
    assert ms.columns(twice, "jsonl", duplicates="last")["a"].tolist() == [2]
    with pytest.raises(ms.Error):
        ms.columns(twice, "jsonl")["a"]
    for reader in [ms.from_bytes(LINES), ms.from_bytes(LINES, framer=ms.Framer.bson())]:
        with pytest.raises(ms.OptionError, match="format"):
            ms.columns(reader)


@pytest.mark.parametrize("case", cases("infer.tsv"), ids=lambda case: case[0])
def test_vectors(case: list[str]) -> None:
    """The types and the numbers of rows; the values are those of the Rust tests."""
    name, words, fields, kind, values, end = case
    options: dict[str, Any] = {"nulls": []}
    for word in words.split(" "):
        option, _, value = word.partition("=")
        if option == "null":
            options["nulls"].append(value)
        elif option == "first":
            options["infer"] = int(value)
        elif option == "type":
            options["schema"] = {"value": value.replace("_", " ")}
        elif option in ("decimals", "special"):
            options["special_numbers" if option == "special" else option] = True
    text = b"value,end\n"
    if fields != "-" or name == "only_a_minus":
        for field in fields.split(" | "):
            text += field.replace("\\xff", "\udcff").encode(errors="surrogateescape") + b",\n"
    columns = ms.columns(text, "csv", **options)
    assert columns.names[0] == "value"
    batches = []
    found = "end"
    try:
        reader = pa.RecordBatchReader.from_stream(columns)
        assert str(reader.schema.field("value").type) == pa_name(kind)
        batches.extend(reader)
    except Exception as error:  # noqa: BLE001: pyarrow raises its own exceptions
        found = str(error)
    rows = 0 if values == "-" and name != "only_a_minus" else len(values.split(" | "))
    assert sum(batch.num_rows for batch in batches) == rows
    assert (found == "end") == (end == "end"), found


def pa_name(kind: str) -> str:
    return {"bool": "bool", "date32": "date32[day]", "float64": "double", "float32": "float"}.get(
        kind, kind.replace("timestamp[us, ", "timestamp[us, tz=").replace("timestamp[ms, ", "timestamp[ms, tz=")
    )
