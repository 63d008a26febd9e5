"""Tests of readers with an encoding: every method has text, as a file of Python has, and names what is not text."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millstream
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from millstream import Framer, aio

#: A call of a reader, and of a file.
Call = tuple[str, tuple[int, ...]]
sizes = st.integers(-1, 9)
calls = st.lists(
    st.tuples(st.sampled_from(["read", "readline", "readlines"]), st.tuples(sizes))
    | st.just(("readline", ()))
    | st.just(("__next__", ())),
    max_size=20,
)
texts = st.text(alphabet="ab\n\r é水\U0001f600", max_size=80)


def in_pieces(data: bytes, size: int, **options: Any) -> millstream.Reader[str]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)][::-1]
    return millstream.from_callback(lambda _: pieces.pop() if pieces else b"", **options)


def same_as_a_file(data: bytes, calls: list[Call], size: int, encoding: str, errors: str) -> None:
    reader = in_pieces(data, size, encoding=encoding, errors=errors)
    file = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors=errors, newline="\n")
    for name, arguments in calls:
        if name == "__next__":
            assert next(reader, None) == next(file, None)
        else:
            assert getattr(reader, name)(*arguments) == getattr(file, name)(*arguments)
    assert reader.read() == file.read()


@given(texts, calls, st.integers(1, 20), st.sampled_from(["utf-8", "utf-8-sig", "gb18030"]))
@settings(max_examples=300)
def test_it_reads_as_a_file_does(text: str, calls: list[Call], size: int, encoding: str) -> None:
    same_as_a_file(text.encode(encoding.removesuffix("-sig")), calls, size, encoding, "strict")


@given(st.binary(max_size=60), calls, st.integers(1, 20), st.sampled_from(["utf-8", "latin-1", "ascii"]))
@settings(max_examples=300)
def test_what_is_not_text_is_replaced_as_in_a_file(data: bytes, calls: list[Call], size: int, encoding: str) -> None:
    same_as_a_file(data, calls, size, encoding, "replace")


def test_it_is_a_text_file() -> None:
    reader = millstream.from_bytes("é\nb\n".encode(), encoding="UTF8")
    file: object = reader
    assert isinstance(file, io.TextIOBase)
    assert not isinstance(file, io.BufferedIOBase)
    assert isinstance(reader, millstream.Reader)
    assert (reader.mode, file.encoding, file.errors, file.newlines) == ("r", "utf-8", "strict", None)
    assert (reader.readuntil("\n"), reader.read(), reader.read(), reader.readline()) == ("é\n", "b\n", "", "")
    latin: Any = millstream.from_bytes(b"", encoding="latin-1", errors="replace")
    assert (latin.encoding, latin.errors) == ("iso8859-1", "replace")
    binary: object = millstream.from_bytes(b"")
    assert not isinstance(binary, io.TextIOBase)
    assert not hasattr(binary, "encoding")


def test_no_method_has_bytes() -> None:
    reader: Any = millstream.from_bytes(b"one\n", encoding="utf-8")
    for call in (
        reader.peek,
        reader.read1,
        lambda: reader.readinto(bytearray(2)),
        lambda: reader.readinto1(bytearray(2)),
    ):
        with pytest.raises(io.UnsupportedOperation, match="encoding"):
            call()
    assert reader.read() == "one\n"


def test_code_that_accepts_text_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,é\n", encoding="latin-1")
    assert json.load(millstream.from_bytes('{"a": "é"}'.encode(), encoding="utf-8")) == {"a": "é"}
    pandas = pytest.importorskip("pandas")
    for engine in ("c", "python"):
        table = pandas.read_csv(millstream.open(path, encoding="latin-1"), engine=engine)
        assert table.to_dict("list") == {"a": [1], "b": ["é"]}
    with io.StringIO() as out:
        out.writelines(millstream.open(path, encoding="latin-1"))
        assert out.getvalue() == "a,b\n1,é\n"


def test_text_before_an_error_is_in_its_partial() -> None:
    cut_off = gzip.compress("ab é".encode() * 10_000)[:-8]
    with pytest.raises(millstream.DecodeError) as truncated:
        millstream.from_bytes(cut_off, decode="auto", encoding="utf-8").read()
    assert truncated.value.partial == "ab é" * 10_000
    inside = [b"ab\xc3"]

    def stops(_: int) -> bytes:
        if inside:
            return inside.pop()
        raise OSError("it stopped")

    with pytest.raises(OSError, match="it stopped") as stopped:
        millstream.from_callback(stops, encoding="utf-8").read()
    assert stopped.value.partial == "ab"  # type: ignore[attr-defined]
    for size in (-1, 100):
        reader = millstream.from_bytes(b"ab\xffcd", encoding="utf-8", name="data")
        with pytest.raises(millstream.EncodingError) as caught:
            reader.read(size)
        error = caught.value
        assert (error.partial, error.name, error.offset, error.record) == ("ab", "data", 2, None)
        assert reader.read() == ""


#: What finds a record that is not text, with the number of the record and the offset of the byte.
FINDS: dict[str, Callable[[Callable[..., millstream.Reader[str]]], object]] = {
    "loop": lambda opened: list(opened()),
    "loop without line ends": lambda opened: list(opened(keep_delimiter=False)),
    "delimiter": lambda opened: list(opened(delimiter=b"\n")),
    "batch": lambda opened: [list(batch) for batch in opened().batches()],
    "list of a batch": lambda opened: [batch.to_list() for batch in opened().batches()],
    "item of a batch": lambda opened: [batch[index] for batch in opened().batches() for index in range(len(batch))],
    "batch of one": lambda opened: [batch[-1] for batch in opened().batches(1)],
    "pipe": lambda opened: millstream.pipe(opened(), millstream.collect()),
    "columns": lambda opened: opened().columns("\t", [str]),
    "readline": lambda opened: [reader.readline() for reader in [opened()] for _ in range(9)],
    "readlines": lambda opened: opened().readlines(),
    "readuntil": lambda opened: [reader.readuntil(b"\n") for reader in [opened()] for _ in range(9)],
}


@pytest.mark.parametrize("find", FINDS)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_an_error_names_the_record_and_the_byte(find: str, encoding: str, size: int) -> None:
    if find == "columns" and encoding != "utf-8":
        with pytest.raises(millstream.OptionError, match="columns of bytes"):
            millstream.from_bytes(b"", encoding=encoding).columns("\t", [str])
        return
    data = b"one\n" * 5 + b"a\xffc\nlast\n"
    with pytest.raises(millstream.EncodingError) as caught:
        FINDS[find](lambda **options: in_pieces(data, size, encoding=encoding, name="data.txt", **options))
    error = caught.value
    assert (error.name, error.record, error.offset) == ("data.txt", 5, 21)
    assert str(error).startswith("data.txt: ")
    assert (error.line, error.column) == (6, 2)
    assert ", at line 6, column 2;" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_counts_prefixes_and_skipped_records() -> None:
    prefixed = b"\1a\3b\xffc"
    for size in (1, 100):
        reader = in_pieces(prefixed, size, framer=Framer.length_prefixed(1), encoding="utf-8")
        with pytest.raises(millstream.EncodingError) as caught:
            list(reader)
        assert (caught.value.record, caught.value.offset) == (1, 4)
        reader = in_pieces(b"much too long\nab\n\xff\n", size, encoding="utf-8", record_limit=3)
        with pytest.raises(millstream.RecordTooLong):
            next(reader)
        assert reader.skip_record()
        assert next(reader) == "ab\n"
        with pytest.raises(millstream.EncodingError) as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (2, 17)


def test_asyncio_names_them_too() -> None:
    async def work() -> list[str]:
        return [line async for line in aio.from_bytes(b"one\n\xff\n", encoding="utf-8", name="data.txt")]

    with pytest.raises(millstream.EncodingError, match=", at line 2, column 1;") as caught:
        asyncio.run(work())
    assert (caught.value.name, caught.value.record, caught.value.offset) == ("data.txt", 1, 4)
