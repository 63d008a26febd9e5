"""Converts decoded dicts to dataclasses and the types of their fields.

A type's plan is a function that converts a value of a document to that type; plans of dataclasses are cached. A value
that does not fit raises a `_Misfit`, which collects the keys while it propagates, so valid documents pay nothing for
them."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import re
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from .._errors import Error
from .._native import document_error, option_error

Plan: TypeAlias = Callable[[Any], Any]
Kind: TypeAlias = Literal["key_missing", "value_out_of_range", "shape_mismatch"]


def convert(document: dict[str, Any], hint: Any, forbid_unknown: bool) -> Any:
    """Returns a document as this type."""
    try:
        return _plan(hint, forbid_unknown)(document)
    except _Misfit as misfit:
        raise misfit.told() from misfit.__cause__


def convert_all(documents: list[Any], hint: Any, forbid_unknown: bool) -> None:
    """Replaces each document with an object of this type."""
    plan = _plan(hint, forbid_unknown)
    for record, document in enumerate(documents):
        try:
            documents[record] = plan(document)
        except _Misfit as misfit:
            raise misfit.told(record) from misfit.__cause__


class _Misfit(Exception):
    """A value is not of its type."""

    def __init__(self, kind: Kind, found: str, expected: str, keys: Iterable[str] = ()) -> None:
        self.kind: Kind = kind
        self.found, self.expected = found, expected
        #: The keys, the innermost first.
        self.keys = list(keys)

    def under(self, key: object) -> None:
        """Adds a key while the exception propagates: the value is under this key."""
        self.keys.append(str(key))

    def told(self, record: int | None = None) -> Error:
        return document_error(self.kind, self.keys[::-1], self.found, self.expected, record)


def _wrong(value: Any, expected: str) -> _Misfit:
    return _Misfit("shape_mismatch", f"a value of type {type(value).__name__}", expected)


def _plan(hint: Any, forbid_unknown: bool) -> Plan:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Annotated, Final):
        return _plan(args[0], forbid_unknown)
    if origin in (Union, types.UnionType):
        return _union(hint, [_plan(member, forbid_unknown) for member in args])
    if origin is Literal:
        return _literal(args)
    if isinstance(hint, typing.NewType):
        return _plan(hint.__supertype__, forbid_unknown)
    kind = hint if origin is None else origin
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](args, forbid_unknown)
    if kind is Any or kind is object:
        return _as_it_is
    if kind is None:
        return _SCALARS[type(None)]
    if not isinstance(hint, type) or origin is not None:
        raise option_error(
            f"the type {_name(hint)}", "a dataclass, a msgspec.Struct, or a type that their fields can have"
        )
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint) and hint.__module__ != __package__:
        return _dataclass(hint, forbid_unknown)
    if issubclass(hint, enum.Enum):
        return _enumeration(hint)
    if _is_struct(hint):
        return _struct(hint, forbid_unknown)
    return _instance(hint)


def _as_it_is(value: Any) -> Any:
    return value


def _instance(kind: type) -> Plan:
    def plan(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise _wrong(value, _name(kind))

    return plan


def _exactly(kind: type) -> Plan:
    """In Python a `bool` is an `int`; in a document it is not."""

    def plan(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise _wrong(value, _name(kind))

    return plan


def _int(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is not float:
        raise _wrong(value, "int")
    if not value.is_integer():
        raise _Misfit("value_out_of_range", str(value), "int")
    return int(value)


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is not int:
        raise _wrong(value, "float")
    if int(float(value)) != value:
        raise _Misfit("value_out_of_range", str(value), "float")
    return float(value)


def _uuid(value: Any) -> uuid.UUID:
    data = getattr(value, "data", value)  # pymongo's are bytes themselves
    if getattr(value, "subtype", None) != 4 or len(data) != 16:
        raise _wrong(value, "UUID, which is 16 bytes of subtype 4")
    return uuid.UUID(bytes=bytes(data))


def _decimal(value: Any) -> decimal.Decimal:
    if not hasattr(value, "to_decimal"):
        raise _wrong(value, "Decimal")
    number: decimal.Decimal = value.to_decimal()
    return number


_SCALARS: dict[type, Plan] = {
    **{kind: _exactly(kind) for kind in (type(None), bool, str, bytes, datetime.datetime)},
    int: _int,
    float: _float,
    uuid.UUID: _uuid,
    decimal.Decimal: _decimal,
}


def _union(hint: Any, plans: list[Plan]) -> Plan:
    optional = len(plans) == 2 and type(None) in get_args(hint)
    inner = plans[get_args(hint)[0] is type(None)]

    def plan_optional(value: Any) -> Any:
        return None if value is None else inner(value)

    def plan(value: Any) -> Any:
        """Returns the first member that fits, but a member with exactly the type of the value takes precedence."""
        if type(value) in get_args(hint):
            return value
        for member in plans:
            try:
                return member(value)
            except _Misfit:
                pass
        raise _wrong(value, _name(hint))

    return plan_optional if optional else plan


def _literal(allowed: tuple[Any, ...]) -> Plan:
    def plan(value: Any) -> Any:
        for choice in allowed:
            written = choice.value if isinstance(choice, enum.Enum) else choice
            if type(written) is type(value) and written == value:
                return choice
        raise _Misfit("shape_mismatch", repr(value), " or ".join(map(repr, allowed)))

    return plan


def _enumeration(kind: type[enum.Enum]) -> Plan:
    def plan(value: Any) -> Any:
        try:
            member = kind(value)
        except ValueError:
            member = None
        # In Python, `True` equals 1.
        if member is None or isinstance(value, bool) != isinstance(member.value, bool):
            raise _Misfit("shape_mismatch", repr(value), f"a value of {_name(kind)}")
        return member

    return plan


def _sequence(make: Callable[[list[Any]], Any] | None) -> Callable[[tuple[Any, ...], bool], Plan]:
    def of(args: tuple[Any, ...], forbid_unknown: bool) -> Plan:
        element = _plan(args[0] if args else Any, forbid_unknown)

        def plan(value: Any) -> Any:
            if type(value) is not list:
                raise _wrong(value, "list")
            made: list[Any] = []
            try:
                made.extend(map(element, value))
            except _Misfit as misfit:
                # `extend` has added the elements before it.
                misfit.under(len(made))
                raise
            return made if make is None else make(made)

        return plan

    return of


def _tuple(args: tuple[Any, ...], forbid_unknown: bool) -> Plan:
    if not args or args[-1] is ...:
        return _sequence(tuple)(args, forbid_unknown)
    elements = [_plan(member, forbid_unknown) for member in args]

    def plan(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _wrong(value, "list")
        if len(value) != len(elements):
            raise _Misfit("shape_mismatch", f"a list of {len(value)}", f"a list of {len(elements)}")
        made: list[Any] = []
        for element, member in zip(elements, value, strict=True):
            try:
                made.append(element(member))
            except _Misfit as misfit:
                misfit.under(len(made))
                raise
        return tuple(made)

    return plan


def _mapping(args: tuple[Any, ...], forbid_unknown: bool) -> Plan:
    key, hint = args or (str, Any)
    if key not in (str, Any):
        raise option_error(f"the type {_name(key)} of keys", "str")
    member = _plan(hint, forbid_unknown)

    def plan(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong(value, "dict")
        made: dict[str, Any] = {}
        for key, inner in value.items():
            try:
                made[key] = member(inner)
            except _Misfit as misfit:
                misfit.under(key)
                raise
        return made

    return plan


_CONTAINERS: dict[Any, Callable[[tuple[Any, ...], bool], Plan]] = {
    **dict.fromkeys((list, collections.abc.Sequence, collections.abc.MutableSequence), _sequence(None)),
    **dict.fromkeys((set, collections.abc.Set, collections.abc.MutableSet), _sequence(set)),
    **dict.fromkeys((dict, collections.abc.Mapping, collections.abc.MutableMapping), _mapping),
    frozenset: _sequence(frozenset),
    tuple: _tuple,
}


class _Dataclass:
    """The plan of a dataclass. Its fields are resolved on first use, because they can refer back to it."""

    def __init__(self, kind: Any, forbid_unknown: bool) -> None:
        self._kind = kind
        self._forbid_unknown = forbid_unknown

    @cached_property
    def _fields(self) -> list[tuple[str, Plan, bool]]:
        """The names and plans of the fields, and whether they are required."""
        hints = typing.get_type_hints(self._kind, localns={self._kind.__name__: self._kind})
        return [
            (
                field.name,
                _plan(hints[field.name], self._forbid_unknown),
                field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(self._kind)
            if field.init
        ]

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, f"a document for {_name(self._kind)}")
        made: dict[str, Any] = {}
        for name, plan, is_needed in self._fields:
            if name in value:
                try:
                    made[name] = plan(value[name])
                except _Misfit as misfit:
                    misfit.under(name)
                    raise
            elif is_needed:
                raise _Misfit("key_missing", "no such member", f"a member {name!r} for {_name(self._kind)}", [name])
        if self._forbid_unknown and len(made) < len(value):
            unknown = next(key for key in value if key not in made)
            raise _Misfit("shape_mismatch", f"a member {unknown!r}", f"only those of {_name(self._kind)}", [unknown])
        try:
            return self._kind(**made)
        except ValueError as refused:
            raise _Misfit("shape_mismatch", str(refused), f"what {_name(self._kind)} takes") from refused


# Enough for the types of most programs; a program that keeps creating types does not need the old ones.
_dataclass = lru_cache(maxsize=1024)(_Dataclass)


def _is_struct(kind: type) -> bool:
    # A program that uses one of these classes has imported its package.
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(kind, msgspec.Struct)


def _struct(kind: type, forbid_unknown: bool) -> Plan:
    """Converts with the Struct's own package, whose errors are text only."""
    import msgspec

    if forbid_unknown:
        raise option_error(f"forbid_unknown for the Struct {_name(kind)}", "its own forbid_unknown_fields")

    def plan(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise _misfit_of_struct(str(error), kind) from error

    return plan


def _misfit_of_struct(message: str, kind: type) -> _Misfit:
    text, _, path = message.partition(" - at `$")
    keys = re.findall(r"[^.\[\]`]+|(?<=\[)\.\.\.(?=\])", path)[::-1]
    if named := re.fullmatch("Object missing required field `(.*)`", text):
        return _Misfit("key_missing", "no such member", f"a member {named[1]!r}", [named[1], *keys])
    if other := re.fullmatch("Expected (.*), got `([^`]*)`", text):
        return _Misfit("shape_mismatch", f"a value of type {other[2]}", other[1].replace("`", ""), keys)
    return _Misfit("shape_mismatch", text, f"a document for {_name(kind)}", keys)


def _name(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not get_origin(hint) else str(hint).replace("typing.", "")
