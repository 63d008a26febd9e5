"""Tests of typed documents: dataclasses from hypothesis, errors with paths, Structs of msgspec."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NewType, Optional

import millstream
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from millstream import bson
from millstream.bson import julia

import bson as theirs


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Name = NewType("Name", str)


@dataclass
class Point:
    x: int
    y: float = 0.5


@dataclass(slots=True, kw_only=True)
class Tree:
    name: Name
    children: list[Tree] = field(default_factory=list)
    left: Tree | None = None
    by_name: dict[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True)
class Everything:
    id: bson.ObjectId
    when: datetime.datetime
    price: bson.Decimal128
    exact: decimal.Decimal
    key: uuid.UUID
    data: bytes
    points: Sequence[Point]
    pair: tuple[int, str]
    many: tuple[float, ...]
    some: set[str]
    colour: Colour
    level: Level
    mode: Literal["r", "w", 3]
    either: int | str | Point
    perhaps: Optional[Point]  # noqa: UP045
    marked: Annotated[int, "units"]
    members: Mapping[str, list[bool]]
    anything: Any
    nothing: None
    made: int = field(init=False, default=7)


EVERYTHING = {
    "id": bson.ObjectId(b"123456789012"),
    "when": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
    "price": bson.Decimal128(theirs.Decimal128("1.5").bid),
    "exact": bson.Decimal128(theirs.Decimal128("1.5").bid),
    "key": uuid.UUID(int=7),
    "data": b"12",
    "points": [{"x": 1}, {"x": 2.0, "y": 3}],
    "pair": [1, "a"],
    "many": [1, 2.5],
    "some": ["a", "b", "a"],
    "colour": "red",
    "level": 2,
    "mode": 3,
    "either": {"x": 5},
    "perhaps": None,
    "marked": 3,
    "members": {"a": [True]},
    "anything": {"b": [1, "x"]},
    "nothing": None,
    "unknown": 1,
}


def test_every_type() -> None:
    found = bson.decode(bson.dumps(EVERYTHING), Everything)
    assert found == Everything(
        id=bson.ObjectId(b"123456789012"),
        when=datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
        price=bson.Decimal128(theirs.Decimal128("1.5").bid),
        exact=decimal.Decimal("1.5"),
        key=uuid.UUID(int=7),
        data=b"12",
        points=[Point(1), Point(2, 3.0)],
        pair=(1, "a"),
        many=(1.0, 2.5),
        some={"a", "b"},
        colour=Colour.RED,
        level=Level.HIGH,
        mode=3,
        either=Point(5),
        perhaps=None,
        marked=3,
        members={"a": [True]},
        anything={"b": [1, "x"]},
        nothing=None,
    )
    assert (type(found.points[1].x), type(found.points[1].y), type(found.many[0])) == (int, float, float)
    assert found.made == 7


def test_it_can_lead_back_to_itself() -> None:
    tree = Tree(name=Name("a"), children=[Tree(name=Name("b"))], by_name={"c": Tree(name=Name("c"))})
    tree.left = Tree(name=Name("d"))
    data = bson.dumps(dataclasses.asdict(tree))
    assert bson.loads(data, type=Tree) == tree
    assert bson.decode_all(data * 3, type=Tree) == [tree] * 3


@pytest.mark.parametrize(
    ("change", "kind", "path", "says"),
    [
        ({"when": 1}, "shape_mismatch", "when", "a value of type int, expected datetime"),
        ({"points": [{"x": 1}, {"x": "2"}]}, "shape_mismatch", "points.1.x", "found a value of type str, expected int"),
        ({"points": [{"y": 1}]}, "key_missing", "points.0.x", "expected a member 'x' for Point"),
        ({"points": {"x": 1}}, "shape_mismatch", "points", "found a value of type dict, expected list"),
        ({"points": [1]}, "shape_mismatch", "points.0", "a document for Point"),
        ({"marked": 2.5}, "value_out_of_range", "marked", "found 2.5, expected int"),
        ({"marked": True}, "shape_mismatch", "marked", "found a value of type bool, expected int"),
        ({"many": [0.5, 2**53 + 1]}, "value_out_of_range", "many.1", "expected float"),
        ({"pair": [1]}, "shape_mismatch", "pair", "found a list of 1, expected a list of 2"),
        ({"pair": [1, 2]}, "shape_mismatch", "pair.1", "expected str"),
        ({"colour": "blue"}, "shape_mismatch", "colour", "found 'blue', expected a value of Colour"),
        ({"level": True}, "shape_mismatch", "level", "found True, expected a value of Level"),
        ({"mode": "x"}, "shape_mismatch", "mode", "found 'x', expected 'r' or 'w' or 3"),
        ({"either": {"y": 1}}, "shape_mismatch", "either", "found a value of type dict"),
        ({"perhaps": {"x": None}}, "shape_mismatch", "perhaps.x", "expected int"),
        ({"members": {"a.b": [True, 1]}}, "shape_mismatch", '"a.b".1', "expected bool"),
        ({"key": b"1"}, "shape_mismatch", "key", "16 bytes of subtype 4"),
        ({"id": "1"}, "shape_mismatch", "id", "expected ObjectId"),
        ({"nothing": 1}, "shape_mismatch", "nothing", "expected NoneType"),
    ],
)
def test_what_is_wrong_and_where(change: dict[str, Any], kind: str, path: str, says: str) -> None:
    with pytest.raises(millstream.DocumentError) as caught:
        bson.decode(bson.dumps({**EVERYTHING, **change}), Everything)
    assert (caught.value.kind, (caught.value.path or "").removeprefix("members.")) == (kind, path)
    assert says in str(caught.value)
    assert isinstance(caught.value, KeyError) == (kind == "key_missing")
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_an_error_names_its_document() -> None:
    data = bson.dumps({"x": 1}) * 2 + bson.dumps({"y": 1.5})
    with pytest.raises(millstream.DocumentKeyError) as caught:
        bson.decode_all(data, type=Point)
    assert (caught.value.record, caught.value.path) == (2, "x")


def test_unknown_members() -> None:
    data = bson.dumps({"name": "a", "children": [{"name": "b", "size": 3}]})
    assert bson.decode(data, Tree) == Tree(name=Name("a"), children=[Tree(name=Name("b"))])
    with pytest.raises(millstream.DocumentError, match="found a member 'size', expected only those of Tree") as caught:
        bson.decode(data, Tree, forbid_unknown=True)
    assert caught.value.path == "children.0.size"


def test_what_a_class_refuses() -> None:
    @dataclass
    class Even:
        n: int

        def __post_init__(self) -> None:
            if self.n % 2:
                raise ValueError(f"{self.n} is odd")

    assert bson.decode(bson.dumps({"e": [{"n": 2}]}), dict[str, list[Even]]) == {"e": [Even(2)]}
    with pytest.raises(millstream.DocumentError, match="3 is odd") as caught:
        bson.decode(bson.dumps({"e": [{"n": 2}, {"n": 3}]}), dict[str, list[Even]])
    assert caught.value.path == "e.1"
    assert isinstance(caught.value.__cause__, ValueError)


def test_types_that_cannot_be() -> None:
    data = bson.dumps({"x": {}})
    for hint in (dict[int, str], list["Point"], "Point", 3):
        with pytest.raises(millstream.OptionError):
            bson.loads(data, type=hint)
    with pytest.raises(millstream.DocumentError, match="expected list"):
        bson.decode(data, list[int])


def test_pymongos_classes() -> None:
    @dataclass
    class Row:
        id: theirs.ObjectId
        price: theirs.Decimal128
        exact: decimal.Decimal
        key: uuid.UUID

    number = theirs.Decimal128("1.5")
    row = Row(theirs.ObjectId(), number, decimal.Decimal("1.5"), uuid.UUID(int=3))
    data = bson.dumps({"id": row.id, "price": number, "exact": number, "key": row.key})
    assert bson.decode(data, Row, classes="pymongo") == row


class Inner(msgspec.Struct):
    n: int
    tags: list[str] = []


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    id: bson.ObjectId
    inner: Inner
    more: dict[str, Inner] = {}


@dataclass
class Holder:
    structs: list[Outer]


def test_structs() -> None:
    inner, row = Inner(3, ["a"]), bson.ObjectId(b"123456789012")
    document = {"id": row, "inner": {"n": 3, "tags": ["a"]}, "more": {"k": {"n": 3, "tags": ["a"]}}}
    assert bson.decode(bson.dumps(document), Outer) == Outer(row, inner, {"k": inner})
    assert bson.decode(bson.dumps({"structs": [document]}), Holder) == Holder([Outer(row, inner, {"k": inner})])
    with pytest.raises(millstream.OptionError, match="forbid_unknown_fields"):
        bson.decode(bson.dumps(document), Outer, forbid_unknown=True)


@pytest.mark.parametrize(
    ("change", "kind", "path", "says"),
    [
        ({"inner": {"n": "x"}}, "shape_mismatch", "structs.0.inner.n", "found a value of type str, expected int"),
        ({"inner": {"n": 1, "tags": ["a", 1]}}, "shape_mismatch", "structs.0.inner.tags.1", "expected str"),
        ({"inner": {}}, "key_missing", "structs.0.inner.n", "a member 'n'"),
        ({"more": {"k": {}}}, "key_missing", 'structs.0.more."...".n', "a member 'n'"),
        ({"other": 1}, "shape_mismatch", "structs.0", "unknown field `other`"),
    ],
)
def test_what_is_wrong_in_a_struct(change: dict[str, Any], kind: str, path: str, says: str) -> None:
    document = {"id": bson.ObjectId(b"123456789012"), "inner": {"n": 3}, **change}
    with pytest.raises(millstream.DocumentError, match=says) as caught:
        bson.decode(bson.dumps({"structs": [document]}), Holder)
    assert (caught.value.kind, caught.value.path) == (kind, path)
    assert isinstance(caught.value.__cause__, msgspec.ValidationError)


# A type, and a strategy for its values.
Typed = tuple[Any, st.SearchStrategy[Any]]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS: list[Typed] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats(allow_nan=False)),
    (str, texts),
    (bytes, st.binary(max_size=5)),
    (bool, st.booleans()),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
]


def classes(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def make(fields: list[tuple[Typed, bool]]) -> Typed:
        names = [f"f{number}" for number in range(len(fields))]
        kind = dataclasses.make_dataclass(
            "Made",
            [
                (name, hint, field(default=None)) if has_default else (name, hint)
                for name, ((hint, _), has_default) in zip(names, sorted(fields, key=lambda each: each[1]), strict=True)
            ],
        )
        ordered = [values for (_, values), _ in sorted(fields, key=lambda each: each[1])]
        return kind, st.builds(kind, **dict(zip(names, ordered, strict=True)))

    return st.lists(st.tuples(inner, st.booleans()), max_size=4).map(make)


# A type checker does not accept the expressions in these brackets.
LIST: Any = list
TUPLE: Any = tuple
DICT: Any = dict
OPTIONAL: Any = Optional
keys_of_dicts = texts.filter(lambda key: "\0" not in key)

types: st.SearchStrategy[Typed] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda of: (LIST[of[0]], st.lists(of[1], max_size=3))),
        inner.map(lambda of: (DICT[str, of[0]], st.dictionaries(keys_of_dicts, of[1], max_size=3))),
        inner.map(lambda of: (OPTIONAL[of[0]], st.none() | of[1])),
        st.tuples(inner, inner).map(lambda of: (TUPLE[of[0][0], of[1][0]], st.tuples(of[0][1], of[1][1]))),
        classes(inner),
    ),
    max_leaves=8,
)


def plain(value: Any) -> Any:
    """Returns the value as it is written: without types that have no fields."""
    if dataclasses.is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@given(st.data())
def test_made_classes_come_back(data: st.DataObject) -> None:
    kind, values = data.draw(classes(types))
    value = data.draw(values)
    encoded = bson.dumps(plain(value))
    assert bson.decode(encoded, kind) == value
    assert bson.decode(encoded, kind, forbid_unknown=True) == value
    assert bson.decode_all(encoded * 2, type=kind) == [value, value]


@given(st.data())
def test_damage_is_found_where_it_is(data: st.DataObject) -> None:
    kind, values = data.draw(classes(types))
    document = plain(data.draw(values))
    # Select any value and replace it with one that no type accepts.
    keys: list[str] = []
    here = document
    while True:
        members = list(here.items()) if isinstance(here, dict) else list(enumerate(here))
        if not members:
            return
        key, inner = data.draw(st.sampled_from(members))
        keys.append(str(key))
        if not isinstance(inner, (dict, list)) or data.draw(st.booleans()):
            here[key] = bson.Timestamp(1, 2)
            break
        here = inner
    with pytest.raises(millstream.DocumentError) as caught:
        bson.decode(bson.dumps(document), kind)
    expected = millstream._native.document_error("shape_mismatch", keys, "", "").path
    assert (caught.value.kind, caught.value.path) == ("shape_mismatch", expected)


class Reading(msgspec.Struct, rename="camel"):
    station_name: str
    at_point: Point


@dataclass
class Written:
    tree: Tree
    colours: list[Colour]
    level: Level
    names: set[str]
    key: uuid.UUID
    reading: Reading


def test_what_can_be_read_can_be_written() -> None:
    written = Written(
        Tree(name=Name("a"), children=[Tree(name=Name("b"))], by_name={"c": Tree(name=Name("c"))}),
        [Colour.RED, Colour.ONE],
        Level.HIGH,
        {"x", "y"},
        uuid.UUID(int=7),
        Reading("north", Point(1)),
    )
    data = bson.dumps(written)
    document = bson.loads(data)
    assert document["reading"] == {"stationName": "north", "atPoint": {"x": 1, "y": 0.5}}
    assert (document["colours"], document["level"], sorted(document["names"])) == (["red", 1], 2, ["x", "y"])
    tree = dataclasses.asdict(written.tree)
    assert document["tree"] == tree
    assert bson.decode(bson.dumps(written.tree), Tree) == written.tree
    assert bson.decode(bson.dumps(written.reading), Reading) == written.reading
    others: list[Any] = [1, "text", [1], Point, None, julia.Struct("T", [])]
    for other in others:
        with pytest.raises(TypeError, match="a document is a mapping"):
            bson.dumps(other)
