"""Tests of delimited text as columns."""

from __future__ import annotations

import io
import itertools
import math
import os
import signal
import threading
from typing import Any

import millstream
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = b"r1\t10\t0.5\tx\nr2\t-20\t1e3\ty z\n\t0\tnan\t\n"


def test_columns_as_numpy_and_arrow() -> None:
    table = millstream.from_bytes(DATA).columns("\t", {"name": str, "n": int, "x": float, "rest": bytes})
    assert (table.names, len(table), "n" in table, "m" in table) == (("name", "n", "x", "rest"), 3, True, False)
    assert table["n"].tolist() == [10, -20, 0]
    assert (table["n"].dtype, table["x"].dtype) == (np.int64, np.float64)
    assert not table["n"].flags.writeable
    assert table["x"][:2].tolist() == [0.5, 1000.0]
    assert math.isnan(table["x"][2])
    assert table["name"].tolist() == ["r1", "r2", ""]
    assert table["rest"].tolist() == [b"x", b"y z", b""]
    assert repr(table) == "<Table of 3 rows, name: Utf8, n: Int64, x: Float64, rest: Binary>"
    with pytest.raises(KeyError):
        table["m"]
    # Other packages can take the table any number of times.
    for _ in range(2):
        arrow: Any = pa.table(table)
        assert arrow.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.binary()]
        assert arrow["n"].to_pylist() == [10, -20, 0]
    assert pl.DataFrame(table)["name"].to_list() == ["r1", "r2", ""]
    assert pd.DataFrame.from_arrow(table)["n"].tolist() == [10, -20, 0]
    assert pd.DataFrame(dict(table))["n"].tolist() == [10, -20, 0]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32"])
def test_every_number(kind: str) -> None:
    types: list[Any] = [kind, np.dtype(kind), np.dtype(kind).type]
    for column in types:
        table = millstream.from_bytes(b"1\n99\n").columns(",", [column])
        assert (table["0"].dtype, table["0"].tolist()) == (np.dtype(kind), [1, 99])


def test_missing_values() -> None:
    types = {"n": int, "x": float, "t": str}
    table = millstream.from_bytes(b"1,2.5,a\nNA,NA,NA\n3,4.5,\n").columns(",", types, missing="NA")
    assert table["n"].tolist() == [1, None, 3]
    assert math.isnan(table["x"][1])
    assert table["t"].tolist() == ["a", None, ""]
    assert pa.table(table).to_pylist() == [
        {"n": 1, "x": 2.5, "t": "a"},
        {"n": None, "x": None, "t": None},
        {"n": 3, "x": 4.5, "t": ""},
    ]


def test_some_fields() -> None:
    table = millstream.from_bytes(b"1,2,3,4,5\n6,7,8,9\n").columns(",", [None, int, None, int, None])
    assert table.names == ("1", "3")
    assert (table["1"].tolist(), table["3"].tolist()) == ([2, 7], [4, 9])


def test_some_rows() -> None:
    reader = millstream.from_bytes(b"#head\n" + b"".join(b"%d\n" % n for n in range(10)))
    assert next(reader) == b"#head"
    sizes = []
    while len(table := reader.columns("\t", {"n": int}, max_records=4)):
        sizes.append(table["n"].tolist())
    assert sizes == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(reader.columns("\t", {"n": int})) == 0


@pytest.mark.parametrize(
    ("data", "kind", "where"),
    [
        (b"1\t2\n3\tx\n", "number_invalid", (1, 6, "b", "x")),
        (b"1\t2\n3\t\n", "number_invalid", (1, 6, "b", "an empty field")),
        (b"1\t2\n3\t 4\n", "number_invalid", (1, 6, "b", " 4")),
        (b"1\t2\n99999999999999999999\t4\n", "number_overflow", (1, 4, "a", "99999999999999999999")),
        (b"1\t2\n3\n", "value_missing", (1, 5, "b", "1 field")),
        (b"1\t2\n\n5\t6\n", "value_missing", (1, 4, "b", "1 field")),
        (b"1\t2\nx\tx\nx\n", "number_invalid", (1, 4, "a", "x")),
    ],
)
def test_errors_name_record_column_and_byte(data: bytes, kind: str, where: tuple[int, int, str, str]) -> None:
    with pytest.raises(millstream.NumberError) as caught:
        millstream.from_bytes(data, name="it").columns("\t", {"a": int, "b": int})
    error = caught.value
    assert (error.kind, error.name) == (kind, "it")
    assert (error.record, error.offset, error.path, error.found) == where
    assert (error.partial["a"].tolist(), error.partial["b"].tolist()) == ([1], [2])


@pytest.mark.parametrize(("column", "workers"), [(0, 1), (1, 2), (2, 5)])
def test_the_first_wrong_field_is_told_wherever_it_is(column: int, workers: int) -> None:
    """The data is large enough for several threads and several rounds."""
    rows = [f"{n}\t{n}\t{n}\ttext {n}\n".encode() for n in range(400_000)]
    wrong = rows[350_000].split(b"\t")
    wrong[column] = b"x"
    rows[350_000] = b"\t".join(wrong)
    rows[350_001] = b"y\ty\ty\ty\n"
    rows[350_002] = b"too few\n"
    data = b"".join(rows)
    types: dict[str, type | str] = {"a": int, "b": float, "c": "uint32", "d": str}
    with pytest.raises(millstream.NumberError) as caught:
        millstream.from_bytes(data).columns("\t", types, workers=workers)
    error = caught.value
    place = sum(map(len, rows[:350_000])) + sum(len(field) + 1 for field in wrong[:column])
    assert (error.record, error.path, error.offset) == (350_000, "abc"[column], place)
    assert error.partial["a"].tolist() == list(range(350_000))
    assert error.partial["d"][-1] == "text 349999"


#: Enough for one block in each row but the last, so that all threads have work.
WIDE = 60 * [b"x" * 50_000]


def wide(wrong: tuple[int, bytes] | None) -> bytes:
    rows = [b"%d\t%s\t%d\t%s\n" % (n, text, -n, b"NA" if n % 7 == 0 else b"0.5") for n, text in enumerate(WIDE)]
    if wrong is not None:
        rows[wrong[0]] = wrong[1] % WIDE[0]
    return b"".join(rows)


def outcome(reader: millstream.Reader[bytes], workers: int | None) -> tuple[Any, ...]:
    """Everything that can be observed of a table."""
    types: dict[str, Any] = {"a": "int16", "b": str, "c": int, "d": float}
    raised: tuple[Any, ...] = ()
    try:
        table = reader.columns("\t", types, missing="NA", workers=workers)
    except millstream.Error as error:
        table = error.partial
        raised = (type(error), error.kind, error.record, error.offset, error.path, error.found, error.expected)
    return (*raised, pa.table(table).to_pydict(), table["a"].tolist(), len(table))


@given(
    wrong=st.none()
    | st.tuples(
        st.integers(0, 59), st.sampled_from([b"x\t%s\t1\t1\n", b"1\t%s\t1\n", b"1\t%s\t1\tx\n", b"1\t%s\xff\t1\t1\n"])
    ),
    sizes=st.lists(st.integers(1, 400_000), min_size=1, max_size=50),
    workers=st.sampled_from([None, 2, 3, 9]),
)
@settings(max_examples=40)
def test_threads_change_nothing(wrong: tuple[int, bytes] | None, sizes: list[int], workers: int | None) -> None:
    data = wide(wrong)
    alone = outcome(millstream.from_bytes(data), 1)
    assert alone[-1] == (60 if wrong is None else wrong[0])
    file, turn = io.BytesIO(data), itertools.cycle(sizes)
    assert outcome(millstream.from_callback(lambda most: file.read(min(next(turn), most))), workers) == alone


def test_what_threads_have_made_is_one_table() -> None:
    rows = 200_000
    data = b"".join(b"%d\ttext %d\n" % (n, n) for n in range(rows))
    table = millstream.from_bytes(data).columns("\t", {"n": int, "text": str}, workers=2)
    assert len(table) == rows
    assert np.array_equal(table["n"], np.arange(rows))
    assert table["text"][-1] == f"text {rows - 1}"
    for other in (pa.table(table)["n"].to_numpy(), pl.DataFrame(table)["n"].to_numpy()):
        assert np.array_equal(other, np.arange(rows))
    assert pa.table(table)["text"][rows - 1].as_py() == f"text {rows - 1}"


@pytest.mark.parametrize("rows", [1, 300_000])
def test_ctrl_c_loses_no_row(rows: int) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        reader = millstream.command(["sh", "-c", f"seq {rows}; sleep 1; seq {rows + 1} {2 * rows}"])
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt) as caught:
            reader.columns("\t", {"n": int}, workers=2)
        first = caught.value.partial  # type: ignore[attr-defined]
        both = np.concatenate([first["n"], reader.columns("\t", {"n": int}, workers=2)["n"]])
        assert np.array_equal(both, np.arange(1, 2 * rows + 1))
    finally:
        signal.signal(signal.SIGINT, before)


def test_text_is_text() -> None:
    with pytest.raises(millstream.EncodingError) as caught:
        millstream.from_bytes(b"a\tb\n\xff\t\xfe\n").columns("\t", {"x": bytes, "y": str})
    assert (caught.value.record, caught.value.offset, caught.value.path) == (1, 6, "y")
    table = millstream.from_bytes(b"\xff\t\xc3\xb6\n").columns("\t", {"x": bytes, "y": str})
    assert (table["x"][0], table["y"][0]) == (b"\xff", "ö")


def test_a_failing_source_is_told() -> None:
    with pytest.raises(millstream.CommandFailed) as caught:
        millstream.command(["sh", "-c", "echo 1; exit 3"]).columns("\t", {"a": int})
    assert caught.value.partial["a"].tolist() == [1]


@pytest.mark.parametrize(
    "arguments", [("\t", {}), ("\t", [None]), ("", [int]), ("ab", [int]), ("\t", [complex]), ("é", [int])]
)
def test_what_cannot_be_is_refused(arguments: tuple[str, Any]) -> None:
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"").columns(*arguments)


def test_zero_workers_are_refused() -> None:
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"").columns("\t", [int], workers=0)


rows = st.lists(
    st.tuples(
        st.text(st.characters(exclude_characters="\t\n\r", codec="utf-8"), max_size=20),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.none() | st.integers(0, 255),
    ),
    max_size=30,
)


@given(rows=rows, end=st.sampled_from(["\n", "\r\n"]), whole=st.booleans(), repeat=st.sampled_from([1, 1, 1000]))
def test_columns_hold_what_was_written(
    rows: list[tuple[str, int, float, int | None]], end: str, whole: bool, repeat: int
) -> None:
    rows = rows * repeat
    lines = ["\t".join("*" if value is None else str(value) for value in row) for row in rows]
    # Text with this content would be a missing value.
    lines = [line if not line.startswith("*\t") else "**" + line[1:] for line in lines]
    expected = [("**" if text == "*" else text, *others) for text, *others in rows]
    data = end.join(lines) + (end if whole and lines else "")
    types: dict[str, type | str] = {"text": str, "n": int, "x": float, "small": "uint8"}
    table = millstream.from_bytes(data.encode()).columns("\t", types, missing="*")
    arrow = pa.table(table)
    assert list(zip(*(arrow[name].to_pylist() for name in table.names), strict=True)) == expected
