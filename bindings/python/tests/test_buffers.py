"""Tests that any buffer is accepted where bytes are, and that batches are sequences."""

from __future__ import annotations

import array
import ctypes
import io
import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import millstream
import pytest
from millstream import Writer, bson

DATA = b"abcdefgh"


def mapped(data: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory


def numpy(kind: str) -> Callable[[bytes], Any]:
    return lambda data: pytest.importorskip("numpy").frombuffer(data, dtype=kind)


BUFFERS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "signed bytes": lambda data: memoryview(data).cast("b"),
    "characters": lambda data: memoryview(data).cast("c"),
    "every second byte": lambda data: memoryview(bytes(byte for byte in data for _ in range(2)))[::2],
    "two dimensions": lambda data: memoryview(data).cast("B", (2, len(data) // 2)),
    "numbers": lambda data: array.array("h", data),
    "big numbers": numpy(">i4"),
    "a structure": numpy("<u2, u1, u1"),
    "mapped": mapped,
    "ctypes": lambda data: (ctypes.c_uint16 * (len(data) // 2)).from_buffer_copy(data),
}


@pytest.mark.parametrize("kind", BUFFERS)
def test_any_buffer_is_written_and_read(kind: str) -> None:
    writer = Writer.memory()
    assert writer.write(BUFFERS[kind](DATA)) == len(DATA)
    writer.writelines([BUFFERS[kind](DATA)])
    end = writer.close()
    assert end is not None
    assert end.memory == DATA * 2
    assert millstream.from_bytes(BUFFERS[kind](DATA)).read() == DATA


@pytest.mark.parametrize("kind", BUFFERS)
def test_any_buffer_is_a_document(kind: str) -> None:
    document: dict[str, Any] = {"a": [1, "b"], "c": "two"}
    data = bson.dumps(document)
    assert len(data) % 8 == 0, "it is as long as items of several bytes require"
    assert bson.loads(BUFFERS[kind](data)) == document
    assert bson.decode_all(BUFFERS[kind](data * 2)) == [document, document]
    columns = bson.columns(BUFFERS[kind](data), schema={"c": "string"})
    assert pytest.importorskip("pyarrow").table(columns)["c"].to_pylist() == ["two"]


def test_what_is_no_buffer_is_refused() -> None:
    writer = Writer.memory()
    for wrong in (1, None, ["a"], 2.5):
        with pytest.raises(TypeError):
            writer.write(wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    for text in (1, None, "text"):
        with pytest.raises(TypeError):
            bson.loads(text)  # type: ignore[call-overload] # pyright: ignore


def test_put_writes_what_print_does() -> None:
    numpy = pytest.importorskip("numpy")
    writer = Writer.memory()
    writer.put(numpy.uint8(65), numpy.int64(-1), numpy.array([1, 2]), bytearray(b"raw"), memoryview(b"view"))
    end = writer.close()
    assert end is not None
    assert end.memory == b"65 -1 [1 2] raw view\n"


def test_pyarrow_writes_csv_to_a_writer() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    csv = pytest.importorskip("pyarrow.csv")
    writer = Writer.memory()
    csv.write_csv(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), writer)
    end = writer.close()
    expected = io.BytesIO()
    csv.write_csv(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), expected)
    assert end is None or end.memory == expected.getvalue()


def test_a_batch_is_a_sequence() -> None:
    batch = millstream.from_bytes(b"a\nb\nc\nb\n").next_batch()
    assert isinstance(batch, Sequence)
    items = [b"a", b"b", b"c", b"b"]
    assert list(batch) == items
    assert (batch.index(b"b"), batch.index(b"b", 2), batch.count(b"b"), batch.count(b"x")) == (1, 3, 2, 0)
    assert (b"c" in batch, b"x" in batch) == (True, False)
    assert (list(reversed(batch)), batch[1:3], batch[::-2]) == (items[::-1], items[1:3], items[::-2])
    with pytest.raises(ValueError, match="x"):
        batch.index(b"x")
    with pytest.raises(TypeError):
        batch["a"]  # type: ignore[call-overload] # pyright: ignore
    match batch:
        case [first, *rest]:
            assert (first, len(rest)) == (b"a", 3)
        case _:
            pytest.fail("it matches no sequence")


def test_a_writer_that_is_not_closed_warns(tmp_path: Path) -> None:
    writer = Writer.path(tmp_path / "out")
    writer.write("lost")
    with pytest.warns(ResourceWarning, match=r"^the writer to .*out was not closed, which reports whether it succ"):
        del writer


def test_the_reader_of_a_command_that_is_not_closed_warns() -> None:
    reader = millstream.command(["echo", "one"])
    assert next(reader) == b"one"
    with pytest.warns(ResourceWarning, match=r"^the reader of echo one was not closed: its command is stopped"):
        del reader


def test_the_warning_keeps_an_exception_that_is_being_raised() -> None:
    def fails() -> None:
        reader = millstream.command(["echo", "one"])
        next(reader)
        del reader
        raise KeyError("mine")

    with pytest.warns(ResourceWarning), pytest.raises(KeyError, match="mine"):
        fails()


def test_what_has_ended_or_was_closed_does_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    def in_use() -> None:
        assert list(millstream.command(["echo", "one"])) == [b"one"]
        assert millstream.command(["echo", "one"]).read() == b"one\n"
        assert millstream.command(["echo", "one"]).count() == 1
        with millstream.command(["echo", "one"]) as reader:
            next(reader)
        with pytest.raises(millstream.CommandFailed):
            millstream.command(["false"]).read()
        next(millstream.from_bytes(b"a\nb\n"))
        Writer.memory().write("x")
        Writer.path(tmp_path / "out").abort()

    in_use()
    assert [str(warning.message) for warning in recwarn] == []
