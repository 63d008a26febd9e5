"""Tests of documents as columns: the shared vectors, options, readers as sources, and invalid input."""

from __future__ import annotations

import datetime
import io
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import millstream
import numpy as np
import polars
import pyarrow
import pytest
from millstream import bson
from vectors import cases

import bson as theirs

FAILURES = (millstream.Error, pyarrow.ArrowException, OSError, ValueError)


def take(columns: Any) -> pyarrow.Table:
    return pyarrow.table(columns)


def test_late_members_are_an_error_that_names_the_options() -> None:
    late = bson.dumps({"a": 2, "late": "x"})
    table = take(bson.columns(bson.dumps({"a": 1}) * 1000 + late))
    assert table.column_names == ["a", "late"]
    assert table["late"].to_pylist() == [None] * 1000 + ["x"]
    many = bson.dumps({"a": 1}) * 10_000
    with pytest.raises(FAILURES, match=r"in late.*record 10000") as caught:
        take(bson.columns(many + late))
    assert "increase infer, pass a schema, or set mismatch or unknown" in str(caught.value)
    nested = bson.dumps({"d": {"x": 1}}) * 10_000 + bson.dumps({"d": {"x": 1, "late": 2}})
    with pytest.raises(FAILURES, match=r"d\.late"):
        take(bson.columns(nested))
    assert take(bson.columns(many + late, infer=10_001)).column_names == ["a", "late"]
    counted = bson.columns(many + late, unknown="count")
    assert (take(counted).num_rows, counted.unknown, counted.mismatched) == (10_001, 1, 0)
    assert take(bson.columns(many + late, unknown="ignore")).column_names == ["a"]


def test_integers_widen_or_are_an_error() -> None:
    data = theirs.encode({"n": 1}) + theirs.encode({"n": 1 << 40})
    assert take(bson.columns(data))["n"].to_pylist() == [1, 1 << 40]
    with pytest.raises(FAILURES, match=r"32-bit integer, as inferred from the first 1 documents.*increase infer"):
        take(bson.columns(data, infer=1))
    columns = bson.columns(data, infer=1, mismatch="null")
    assert take(columns)["n"].to_pylist() == [1, None]
    assert columns.mismatched == 1
    table = take(bson.columns(data, schema={"n": "long"}))
    assert (table.schema.types, table["n"].to_pylist()) == ([pyarrow.int64()], [1, 1 << 40])


@pytest.mark.parametrize(("name", "data", "schema", "options", "expected"), cases("bson_rows.tsv"))
def test_the_shared_vectors(name: str, data: str, schema: str, options: str, expected: str) -> None:
    keywords: dict[str, Any] = dict(option.split("=") for option in options.split() if option != "-")
    if "infer" in keywords:
        keywords["infer"] = int(keywords["infer"])
    if schema != "-":
        keywords["schema"] = dict(field.rsplit(":", 1) for field in schema.split())
    columns = bson.columns(bytes.fromhex(data), **keywords)
    if expected.startswith("error"):
        _, kind, record, path = expected.split()
        with pytest.raises(FAILURES) as caught:
            take(columns)
        message = str(caught.value)
        assert kind.replace("_", " ") in message, name
        assert f"in {path}" in message, name
        assert record == "-" or f"record {record} " in message, name
    else:
        rows, *counts = map(int, expected.split())
        assert take(columns).num_rows == rows, name
        assert [columns.unknown, columns.mismatched, sum(columns.lost_types.values())] == counts, name


def test_a_schema_says_types_of_all_kinds() -> None:
    number = theirs.ObjectId()
    document: dict[str, Any] = {"id": number, "d": {"x": 1, "y": [{"z": "a"}]}, "tags": ["a", "b"], "any": {"q": 1}}
    schema: Any = {
        "id": "objectId",
        "d": {"x": "double", "y": [{"z": "string"}]},
        "tags": ["string"],
        "any": "json",
        "d2": "int!",
    }
    data = theirs.encode(document | {"d2": 5})
    row = take(bson.columns(data, schema=schema)).to_pylist()[0]
    assert row == {
        "id": number.binary,
        "d": {"x": 1.0, "y": [{"z": "a"}]},
        "tags": ["a", "b"],
        "any": '{"q":1}',
        "d2": 5,
    }
    with pytest.raises(FAILURES, match="d2"):
        take(bson.columns(theirs.encode(document), schema=schema))


@pytest.mark.parametrize(
    "options",
    [
        {"schema": {"a": "text"}},
        {"schema": {"a": 3}},
        {"schema": {"a": ["int", "long"]}},
        {"schema": {"a": "int", "a.b": "int"}},
        {"schema": {"": "int"}},
        {"schema": {"a": "int"}, "infer": 5},
        {"schema": {"a": "int"}, "mixed": "json"},
        {"absent": "null"},
        {"infer": 0},
        {"unknown": "skip"},
        {"mismatch": "count"},
        {"mixed": "text"},
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_opened(options: dict[str, Any]) -> None:
    with pytest.raises(millstream.Error) as caught:
        bson.columns("there is no such file", **options)
    assert caught.value.kind in ("invalid_option", "text_invalid")


def test_a_type_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    with pytest.raises(millstream.OptionError):
        bson.columns(b"", schema=circle)


def test_a_reader_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "dump.bson"
    path.write_bytes(b"".join(theirs.encode({"n": n, "text": "x" * 100}) for n in range(20_000)))
    for reader in (
        millstream.open(path),
        millstream.command(["cat", str(path)]),
        millstream.from_bytes(path.read_bytes()),
        millstream.from_callback(io.BytesIO(path.read_bytes()).read),
    ):
        table = take(bson.columns(reader))
        assert table["n"].to_pylist() == list(range(20_000))
        with pytest.raises(millstream.Error):
            next(reader)
    assert polars.DataFrame(bson.columns(millstream.open(path))).height == 20_000
    part = millstream.from_bytes(b"a line\n" + path.read_bytes())
    assert next(part) == b"a line"
    assert take(bson.columns(part)).num_rows == 20_000
    with pytest.raises(FAILURES, match="exited with status 3"):
        take(bson.columns(millstream.command(["sh", "-c", f"cat {path}; exit 3"])))


def test_ctrl_c_ends_the_wait_for_a_reader() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        reader = millstream.command(["sleep", "20"])
        threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            bson.columns(reader)
        assert time.monotonic() - start < 10
    finally:
        signal.signal(signal.SIGINT, before)


def test_slow_sources_lose_nothing() -> None:
    """Blocking calls that are interrupted to run signal handlers continue where they stopped."""
    script = """
import sys, time
from bson import encode
for n in range(8):
    sys.stdout.buffer.write(encode({"n": n}))
    sys.stdout.flush()
    time.sleep(.06)
"""
    reader = millstream.command([sys.executable, "-c", script])
    assert take(bson.columns(reader, infer=4))["n"].to_pylist() == list(range(8))


def test_types_that_are_lost_are_named() -> None:
    columns = bson.columns(theirs.encode({"b": theirs.Binary(b"x", 5), "c": theirs.Code("f()")}))
    take(columns)
    assert columns.lost_types == {"javascript": 1, "binData": 1}


def test_one_column_is_a_numpy_array() -> None:
    day = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    rows: list[dict[str, Any]] = [
        {"n": 1, "x": 0.5, "ok": True, "name": "a", "day": day, "id": bson.ObjectId(b"x" * 12), "tags": ["p"]},
        {"n": None, "x": None, "ok": False, "name": None, "day": None, "id": None, "tags": []},
    ]
    data = b"".join(map(bson.dumps, rows))
    columns = bson.columns(data)
    assert columns.names == ("n", "x", "ok", "name", "day", "id", "tags")
    assert columns["n"].tolist() == [1, None]
    assert columns["x"][0] == 0.5
    assert np.isnan(columns["x"][1])
    assert columns["ok"].tolist() == [True, False]
    assert columns["name"].tolist() == ["a", None]
    assert columns["day"].dtype == np.dtype("datetime64[ms]")
    assert columns["day"][0] == np.datetime64("2026-01-02")
    assert np.isnat(columns["day"][1])
    assert columns["id"].tolist() == [b"x" * 12, None]
    with pytest.raises(KeyError, match="nothing"):
        columns["nothing"]
    with pytest.raises(TypeError, match=r"\"tags\" of Arrow's type List.*pyarrow\.table"):
        columns["tags"]
    # Decoding one column keeps all of them.
    for _ in range(2):
        assert take(columns)["tags"].to_pylist() == [["p"], []]
    taken = bson.columns(data)
    take(taken)
    with pytest.raises(RuntimeError, match="already been taken"):
        taken["n"]
    none = bson.columns(b"", schema={"n": "int"}, absent="null")
    assert none["n"].tolist() == []


def test_rows_before_an_error_of_one_column_are_in_its_partial() -> None:
    data = bson.dumps({"n": 1}) * 3 + b"\x05\0\0\0\1"
    columns = bson.columns(data, schema={"n": "int"})
    with pytest.raises(millstream.DocumentError, match=r"record 3") as caught:
        columns["n"]
    assert caught.value.partial["n"].tolist() == [1, 1, 1]
