"""The end of a pipe: a writer, or a value made from all items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .._errors import Error
from .._native import Writer, option_error

if TYPE_CHECKING:
    from .summary import Summary

A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")


class Sinking(Generic[R]):
    """A running sink."""

    def take(self, items: list[Any]) -> None:
        """Accepts items as soon as possible."""
        raise NotImplementedError

    def finish(self, summary: Summary) -> R:
        """Called after the last item; returns the result of the pipe."""
        raise NotImplementedError

    def abandon(self, error: BaseException) -> None:
        """Called instead of `finish` after an error."""


@dataclass(frozen=True)
class Sink(Generic[A, R]):
    """Accepts items of type `A` and returns an `R`. A sink may be used in several pipes."""

    start: Callable[[], Sinking[R]]


class _Calling(Sinking["Summary"]):
    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def take(self, items: list[Any]) -> None:
        for item in items:
            self._function(item)

    def finish(self, summary: Summary) -> Summary:
        return summary


class _Collecting(Sinking[list[Any]]):
    def __init__(self) -> None:
        self._all: list[Any] = []

    def take(self, items: list[Any]) -> None:
        self._all += items

    def finish(self, summary: Summary) -> list[Any]:
        return self._all

    def abandon(self, error: BaseException) -> None:
        if isinstance(error, Error):
            error.partial = self._all


class _Counting(Sinking[int]):
    def take(self, items: list[Any]) -> None:
        pass

    def finish(self, summary: Summary) -> int:
        return summary.items


class _Folding(Sinking[Any]):
    def __init__(self, initial: Any, function: Callable[[Any, Any], Any]) -> None:
        self._state = initial
        self._function = function

    def take(self, items: list[Any]) -> None:
        self._state = reduce(self._function, items, self._state)

    def finish(self, summary: Summary) -> Any:
        return self._state


class Terminated(Protocol):
    """A pipe, whose terminator is known when it has items."""

    @property
    def terminator(self) -> bytes: ...


class Writing(Sinking["Summary"]):
    """Writes items to a writer, which is closed at the end or aborted."""

    def __init__(self, writer: Writer, pipe: Terminated) -> None:
        self._writer = writer
        self._pipe = pipe

    def take(self, items: list[Any]) -> None:
        self._writer.write(joined(items, self._pipe.terminator))

    def finish(self, summary: Summary) -> Summary:
        summary.writer = self._writer.close()
        return summary

    def abandon(self, error: BaseException) -> None:
        self._writer._give_up()


#: Items that are written unchanged, even if the terminator is not text.
_BYTES = (bytes, bytearray, memoryview)


def joined(items: list[Any], terminator: bytes) -> bytes | str:
    """The items as a writer writes them, each with its terminator."""
    kinds = {type(item) for item in items}
    if kinds == {bytes}:
        return terminator.join(items) + terminator
    end = terminator.decode("utf-8", "surrogateescape")
    if kinds == {str}:
        return end.join(items) + end
    out = Writer.memory()
    if not any(issubclass(kind, _BYTES) for kind in kinds):
        # One call for all items costs less than one for each.
        out.put(*items, sep=end, end=end)
        items = []
    for item in items:
        if isinstance(item, _BYTES):
            out.write(bytes(item) + terminator)
        else:
            out.put(item, end=end)
    written = out.close()
    assert written is not None
    assert written.memory is not None
    return written.memory


def a_function(function: Any) -> Any:
    """Returns the argument if it is a function."""
    if callable(function):
        return function
    raise option_error(type(function).__name__, "a function")


def for_each(function: Callable[[A], object]) -> Sink[A, Summary]:
    """Calls a function for each item."""
    a_function(function)
    return Sink(lambda: _Calling(function))


def collect() -> Sink[A, list[A]]:
    """Collects all items in a list. The items before an error are in its `partial`."""
    return Sink(_Collecting)


def count() -> Sink[Any, int]:
    """Counts the items."""
    return Sink(_Counting)


def fold(initial: S, function: Callable[[S, A], S]) -> Sink[A, S]:
    """Combines all items into one value: `function` returns the next value for the last value and an item."""
    a_function(function)
    return Sink(lambda: _Folding(initial, function))
