"""Tests of exceptions and of their pickles."""

from __future__ import annotations

import copy
import errno
import gzip
import inspect
import os
import pickle
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import millstream
import pytest
from millstream import ErrorKind, _errors, _native, bson
from millstream._reader_options import CommandOptions

CLASSES = [
    value
    for value in (getattr(millstream, name) for name in millstream.__all__)
    if isinstance(value, type) and issubclass(value, (millstream.Error, _errors.Error))
]

# Classes that take the arguments of their built-in class.
ARGUMENTS: dict[type[millstream.Error], tuple[Any, ...]] = {
    millstream.CommandFailed: (3, ("sh", "-c", "exit 3"), None, b""),
    millstream.EncodingError: ("utf-8", b"\xff", 0, 1, "invalid start byte"),
}

DETAILS: dict[str, Any] = {
    "code": 1,
    "hint": "do this",
    "name": "a name",
    "offset": 2,
    "record": 3,
    "path": "a.b",
    "found": "this",
    "expected": "that",
    "written": 4,
}


def the_same(error: millstream.Error) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        # A table has no `==`.
        details = [{**vars(one), "partial": repr(one.partial)} for one in (other, error)]
        assert (str(other), other.args, details[0]) == (str(error), error.args, details[1])
        if isinstance(error, OSError):
            assert isinstance(other, OSError)
            assert (other.errno, other.strerror, other.filename) == (error.errno, error.strerror, error.filename)


@pytest.mark.parametrize("kind", get_args(ErrorKind))
@pytest.mark.parametrize("errno", [None, 2, 5, 110])
def test_every_kind_pickles_with_all_attributes(kind: str, errno: int | None) -> None:
    details = {**DETAILS, "message": "what went wrong", "kind": kind, "errno": errno}
    if kind == "command_failed":
        details.update(argv=("sh", "-c", "exit 3"), status=3, stderr_tail=b"oops\n")
    error = _errors.from_native(details)
    error.partial = b"came before"
    error.add_note("a note")
    the_same(error)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_pickles(kind: type[millstream.Error]) -> None:
    error = kind(*ARGUMENTS.get(kind, ("a message",)))
    error.offset = 7
    the_same(error)


def test_real_errors_pickle(tmp_path: Any) -> None:
    for wrong in (
        lambda: millstream.open(tmp_path / "missing"),
        lambda: millstream.command(["no-such-program-at-all"]),
        lambda: list(millstream.command(["sh", "-c", "echo oops >&2; exit 3"], stderr="capture")),
        lambda: millstream.from_bytes(b"", capacity=0),
    ):
        with pytest.raises(millstream.Error) as caught:
            wrong()
        the_same(caught.value)


def fail_with(number: int) -> millstream.Error:
    details = {**DETAILS, "message": "what went wrong", "kind": "io", "errno": number}
    return _errors.from_native(details)


@pytest.mark.parametrize("number", errno.errorcode)
def test_every_system_error_is_of_pythons_class_for_it(number: int) -> None:
    error, pythons = fail_with(number), OSError(number, os.strerror(number), "a name")
    assert isinstance(error, type(pythons))
    assert isinstance(error, millstream.FileError)
    assert isinstance(error, OSError)
    assert (error.errno, error.strerror, error.filename) == (number, pythons.strerror, "a name")
    assert str(error) == str(pythons)


def cut_off(data: bytes) -> bytes:
    return gzip.compress(data)[:-4]


def documents(data: bytes) -> list[bytes]:
    return list(millstream.from_bytes(data, framer=millstream.Framer.bson()))


# What fails, the class of Millstream, and the built-in class that a user catches.
CAUGHT: dict[str, tuple[Callable[[Path], object], type[millstream.Error], type[Exception]]] = {
    "missing file": (lambda there: millstream.open(there / "missing"), millstream.FileError, FileNotFoundError),
    "directory": (lambda there: list(millstream.open(there)), millstream.FileError, IsADirectoryError),
    "not a directory": (lambda there: millstream.open("/dev/null/x"), millstream.FileError, NotADirectoryError),
    "write to a directory": (
        lambda there: millstream.Writer.path(there).close(),
        millstream.FileError,
        IsADirectoryError,
    ),
    "missing program": (
        lambda there: millstream.command(["no-such-program-at-all"]),
        millstream.CommandNotStarted,
        FileNotFoundError,
    ),
    "no program": (lambda there: millstream.command([str(there)]), millstream.CommandNotStarted, PermissionError),
    "failed command": (
        lambda there: list(millstream.command(["false"])),
        millstream.CommandFailed,
        subprocess.CalledProcessError,
    ),
    "truncated gzip": (
        lambda there: list(millstream.from_bytes(cut_off(b"one\n"), decode="auto")),
        millstream.DecodeError,
        EOFError,
    ),
    "truncated record": (
        lambda there: list(millstream.from_bytes(b"abc", framer=millstream.Framer.fixed(2))),
        millstream.FrameError,
        EOFError,
    ),
    "truncated document": (lambda there: bson.loads(bson.dumps({"a": 1})[:-1]), millstream.DocumentError, EOFError),
    "truncated documents": (lambda there: documents(bson.dumps({"a": 1})[:-1]), millstream.FrameError, EOFError),
    "text": (
        lambda there: list(millstream.from_bytes(b"\xff", encoding="utf-8")),
        millstream.EncodingError,
        UnicodeDecodeError,
    ),
    "text of a codec": (
        lambda there: list(millstream.from_bytes(b"\xff", encoding="ascii")),
        millstream.EncodingError,
        UnicodeDecodeError,
    ),
    "text in a column": (
        lambda there: millstream.from_bytes(b"\xff\n").columns("\t", {"a": str}),
        millstream.EncodingError,
        UnicodeDecodeError,
    ),
    "text in a document": (
        lambda there: bson.loads(b"\x0e\0\0\0\x02a\0\x02\0\0\0\xff\0\0"),
        millstream.EncodingError,
        UnicodeDecodeError,
    ),
    "stalled": (
        lambda there: list(millstream.command(["sleep", "60"], stall_timeout=0.05)),
        millstream.Stalled,
        TimeoutError,
    ),
    "closed pipe": (lambda there: into_a_closed_pipe(), millstream.FileError, BrokenPipeError),
    "number": (
        lambda there: millstream.from_bytes(b"x\n").columns("\t", {"a": int}),
        millstream.NumberError,
        ValueError,
    ),
    "option": (lambda there: millstream.from_bytes(b"", capacity=0), millstream.OptionError, ValueError),
}


def into_a_closed_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with millstream.Writer.fd(writing) as out:
            out.write("x")
    finally:
        os.close(writing)


@pytest.mark.parametrize("case", CAUGHT)
def test_errors_are_caught_by_the_classes_that_python_has(case: str, tmp_path: Path) -> None:
    fails, ours, pythons = CAUGHT[case]
    with pytest.raises(pythons) as caught:
        fails(tmp_path)
    assert isinstance(caught.value, ours)
    assert isinstance(caught.value, millstream.Error)
    the_same(caught.value)


def test_a_failed_command_has_the_attributes_of_subprocess() -> None:
    script = "echo one; echo oops >&2; exit 3"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        list(millstream.command(["sh", "-c", script], stderr="capture"))
    error = caught.value
    assert isinstance(error, millstream.CommandFailed)
    assert (error.returncode, error.cmd, error.stderr) == (3, ("sh", "-c", script), b"oops\n")
    assert (error.output, error.stdout) == (None, None)
    assert (error.status, error.argv, error.stderr_tail) == (error.returncode, error.cmd, error.stderr)
    assert "exited with status 3" in str(error)


@pytest.mark.parametrize(
    ("encoding", "data", "range_", "reason"),
    [
        ("utf-8", b"ab\xffc", (2, 3), "invalid start byte"),
        ("ascii", b"ab\xffc", (2, 3), "ordinal not in range(128)"),
        ("utf-8", b"ab\xc3", (2, 3), "unexpected end of data"),
    ],
)
def test_bad_text_has_the_attributes_of_unicode_errors(
    encoding: str, data: bytes, range_: tuple[int, int], reason: str
) -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        list(millstream.from_bytes(data, encoding=encoding, name="data"))
    error = caught.value
    assert isinstance(error, millstream.EncodingError)
    assert (error.encoding, error.object, (error.start, error.end), error.reason) == (encoding, data, range_, reason)
    assert error.__cause__ is None
    assert str(error).startswith("data: utf8 invalid: found ")
    assert ", at line 1, column 3;" in str(error)
    assert (error.name, error.offset, error.record, error.line, error.column) == ("data", 2, 0, 1, 3)


class Own(millstream.FileError):
    """A class that a user defines."""


def test_hints_name_what_python_has() -> None:
    hints = _native.hints()
    assert set(hints) == set(get_args(ErrorKind))
    names = {name for hint in hints.values() for name in re.findall("`(.*?)`", hint)}
    assert {"record_limit", "allow_failure", "on_error"} <= names
    options = CommandOptions.__annotations__.keys() | inspect.signature(millstream.pipe).parameters.keys()
    assert all(name in options or hasattr(millstream.Reader, name) for name in names), names
    with pytest.raises(millstream.RecordTooLong) as caught:
        next(millstream.from_bytes(b"12\n", record_limit=1))
    assert caught.value.hint == hints["record_too_long"]
    assert str(caught.value).endswith("; " + hints["record_too_long"])


def test_a_class_of_a_users_stays_one() -> None:
    the_same(Own("a message"))


def test_the_table_before_an_error_is_in_its_pickle() -> None:
    data = b"1\ta\t0.5\n\tb\t\n" * 200_000 + b"2\tc\tx\n"
    reader = millstream.from_bytes(data)
    with pytest.raises(millstream.NumberError) as caught:
        reader.columns("\t", {"n": int, "text": str, "x": float}, missing="")
    other = pickle.loads(pickle.dumps(caught.value))
    before, after = caught.value.partial, other.partial
    assert (type(other), other.record, other.path) == (millstream.NumberError, 400_000, "x")
    assert (len(after), after.names, repr(after)) == (400_000, before.names, repr(before))
    for name in before.names:
        assert repr(after[name].tolist()) == repr(before[name].tolist())
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(after).equals(polars.DataFrame(before))


def test_a_pickle_that_holds_no_table_is_refused() -> None:
    whole = millstream.from_bytes(b"1\ta\n2\tb\n").columns("\t", {"n": int, "t": str})
    pickled: Any = whole.__reduce__()
    restore, (rows, types, columns) = pickled
    assert len(restore(rows, types, columns)) == 2
    numbers, texts = columns
    length, buffers, valid = texts[0]
    wrongs: list[tuple[Any, ...]] = [
        (3, types, columns),
        (rows, types[:1], columns),
        (rows, [("n", "Int99", True), types[1]], columns),
        (rows, [("n", "List(Int64)", True), types[1]], columns),
        (rows, types, [numbers, []]),
        (rows, types, [numbers, [(length, [b"\xff" * 12, buffers[1]], valid)]]),
        (rows, types, [numbers, [(length, [buffers[0], b"\xff\xff"], valid)]]),
        (rows, types, [numbers, [(length, buffers[:1], valid)]]),
        (rows, types, [numbers, [(length, buffers, b"\1")]]),
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="a pickle that does not contain a table"):
            restore(*wrong)
