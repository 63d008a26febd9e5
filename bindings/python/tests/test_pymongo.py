"""Tests of pymongo's own classes: `dumps` accepts them, and `loads` creates them on request."""

from __future__ import annotations

import datetime
import os
import warnings
from pathlib import Path

import millstream
import pytest
from millstream import bson

try:
    from bson.datetime_ms import DatetimeMS

    import bson as theirs
except ImportError:
    if os.environ.get("CI") == "true":
        raise
    warnings.warn("python: SKIPPED, pymongo is missing: see tools/setup", pytest.PytestWarning, stacklevel=1)
    pytest.skip("pymongo is missing", allow_module_level=True)

WHEN = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)
DOCUMENT = {
    "id": theirs.ObjectId("0123456789abcdef01234567"),
    "price": theirs.Decimal128("-12.50"),
    "when": DatetimeMS(WHEN),
    "far": DatetimeMS(2**60),
    "ids": [theirs.ObjectId("0123456789abcdef01234567"), None],
}


def test_they_are_taken() -> None:
    assert bson.dumps(DOCUMENT) == theirs.encode(DOCUMENT)
    assert bson.loads(bson.dumps(DOCUMENT)) == {
        "id": bson.ObjectId.from_hex("0123456789abcdef01234567"),
        "price": bson.Decimal128(theirs.Decimal128("-12.50").bid),
        "when": WHEN,
        "far": bson.DatetimeMS(2**60),
        "ids": [bson.ObjectId.from_hex("0123456789abcdef01234567"), None],
    }


def test_they_are_returned_on_request(tmp_path: Path) -> None:
    data = theirs.encode(DOCUMENT)
    assert bson.loads(data, classes="pymongo", dates="milliseconds") == DOCUMENT
    assert bson.decode_all(data * 2, classes="pymongo", dates="milliseconds") == [DOCUMENT] * 2
    found = bson.loads(data, classes="pymongo")
    assert found == {**DOCUMENT, "when": WHEN}
    assert [type(found[key]) for key in DOCUMENT] == [
        theirs.ObjectId,
        theirs.Decimal128,
        datetime.datetime,
        DatetimeMS,
        list,
    ]
    path = tmp_path / "one.bson"
    path.write_bytes(data)
    mapped = bson.open(path, classes="pymongo")
    assert (mapped["id"], mapped["price"], mapped["far"]) == (DOCUMENT["id"], DOCUMENT["price"], DOCUMENT["far"])


def test_dates_in_milliseconds() -> None:
    found = bson.loads(theirs.encode(DOCUMENT), dates="milliseconds")
    assert (type(found["when"]), found["when"], found["far"]) == (bson.DatetimeMS, 1577934245678, 2**60)
    assert bson.dumps(found) == theirs.encode(DOCUMENT)


def test_what_cannot_be_asked_for() -> None:
    data = theirs.encode(DOCUMENT)
    with pytest.raises(millstream.OptionError, match="pymongo"):
        bson.loads(data, classes="mongo")  # type: ignore[call-overload]
    with pytest.raises(millstream.OptionError, match="milliseconds"):
        bson.loads(data, dates="ms")  # type: ignore[call-overload]
