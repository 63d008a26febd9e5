"""Tests of documents: comparison with pymongo, the shared vectors, mapped files, columns."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import enum
import gc
import math
import re
import struct
import uuid
from pathlib import Path
from typing import Any

import millstream
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from hypothesis import given
from hypothesis import strategies as st
from millstream import bson
from test_threads import grows
from vectors import cases

import bson as theirs

AWARE: CodecOptions[dict[str, Any]] = CodecOptions(tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO)


@pytest.mark.parametrize(("name", "data", "canonical", "relaxed"), cases("bson.tsv"))
def test_shared_vectors(name: str, data: str, canonical: str, relaxed: str) -> None:
    given_bytes = bytes.fromhex(data)
    if canonical.startswith("error "):
        with pytest.raises(millstream.Error) as caught:
            bson.loads(given_bytes)
        assert caught.value.kind == canonical.split()[1]
        return
    found = bson.loads(given_bytes, classes="pymongo")
    expected = theirs.decode(given_bytes, AWARE)
    if "$dbPointer" not in canonical and "DbPointer" not in canonical and "dbPointer" not in canonical:
        assert found == expected or repr(found) == repr(expected)
    assert bson.decode_all(given_bytes * 3, classes="pymongo").__repr__() == repr([found] * 3)


def test_every_prefix_of_a_document_is_refused() -> None:
    document = theirs.encode({"a": [1, {"b": "text"}], "c": b"12", "d": datetime.datetime.now()})
    for length in range(len(document)):
        with pytest.raises(millstream.DocumentError):
            bson.loads(document[:length])
        if length:
            with pytest.raises(millstream.DocumentError) as caught:
                bson.decode_all(document + document[:length])
            assert caught.value.record == 1


@given(st.binary(max_size=60), st.integers(0, 200))
def test_damage_is_an_error_or_another_document(noise: bytes, at: int) -> None:
    document = bytearray(theirs.encode({"a": [1, {"b": "text"}], "c": b"12", "d": 2.5, "e": "some more text"}))
    document[at : at + len(noise)] = noise
    for call in (bson.loads, bson.decode_all):
        with contextlib.suppress(millstream.Error):
            call(document)


keys = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(keys, values, max_size=6))
def test_round_trip_and_as_pymongo(document: dict[str, Any]) -> None:
    data = bson.dumps(document)
    assert bson.loads(data) == document
    assert theirs.decode(data) == document
    assert data == theirs.encode(document)


def test_every_class_both_ways() -> None:
    document = {
        "id": bson.ObjectId.from_hex("0123456789abcdef01234567"),
        "decimal": bson.Decimal128(theirs.Decimal128("-1.50").bid),
        "date": datetime.datetime(2020, 2, 29, 23, 59, 59, 999000, tzinfo=datetime.UTC),
        "old": datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
        "late": datetime.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.UTC),
        "far": bson.DatetimeMS(2**60),
        "binary": bson.Binary(b"12", 128),
        "regex": bson.Regex("a.b", "im"),
        "code": bson.Code("f()"),
        "scoped": bson.Code("f()", {"x": 1}),
        "stamp": bson.Timestamp(5, 6),
        "min": bson.MinKey(),
        "max": bson.MaxKey(),
    }
    data = bson.dumps(document)
    assert bson.loads(data) == document
    pymongos = bson.loads(data, classes="pymongo")
    assert pymongos == theirs.decode(data, AWARE)
    assert isinstance(pymongos["id"], theirs.ObjectId)
    assert bson.dumps(pymongos) == data == theirs.encode(pymongos)
    assert bson.loads(data)["decimal"].to_decimal() == decimal.Decimal("-1.50")
    assert str(document["id"]) == "0123456789abcdef01234567"


@pytest.mark.parametrize(("name", "data", "text"), [case[:3] for case in cases("decimal128.tsv") if len(case) >= 3])
def test_decimal_numbers(name: str, data: str, text: str) -> None:
    if len(data) != 32 or text.startswith("error"):
        return
    number = bson.Decimal128(bytes.fromhex(data)).to_decimal()
    expected = theirs.Decimal128.from_bid(bytes.fromhex(data)).to_decimal()
    assert str(number) == str(expected) or (number.is_nan() and expected.is_nan())


def test_what_stands_for_something_else() -> None:
    class Colour(enum.IntEnum):
        RED = 1

    document = {
        "uuid": uuid.UUID(int=7),
        "pattern": re.compile("x", re.IGNORECASE),
        "int": np.int16(3),
        "array": np.array([1.5, 2.5]),
        "tuple": (1, 2),
        "bytearray": bytearray(b"1"),
        "enum": Colour.RED,
        "naive": datetime.datetime(2000, 1, 1),
    }
    back = bson.loads(bson.dumps(document))
    assert back["uuid"] == bson.Binary(uuid.UUID(int=7).bytes, 4)
    assert back["pattern"].pattern == "x"
    assert (back["int"], back["array"], back["tuple"], back["enum"]) == (3, [1.5, 2.5], [1, 2], 1)
    assert (back["bytearray"], back["naive"]) == (b"1", datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))


def test_what_is_no_document() -> None:
    with pytest.raises(TypeError, match="key of a document is str"):
        bson.dumps({1: 2})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="BSON has no type for a object"):
        bson.dumps({"a": object()})
    with pytest.raises(millstream.DocumentError):
        bson.dumps({"a": 2**63})
    with pytest.raises(millstream.Error):
        bson.dumps({"a\0b": 1})
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(millstream.DocumentError) as caught:
        bson.dumps(deep)
    assert caught.value.kind == "too_deep"
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle
    with pytest.raises(millstream.DocumentError):
        bson.dumps(cycle)
    hostile = b"\0"
    for _ in range(5000):
        hostile = struct.pack("<i", len(hostile) + 4) + hostile if len(hostile) == 1 else hostile
        hostile = struct.pack("<i", len(hostile) + 8) + b"\x03a\0" + hostile + b"\0"
    with pytest.raises(millstream.DocumentError) as caught:
        bson.loads(hostile)
    assert caught.value.kind == "too_deep"


def test_the_collector_is_as_it_was() -> None:
    for before in (True, False):
        (gc.enable if before else gc.disable)()
        try:
            bson.decode_all(theirs.encode({"a": 1}))
            with pytest.raises(millstream.DocumentError):
                bson.decode_all(b"1234")
            assert gc.isenabled() == before
        finally:
            gc.enable()


def test_a_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "model.bson"
    weights = np.arange(1000, dtype="<f4")
    path.write_bytes(theirs.encode({"layer": {"weights": weights.tobytes(), "name": "first"}, "list": [1, {"a": 2}]}))
    model = bson.open(path)
    assert list(model) == ["layer", "list"]
    assert len(model) == 2
    assert "layer" in model
    assert "other" not in model
    array = model["layer"].array("weights", "<f4")
    assert (array == weights).all()
    assert not array.flags.writeable
    assert not array.flags.owndata
    assert model["layer"]["name"] == "first"
    assert bytes(model["layer"]["weights"][:4]) == weights.tobytes()[:4]
    assert model["list"]["1"]["a"] == 2
    assert (list(model["list"]), len(model["list"])) == (["0", "1"], 2)
    assert model["list"].to_dict() == [1, {"a": 2}]
    assert model["layer"].to_dict()["name"] == "first"
    assert model.to_dict()["list"] == [1, {"a": 2}]
    with pytest.raises(KeyError):
        model["other"]
    with pytest.raises(millstream.DocumentError):
        model["layer"].array("name", "<f4")
    with pytest.raises(FileNotFoundError):
        bson.open(tmp_path / "missing")
    path.write_bytes(b"no document")
    with pytest.raises(millstream.DocumentError):
        bson.open(path)


def test_a_view_keeps_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.bson"
    path.write_bytes(theirs.encode({"a": np.ones(1000).tobytes()}))
    array = bson.open(path).array("a", "<f8")
    gc.collect()
    assert math.isclose(array.sum(), 1000)


def test_columns(tmp_path: Path) -> None:
    documents = [{"n": n, "text": str(n), "half": n / 2, "tags": ["a", "b"], "even": n % 2 == 0} for n in range(3000)]
    data = b"".join(map(theirs.encode, documents))
    table = pyarrow.table(bson.columns(data))
    assert table.to_pylist() == documents
    assert polars.DataFrame(bson.columns(data)).to_dicts() == documents
    assert pandas.DataFrame.from_arrow(bson.columns(data)).shape == (3000, 5)
    path = tmp_path / "dump.bson"
    path.write_bytes(data)
    assert pyarrow.table(bson.columns(path)) == table
    once = bson.columns(data)
    pyarrow.table(once)
    with pytest.raises(RuntimeError, match="already been taken"):
        pyarrow.table(once)
    with pytest.raises(millstream.Error):
        bson.columns(b"12345")
    with pytest.raises(millstream.Error):
        bson.columns(data + b"12345")
    late = bson.columns(data + b"12345", infer=3000)
    with pytest.raises((pyarrow.ArrowInvalid, OSError, pyarrow.ArrowException)):
        pyarrow.table(late)


def test_documents_leave_nothing_behind() -> None:
    data = theirs.encode({"a": [1, 2.5, "text"], "b": {"c": None}, "d": datetime.datetime.now()}) * 1000

    def decode() -> None:
        for _ in range(20):
            bson.decode_all(data)
            pyarrow.table(bson.columns(data))

    assert grows(decode) == 0


def test_an_invalid_document_has_its_place_in_the_file() -> None:
    good = bson.dumps({"a": 1})
    for bad, at in [(b"\x0c\0\0\0\x99a\0\1\0\0\0\0", 4), (b"\xff\0\0\0\x10a", 0), (b"\x01", 0)]:
        with pytest.raises(millstream.DocumentError, match=r"record 3") as caught:
            bson.decode_all(good * 3 + bad)
        assert (caught.value.record, caught.value.offset) == (3, 3 * len(good) + at), bad


def test_a_path_instead_of_bytes_is_refused_with_advice(tmp_path: Path) -> None:
    calls: list[Any] = [bson.decode_all, bson.loads]
    for path in ("dump.bson", tmp_path / "dump.bson"):
        for call in calls:
            with pytest.raises(TypeError, match=r"expected the bytes of documents.*millstream\.open"):
                call(path)
    with pytest.raises(TypeError, match="bytes-like"):
        calls[0](1)
