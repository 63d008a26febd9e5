"""Reads and writes BSON documents of MongoDB and BSON.jl as dicts, as columns, or mapped.

from millstream import bson

bson.loads(bson.dumps({"a": [1, 2.5, "x"]}))
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import decimal
import enum
import gc
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from .. import _native
from .._errors import DocumentKeyError
from .._options import OnAbsent, OnMismatch, OnMixed, OnUnknown
from . import _typed, julia

if TYPE_CHECKING:
    import numpy as np

    from .._types import Buffer, Location

__all__ = [
    "Binary",
    "Code",
    "Columns",
    "DatetimeMS",
    "Decimal128",
    "Document",
    "MaxKey",
    "MinKey",
    "ObjectId",
    "Regex",
    "Timestamp",
    "columns",
    "decode",
    "decode_all",
    "dumps",
    "julia",
    "loads",
    "open",
]

T = TypeVar("T")

Columns = _native.Columns

#: Which classes represent types that Python lacks: Millstream's, or those of pymongo's package `bson`.
Classes: TypeAlias = Literal["millstream", "pymongo"]
#: The type of a column: a name (bool, int, long, double, string, binData, objectId, date, timestamp, decimal, json, or
#: null; with a `!` if every document has a value), a list of one type for arrays, or a dict of members for documents.
ColumnType: TypeAlias = "str | list[Any] | dict[str, Any]"
#: How dates are represented: as Python's dates, with `DatetimeMS` outside of their range; or always as a `DatetimeMS`.
Dates: TypeAlias = Literal["datetime", "milliseconds"]


@dataclass(frozen=True, order=True, slots=True)
class ObjectId:
    """The usual id of a document: 12 bytes, shown in hexadecimal."""

    binary: bytes

    def __post_init__(self) -> None:
        if len(self.binary) != 12:
            raise ValueError(f"an object id has 12 bytes, not {len(self.binary)}")

    @classmethod
    def from_hex(cls, text: str) -> ObjectId:
        """Creates an id from its 24 digits."""
        return cls(bytes.fromhex(text))

    def __str__(self) -> str:
        return self.binary.hex()


@dataclass(frozen=True, slots=True)
class Decimal128:
    """A decimal number of 34 digits: 16 bytes, as stored."""

    bid: bytes

    def __post_init__(self) -> None:
        if len(self.bid) != 16:
            raise ValueError(f"a decimal number has 16 bytes, not {len(self.bid)}")

    def to_decimal(self) -> decimal.Decimal:
        """Returns the number as Python's `Decimal`."""
        bits = int.from_bytes(self.bid, "little")
        sign, high = bits >> 127, bits >> 122 & 0x1F
        if high == 0x1F:
            return decimal.Decimal("sNaN" if bits >> 121 & 1 else "NaN")
        if high == 0x1E:
            return decimal.Decimal("-Infinity" if sign else "Infinity")
        if high >> 3 == 3:  # the significand is too large, which counts as zero
            exponent, digits = bits >> 111 & 0x3FFF, 0
        else:
            exponent, digits = bits >> 113 & 0x3FFF, bits & ((1 << 113) - 1)
        if digits >= 10**34:
            digits = 0
        return decimal.Decimal((sign, tuple(map(int, str(digits))), exponent - 6176))


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes of a subtype other than 0; the subtype defines their meaning."""

    data: bytes
    subtype: int = 0


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression, not necessarily in Python's syntax."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """JavaScript, which is treated as text and never executed."""

    code: str
    scope: dict[str, Any] | None = None


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """MongoDB's internal timestamp: seconds, and a counter."""

    time: int
    inc: int


class DatetimeMS(int):
    """A date outside Python's range, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class MinKey:
    """Compares lower than everything."""


@dataclass(frozen=True, slots=True)
class MaxKey:
    """Compares higher than everything."""


@cache
def _types(classes: Classes, dates: Dates = "datetime") -> _native.Types:
    """Returns the classes in the form that the native part needs."""
    if classes not in get_args(Classes) or dates not in get_args(Dates):
        raise _native.option_error(
            f"classes={classes!r}, dates={dates!r}", '"millstream" or "pymongo", "datetime" or "milliseconds"'
        )
    date = datetime.datetime if dates == "datetime" else None
    if classes == "millstream":
        ours = {
            "objectId": ObjectId,
            "date": DatetimeMS,
            "decimal": Decimal128,
            "binData": Binary,
            "regex": Regex,
            "javascript": Code,
            "timestamp": Timestamp,
            "minKey": MinKey(),
            "maxKey": MaxKey(),
        }
        return _native.Types(ours, date, datetime.UTC)
    import bson as pymongo
    from bson import binary, datetime_ms, max_key, min_key

    theirs = {
        "objectId": pymongo.ObjectId,
        "date": datetime_ms.DatetimeMS,
        "decimal": pymongo.Decimal128.from_bid,
        "binData": binary.Binary,
        "regex": lambda pattern, flags: pymongo.Regex(pattern, flags),
        "javascript": pymongo.Code,
        "timestamp": pymongo.Timestamp,
        "minKey": min_key.MinKey(),
        "maxKey": max_key.MaxKey(),
    }
    return _native.Types(theirs, date, datetime.UTC)


class Options(TypedDict, total=False):
    """The options of decoding."""

    classes: Classes
    dates: Dates


class TypedOptions(Options, total=False):
    """The options of decoding into a type."""

    #: Whether a member that the type does not have is an error.
    forbid_unknown: bool


@overload
def loads(data: Buffer, **options: Unpack[Options]) -> dict[str, Any]: ...
@overload
def loads(data: Buffer, *, type: builtins.type[T], **options: Unpack[TypedOptions]) -> T: ...
@overload
def loads(data: Buffer, *, type: Any, **options: Unpack[TypedOptions]) -> Any: ...
def loads(
    data: Buffer,
    *,
    type: Any = None,
    classes: Classes = "millstream",
    dates: Dates = "datetime",
    forbid_unknown: bool = False,
) -> Any:
    """Returns the dict of one document, or an object of `type`. Dates are timezone-aware, in UTC; or all are
    `DatetimeMS`, depending on `dates`.

    A type is a dataclass or a `msgspec.Struct` whose fields are Python's types or Millstream's, lists, tuples, sets and
    dicts of them, `Optional` and other unions, `Literal`, enumerations, and nested classes of this kind. An `int`
    accepts a double without a fraction, and a `float` accepts an integer that it can represent exactly; there are no
    other conversions. Members that the type does not have are ignored; with `forbid_unknown` they are errors. A Struct
    is read by msgspec, according to its own rules.

    Raises `DocumentError` with the position of the error, or, if a document does not match the type, with the `path` of
    keys. A missing member without a default raises `DocumentKeyError`."""
    try:
        document = _native.bson_loads(data, _types(classes, dates))
    except TypeError:
        _refuse_path(data, "loads")
        raise
    return document if type is None else _typed.convert(document, type, forbid_unknown)


@overload
def decode(data: Buffer, type: builtins.type[T], **options: Unpack[TypedOptions]) -> T: ...
@overload
def decode(data: Buffer, type: Any, **options: Unpack[TypedOptions]) -> Any: ...
def decode(data: Buffer, type: Any, **options: Unpack[TypedOptions]) -> Any:
    """Returns one document as an object of `type`, like `loads`."""
    return loads(data, type=type, **options)


@overload
def decode_all(data: Buffer, **options: Unpack[Options]) -> list[dict[str, Any]]: ...
@overload
def decode_all(data: Buffer, *, type: builtins.type[T], **options: Unpack[TypedOptions]) -> list[T]: ...
@overload
def decode_all(data: Buffer, *, type: Any, **options: Unpack[TypedOptions]) -> list[Any]: ...
def decode_all(
    data: Buffer,
    *,
    type: Any = None,
    classes: Classes = "millstream",
    dates: Dates = "datetime",
    forbid_unknown: bool = False,
) -> list[Any]:
    """Returns the dicts, or objects of `type`, of consecutive documents, as written by mongodump. See `loads`.

    The garbage collector is paused during this call: it would scan all the dicts repeatedly without finding garbage.
    Raises `DocumentError` with the number of the invalid document as its `record`."""
    collects = gc.isenabled()
    gc.disable()
    try:
        documents: list[Any] = _native.bson_decode_all(data, _types(classes, dates))
        if type is not None:
            _typed.convert_all(documents, type, forbid_unknown)
        return documents
    except TypeError:
        _refuse_path(data, "decode_all")
        raise
    finally:
        if collects:
            gc.enable()


def _refuse_path(data: object, function: str) -> None:
    """Raises a better error for what looks like the path of a file."""
    if isinstance(data, (str, os.PathLike)):
        raise TypeError(
            f"{function}: found a {type(data).__name__}, expected the bytes of documents; for a file, pass its content,"
            " such as millstream.open(path).read()"
        ) from None


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _MsgspecStruct(Protocol):
    __struct_fields__: ClassVar[tuple[str, ...]]


def dumps(document: Mapping[str, Any] | _Dataclass | _MsgspecStruct) -> bytes:
    """Returns the document for a mapping, or for an object that `loads` can return: a dataclass or a `msgspec.Struct`.

    The classes of pymongo and of Millstream and numpy numbers are accepted. An integer is written with 32 bits if it
    fits, otherwise with 64. A date without a time zone is treated as UTC.
    """
    members = document if isinstance(document, dict) else _members(document)
    if members is None:
        raise TypeError(
            f"a document is a mapping, a dataclass or a msgspec.Struct, not a {type(document).__qualname__}"
        )
    return _native.bson_dumps(members, _other)


def _members(value: Any) -> dict[str, Any] | None:
    """Returns the members of an object that can be a document; Julia values cannot."""
    kind = type(value)
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(kind) and not kind.__module__.startswith(__name__):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}
    if hasattr(kind, "__struct_encode_fields__"):  # of msgspec
        names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        return {key: getattr(value, name) for key, name in names}
    return None


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def _other(value: Any) -> tuple[str, tuple[Any, ...]]:
    """Classifies an object that is not of a simple built-in type, for the native part: the name of its type and its
    parts, or its payload; or "as" and another object."""
    match value:
        case datetime.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
            return "date", ((aware - _EPOCH) // _MILLISECOND,)
        case uuid.UUID():
            return "binData", (value.bytes, 4)
        case re.Pattern():
            pattern = value.pattern.decode() if isinstance(value.pattern, bytes) else value.pattern
            return "regex", (pattern, _letters(value.flags))
        case bytearray() | memoryview():
            return "binData", (value, 0)
    name = type(value).__name__
    if name == "ObjectId" and hasattr(value, "binary"):
        return "objectId", (value.binary,)
    if name == "Decimal128" and hasattr(value, "bid"):
        return "decimal", (value.bid,)
    if name == "DatetimeMS":
        return "date", (int(value),)
    if name == "Binary" and hasattr(value, "subtype"):
        return "binData", (getattr(value, "data", value), value.subtype)
    if name == "Int64":
        return "as", (int(value),)
    if name == "Regex":
        return "regex", (value.pattern, value.flags if isinstance(value.flags, str) else _letters(value.flags))
    if name == "Code":
        return "javascript", (getattr(value, "code", None) or str(value), value.scope)
    if name == "Timestamp" and hasattr(value, "inc"):
        return "timestamp", (value.time, value.inc)
    if name in ("MinKey", "MaxKey"):
        return name.replace("M", "m"), (b"",)
    if isinstance(value, (int, float)):  # subclasses, such as of enumerations
        return "as", (int(value) if isinstance(value, int) else float(value),)
    if isinstance(value, bytes):
        return "binData", (value, 0)
    if isinstance(value, str):
        return "as", (str.__str__(value),)
    if isinstance(value, enum.Enum):
        return "as", (value.value,)
    if isinstance(value, (set, frozenset)):
        return "as", (list(value),)
    members = _members(value)
    if members is not None:
        return "as", (members,)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return "as", (value.item(),)
    if hasattr(value, "tolist"):
        return "as", (value.tolist(),)
    raise TypeError(f"BSON has no type for a {type(value).__qualname__}")


def _letters(flags: int) -> str:
    letters = [(re.I, "i"), (re.L, "l"), (re.M, "m"), (re.S, "s"), (re.U, "u"), (re.X, "x")]
    return "".join(letter for flag, letter in letters if flags & flag)


def columns(
    source: Buffer | Location | _native.Reader[Any],
    *,
    schema: Mapping[str, ColumnType] | None = None,
    infer: int | None = None,
    mixed: OnMixed | None = None,
    mismatch: OnMismatch | None = None,
    unknown: OnUnknown | None = None,
    absent: OnAbsent | None = None,
) -> Columns:
    """Decodes documents of a file, an object, a reader or bytes into columns, which pyarrow, pandas and polars accept.

        pyarrow.table(bson.columns("dump/orders.bson.gz"))
        polars.DataFrame(bson.columns(data))
        pyarrow.table(bson.columns(data, schema={"_id": "objectId", "customer.city": "string", "tags": ["string"]}))
        bson.columns(data)["price"].sum()  # one column as a numpy array, if numpy has its type

    The columns are defined by `schema`, whose keys are paths, or inferred from the first `infer` documents (10,000 by
    default, at most 32 MiB). The options are the same as those of the command `millstream bson convert`:

    - `mixed`: an inferred column whose types do not fit together is Extended JSON ("json"), or an error.
    - `mismatch`: a value that does not fit its column is an error, or "null" and counted in `mismatched`.
    - `unknown`: a member without a column, and a duplicate key, is an error (the default without a schema), or omitted
      and counted in `unknown` ("count"); "ignore" (the default with a schema) omits the member and reports the
      duplicate key as an error.
    - `absent`: a column of the schema that no document has is an error at the end, or a column of nulls ("null").

    An error of a document is raised after the batches before it. The consumer of the columns raises it as its own
    exception. Columns can be taken only once, unless one was accessed by its name, which decodes all of them and keeps
    them. The reader cannot be used afterwards."""
    return _native.document_columns(
        source,
        schema=None if schema is None else dict(schema),
        infer=infer,
        mixed=mixed,
        mismatch=mismatch,
        unknown=unknown,
        absent=absent,
    )


class Document(Mapping[str, Any]):
    """A document of a mapped file: values are read when they are accessed, and arrays of numbers are not copied.

    `doc["key"]` is a `Document` for a document or an array, a read-only memoryview for binary data, and a Python object
    otherwise. The document and every view keep the file mapped; the file must not be changed during that time."""

    def __init__(self, file: _native.Mapped, path: list[str]) -> None:
        self._file = file
        self._path = path

    def __getitem__(self, key: str) -> Any:
        kind, value, _ = self._find(key)
        if value is None and kind in ("object", "array"):
            return Document(self._file, [*self._path, str(key)])
        return memoryview(value) if isinstance(value, _native.Memory) else value

    def array(self, key: str, dtype: Any) -> np.ndarray[Any, Any]:
        """Returns the binary data of this key as a read-only numpy array that refers directly to the mapped file."""
        import numpy

        _, value, _ = self._find(key)
        if not isinstance(value, _native.Memory):
            raise DocumentKeyError(f"{self._file.name}: there is no binary data at {'.'.join([*self._path, key])}")
        return numpy.frombuffer(memoryview(value), dtype)

    def to_dict(self) -> Any:
        """Returns the whole document as Python objects."""
        return self._file.object(self._path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.keys(self._path))

    def __len__(self) -> int:
        return len(self._file.keys(self._path))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._file.find([*self._path, key]) is not None

    def __repr__(self) -> str:
        return f"<Document {'.'.join(self._path)!r} of {self._file.name}>"

    def _find(self, key: str) -> tuple[str, Any, int]:
        found = self._file.find([*self._path, str(key)])
        if found is None:
            raise DocumentKeyError(f"{self._file.name}: there is no {'.'.join([*self._path, str(key)])}")
        return found


def open(path: str | os.PathLike[str], *, classes: Classes = "millstream") -> Document:
    """Maps a file of one document, such as the weights of a model."""
    return Document(_native.Mapped(path, _types(classes)), [])
