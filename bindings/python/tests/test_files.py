"""Tests that code that accepts files also accepts a reader."""

from __future__ import annotations

import csv
import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import millstream
import pytest

File = Callable[[bytes], Path]
TABLE = b"a,b\n1,2\n3,4\n"


def test_it_is_a_file() -> None:
    reader = millstream.from_bytes(b"one\ntwo\nthree")
    file: object = reader
    assert isinstance(file, io.BufferedIOBase)
    assert isinstance(file, io.IOBase)
    assert (reader.readable(), reader.writable(), reader.seekable(), reader.isatty()) == (True, False, False, False)
    assert (reader.closed, reader.mode) == (False, "rb")
    for call in (reader.fileno, lambda: reader.seek(0), reader.truncate, lambda: reader.write(b""), reader.detach):
        with pytest.raises(io.UnsupportedOperation):
            call()
    assert reader.readline() == b"one\n"
    assert reader.readline(2) == b"tw"
    assert reader.readline(0) == b""
    assert reader.readline(100) == b"o\n"
    assert reader.peek() == b"three"
    assert reader.read(0) == b""
    assert reader.read(2) == b"th"
    assert reader.read1() == b"ree"
    assert (reader.read(), reader.read(5), reader.read1(), reader.readline(), reader.readlines()) == (
        b"",
        b"",
        b"",
        b"",
        [],
    )


def test_lines() -> None:
    data = b"one\n\ntwo\r\nthree"
    assert millstream.from_bytes(data).readlines() == io.BytesIO(data).readlines()
    for hint in range(8):
        assert millstream.from_bytes(data).readlines(hint) == io.BufferedReader(io.BytesIO(data)).readlines(hint)


def test_reading_into_memory() -> None:
    reader = millstream.command(["printf", "abcdefg"])
    space = bytearray(4)
    assert reader.readinto(space) == 4
    assert space == b"abcd"
    assert reader.readinto1(memoryview(space)[:2]) == 2
    assert space == b"efcd"
    assert reader.readinto(space) == 1
    assert reader.readinto(space) == 0
    with pytest.raises(TypeError):
        millstream.from_bytes(b"ab").readinto(b"12")


def test_text_wrapper_csv_and_json() -> None:
    with io.TextIOWrapper(millstream.from_bytes(TABLE), encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["1", "2"], ["3", "4"]]
    assert json.load(millstream.from_bytes(b'{"a": [1]}')) == {"a": [1]}
    assert pickle.load(millstream.from_bytes(pickle.dumps({"a": [1]}))) == {"a": [1]}


QUOTED = 'a,b\r\n"one\ntwo","x\r\ny"\n"",""""\n"\n\n","grün, ""q"""\r\nlast,"no\nend"'


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_csv_keeps_the_line_ends_in_quotes(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(QUOTED.encode(encoding) + (b'\n1,"2\n3"' * 50_000))
    with path.open(encoding=encoding, newline="") as file:
        expected = list(csv.reader(file))
    for reader in (
        millstream.open(path, encoding=encoding),
        millstream.open(path, encoding=encoding, capacity=16),
        millstream.command(["cat", path], encoding=encoding),
        io.TextIOWrapper(millstream.open(path), encoding=encoding, newline=""),
    ):
        assert list(csv.reader(reader)) == expected
    assert expected[:3] == [["a", "b"], ["one\ntwo", "x\r\ny"], ["", '"']]
    assert next(csv.DictReader(millstream.open(path, encoding=encoding))) == {"a": "one\ntwo", "b": "x\r\ny"}


def test_lines_of_text_are_those_of_a_file() -> None:
    data = "a\r\nb\rc\n\n水".encode()
    expected = list(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n"))
    assert list(millstream.from_bytes(data, encoding="utf-8")) == expected == ["a\r\n", "b\rc\n", "\n", "水"]
    without = ["a", "b\rc", "", "水"]
    assert list(millstream.from_bytes(data, encoding="utf-8", keep_delimiter=False)) == without
    assert list(millstream.from_bytes(data, encoding="utf-8", delimiter="\n")) == ["a\r", *without[1:]]
    # Unlike the lines of a file, records do not include their delimiters.
    assert [item for batch in millstream.from_bytes(data, encoding="utf-8").batches() for item in batch] == without
    assert millstream.pipe(millstream.from_bytes(data, encoding="utf-8"), millstream.collect()) == without
    reader = millstream.from_bytes(data, encoding="utf-8")
    assert (next(reader), reader.readline(), next(reader), next(reader)) == ("a\r\n", "b\rc\n", "\n", "水")


def test_copying(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as out:
        shutil.copyfileobj(millstream.command(["seq", "100000"]), out)
    assert path.stat().st_size == 588_895


def test_pandas(text: File) -> None:
    pandas = pytest.importorskip("pandas")
    path = text(TABLE)
    for reader in (millstream.open(path), millstream.command(["cat", path])):
        assert pandas.read_csv(reader).to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert pandas.read_csv(millstream.from_bytes(TABLE), engine="python").shape == (2, 2)
    with pytest.raises(millstream.CommandFailed):
        pandas.read_csv(millstream.shell("printf 'a\\n1\\n'; exit 3"))


def test_pyarrow(text: File) -> None:
    arrow = pytest.importorskip("pyarrow.csv")
    assert arrow.read_csv(millstream.open(text(TABLE))).to_pydict() == {"a": [1, 3], "b": [2, 4]}


def test_polars(text: File) -> None:
    polars = pytest.importorskip("polars")
    assert polars.read_csv(millstream.open(text(TABLE))).to_dict(as_series=False) == {"a": [1, 3], "b": [2, 4]}
