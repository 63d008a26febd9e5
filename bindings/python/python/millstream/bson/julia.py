"""Reads files of Julia's packages BSON.jl and BSONqs as plain data.

from millstream.bson import julia

model = julia.load("model.bson")["model"]
model.type, model.fields

No code is executed and no name is looked up, regardless of the content of a file. Shared objects stay shared, even if
they contain themselves.

| Julia | Python |
|---|---|
| `nothing`, Bool, integers, floating point | `None`, `bool`, `int`, `float` |
| String | `str`; `bytes` if it is not valid text |
| an array of numbers, a BitArray | a read-only numpy array of the same shape, in Fortran order |
| other arrays | a list; with several dimensions, a numpy array of objects |
| Tuple, Dict, Set | `tuple`, `dict`, `set`; a `Struct` of keys and values if Python cannot hash the keys |
| NamedTuple, Pair, Symbol, Char | `NamedTuple`, `Pair`, `Symbol`, `Char` |
| Complex, Rational, UnitRange | `complex`, `Fraction`, `range`; otherwise a `Struct` |
| a struct, a Ref, a function with a body | `Struct` with `type` and `fields`; files do not contain the names of fields
|
| types, modules, functions with a name | `Type`, `Module`, `Function`, which contain the name |
| `missing`, an undefined value | `missing`, `undef` |
| anything else, such as an enumeration | `Primitive` with `type` and `data` |
"""

from __future__ import annotations

import math
import os
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import NamedTuple as _NamedTuple

from .. import _native

if TYPE_CHECKING:
    from .._types import Buffer

__all__ = [
    "Char",
    "Function",
    "Missing",
    "Module",
    "NamedTuple",
    "Pair",
    "Primitive",
    "Struct",
    "Symbol",
    "Type",
    "Undef",
    "load",
    "loads",
    "missing",
    "undef",
]


class Struct:
    """A value with fields, in the order of their declaration. As in Julia, it is equal only to itself."""

    __slots__ = ("__weakref__", "fields", "type")

    def __init__(self, type: str, fields: list[Any]) -> None:
        self.type = type
        self.fields = fields

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        return f"{self.type}({', '.join(map(repr, self.fields))})"


class NamedTuple(tuple[Any, ...]):
    """A tuple whose elements have names: `t["a"]`."""

    names: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self.names.index(key) if isinstance(key, str) else key)


class Pair(_NamedTuple):
    """`first => second`."""

    first: Any
    second: Any


class Symbol(str):
    """A name; Python compares it as text."""

    __slots__ = ()


class Char(str):
    """One character; Python compares it as text."""

    __slots__ = ()


class Type(str):
    """The name of a type with its parameters, as Julia writes it."""

    __slots__ = ()


class Module(str):
    """The name of a module."""

    __slots__ = ()


class Function(str):
    """The name of a function."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Primitive:
    """The bytes of a value in memory, the lowest first. The file does not describe the content of its type."""

    type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing value, in statistics."""


@dataclass(frozen=True, slots=True)
class Undef:
    """A field or an element that was never set."""


missing = Missing()
undef = Undef()


def load(
    path: str | os.PathLike[str], *, memory: int = 1 << 30, types: Mapping[str, Sequence[str]] | None = None
) -> Any:
    """Returns the values of a file, usually as a dict.

    The file is mapped, and arrays of numbers are views of it: the file must not be changed while they are in use. The
    result takes at most `memory` bytes, not counting arrays of numbers. `types` gives the field types of immutable
    structs, so that arrays of them can be decoded: `{"Main.Point": ["Float64", "Float64"]}`.

    Raises `DocumentError`, and `TooMuchMemory`.
    """
    return _native.julia_load(_MODULE, path, None, memory, _described(types))


def loads(data: Buffer, *, memory: int = 1 << 30, types: Mapping[str, Sequence[str]] | None = None) -> Any:
    """Returns the values in bytes, from which arrays are copied."""
    return _native.julia_load(_MODULE, None, data, memory, _described(types))


_MODULE = sys.modules[__name__]


def _described(types: Mapping[str, Sequence[str]] | None) -> list[tuple[str, list[str]]]:
    return [(name, list(fields)) for name, fields in (types or {}).items()]


# How the native part creates objects. Mutable objects come with a function that fills them, because their content may
# not exist yet.

#: Julia's types and the matching numpy types.
_NUMBERS = {
    "Bool": "?",
    **{f"Int{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"UInt{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"Float{8 * size}": f"<f{size}" for size in (2, 4, 8)},
    **{f"Complex{{Float{8 * size}}}": f"<c{2 * size}" for size in (4, 8)},
}
_Filled: TypeAlias = tuple[Any, Callable[[list[Any]], object]]


def _numbers(memory: Any, of: str, size: list[int]) -> Any:
    if of not in _NUMBERS:
        return None
    import numpy

    return numpy.ndarray(size, _NUMBERS[of], memory, order="F")


def _array(size: list[int]) -> _Filled:
    if len(size) == 1:
        made: list[Any] = []
        return made, made.extend
    import numpy

    flat = numpy.empty(math.prod(size), object)

    def fill(elements: list[Any]) -> None:
        # One by one, because numpy would traverse lists.
        for index, element in enumerate(elements):
            flat[index] = element

    return flat.reshape(size, order="F"), fill


def _document(keys: list[Any]) -> _Filled:
    made: dict[Any, Any] = {}
    return made, lambda values: made.update(zip(keys, values, strict=True))


def _struct(of: str) -> _Filled:
    fields: list[Any] = []
    return Struct(of, fields), fields.extend


def _dict(of: str, keys: list[Any]) -> _Filled:
    if _are_distinct(keys):
        return _document(keys)
    values: list[Any] = []
    return Struct(of, [keys, values]), values.extend


def _set(of: str, elements: list[Any]) -> Any:
    return set(elements) if _are_distinct(elements) else Struct(of, elements)


def _are_distinct(keys: list[Any]) -> bool:
    """Returns whether keys that differ in Julia also differ in Python, which cannot hash a list and treats 0.0 as
    -0.0."""
    try:
        return len(set(keys)) == len(keys)
    except TypeError:
        return False


def _tuple(_: str, parts: list[Any]) -> tuple[Any, ...]:
    return tuple(parts)


def _named_tuple(_: str, parts: list[Any]) -> NamedTuple:
    count = len(parts) // 2
    made = NamedTuple(parts[count:])
    made.names = tuple(parts[:count])
    return made


def _pair(_: str, parts: list[Any]) -> Pair:
    return Pair(*parts)


def _complex(_: str, parts: list[Any]) -> Any:
    is_float = all(isinstance(part, float) for part in parts)
    return complex(*parts) if is_float else Struct("Complex", parts)


def _rational(_: str, parts: list[Any]) -> Any:
    numerator, denominator = parts
    is_good = isinstance(numerator, int) and isinstance(denominator, int) and denominator != 0
    return Fraction(numerator, denominator) if is_good else Struct("Rational", parts)


def _range(_: str, parts: list[Any]) -> Any:
    start, stop = parts
    is_good = isinstance(start, int) and isinstance(stop, int)
    return range(start, stop + 1) if is_good else Struct("UnitRange", parts)
