"""Tests of exceptions and of their pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any, get_args

import millstream
import pytest
from millstream import ErrorKind, _errors

CLASSES = [
    value
    for value in (getattr(millstream, name) for name in millstream.__all__)
    if isinstance(value, type) and issubclass(value, (millstream.Error, _errors.Error))
]

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
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
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
    error = kind("a message")
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


class Own(millstream.FileError):
    """A class that a user defines."""


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
