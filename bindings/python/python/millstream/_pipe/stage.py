"""The operations on items. A stage is only a description; it may be used in several pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, Generic, Literal, TypeVar

from .._native import Writer, option_error
from .block import Block, Shifted
from .sink import Terminated, Writing, a_function
from .summary import StageStats

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")


class Step:
    """A running stage in one pipe."""

    #: Whether the stage needs no more items.
    is_done = False

    def run(self, block: Block) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Stage(Generic[A, B]):
    """Converts items of type `A` into items of type `B`."""

    #: Its name in statistics and error messages.
    name: str

    def start(self) -> Step:
        """Starts the stage."""
        raise NotImplementedError


class Timed(Step):
    """A step with its statistics."""

    def __init__(self, step: Step, stats: StageStats) -> None:
        self._step = step
        self._stats = stats
        self.is_done = step.is_done

    def run(self, block: Block) -> None:
        began = perf_counter()
        self._step.run(block)
        self.is_done = self._step.is_done
        self._stats.time += perf_counter() - began
        self._stats.items += len(block.items)


@dataclass(frozen=True)
class Each(Stage[A, B]):
    """A stage that calls a function for each item. `loop` runs it, alone or together with others."""

    function: Callable[..., Any]

    #: What it does with an item `x`, as a line of Python.
    line: ClassVar[str]
    #: How it changes the number of items: it leaves some out, or makes several of one.
    changes: ClassVar[Literal["", "drops", "spreads"]] = ""

    def start_function(self) -> Callable[[Any], Any]:
        """The function for one pipe."""
        return self.function


class Stateless(Each[A, B]):
    """A stage without state: any thread or process can run it."""


#: The line of a stage that replaces an item by the result of its function.
MAP = "x = {f}(x)"


class _Map(Stateless[A, B]):
    line = MAP


class _Filter(Stateless[A, A]):
    line = "if not {f}(x): continue"
    changes = "drops"


class _FlatMap(Stateless[A, B]):
    line = "for x in y if type(y := {f}(x)) is list else several(y):"
    changes = "spreads"


class _Inspect(Stateless[A, A]):
    line = "{f}(x)"


def several(result: Iterable[Any]) -> list[Any]:
    """The items that the function of `flat_map` made from one."""
    if isinstance(result, (bytes, str)):
        raise TypeError(f"flat_map's function returned {type(result).__name__}: return a list with it")
    return list(result)


@dataclass(frozen=True)
class _ScanState(Each[A, B]):
    initial: Any

    line = MAP

    def start_function(self) -> Callable[[Any], Any]:
        state = self.initial

        def following(item: Any) -> Any:
            nonlocal state
            state, made = self.function(state, item)
            return made

        return following


@dataclass(frozen=True)
class Tee(Stage[A, A]):
    """Writes a copy of each item to a writer."""

    writer: Writer


class Teeing(Step):
    """The running stage. The writer's errors end the pipe, regardless of `on_error`."""

    def __init__(self, writer: Writer, pipe: Terminated) -> None:
        self._writer = writer
        self._writing = Writing(writer, pipe)

    def run(self, block: Block) -> None:
        if block.items:
            self._writing.take(block.items)

    def finish(self) -> None:
        """Called when all items have passed."""
        self._writer.close()

    def abandon(self) -> None:
        """Called if not all items have passed."""
        self._writer._give_up()


@dataclass(frozen=True)
class _Take(Stage[A, A]):
    count: int

    def start(self) -> Step:
        return _Taking(self.count)


class _Taking(Step):
    def __init__(self, count: int) -> None:
        self.left = count
        self.is_done = count == 0

    def run(self, block: Block) -> None:
        items = block.items
        if len(items) >= self.left:
            self.is_done = True
            # If items came one at a time, later items would not have been processed.
            block.failures = [failure for failure in block.failures if block.is_after(self.left - 1, failure)]
            block.step(items[: self.left])
        self.left -= len(block.items)


@dataclass(frozen=True)
class _Skip(Stage[A, A]):
    count: int

    def start(self) -> Step:
        return _Skipping(self.count)


class _Skipping(Step):
    def __init__(self, count: int) -> None:
        self.left = count

    def run(self, block: Block) -> None:
        count = min(self.left, len(block.items))
        if count > 0:
            self.left -= count
            block.step(block.items[count:], Shifted(count))


@dataclass(frozen=True)
class Batch(Stage[A, A]):
    """A boundary between stages that passes on at most this many items at a time."""

    count: int


def map(function: Callable[[A], B]) -> Stage[A, B]:
    """Replaces each item with the result of `function` for it."""
    return _Map("map", a_function(function))


def filter(function: Callable[[A], object]) -> Stage[A, A]:
    """Keeps the items for which `function` returns true."""
    return _Filter("filter", a_function(function))


def flat_map(function: Callable[[A], Iterable[B]]) -> Stage[A, B]:
    """Replaces each item with none, one or several items: those of an iterable, but not the characters of text or
    bytes."""
    return _FlatMap("flat_map", a_function(function))


def inspect(function: Callable[[A], object]) -> Stage[A, A]:
    """Calls `function` with each item, and passes the item on."""
    return _Inspect("inspect", a_function(function))


def scan_state(initial: S, function: Callable[[S, A], tuple[S, B]]) -> Stage[A, B]:
    """Replaces each item with a value that depends on it and on the items before: `function` is called with a state and
    an item, and returns the next state and the new item. The state starts as `initial` in each pipe; if the function
    raises an exception, the state keeps its value.

        pipe(names, scan_state(1, lambda number, name: (number + 1, f"{number} {name}")), collect())
    """
    return _ScanState("scan_state", a_function(function), initial)


def tee(writer: Writer) -> Stage[Any, Any]:
    """Also writes each item to a writer, which the pipe owns like its sink. A slow writer stops the source, and a
    writer that fails ends the pipe.

    Items go through stages in batches. The writer may have received items that follow one for which a later stage
    raises an exception, or that a later `take` drops. Put `batch(1)` first to prevent this."""
    if isinstance(writer, Writer):
        return Tee("tee", writer)
    raise option_error(f"{type(writer).__name__} in tee()", "a Writer")


def take(count: int) -> Stage[Any, Any]:
    """Keeps the first `count` items; then the pipe ends and its source is closed.

    Items go through stages in batches: earlier stages may have processed items that `take` drops. Put `batch(1)` first
    to prevent this."""
    return _Take("take", _whole(count, 0))


def skip(count: int) -> Stage[Any, Any]:
    """Drops the first `count` items."""
    return _Skip("skip", _whole(count, 0))


def batch(count: int) -> Stage[Any, Any]:
    """Limits the stages after it to `count` items at a time. Items stay single items; this stage does not create
    lists."""
    return Batch("batch", _whole(count, 1))


def _whole(count: Any, least: int) -> int:
    if isinstance(count, int) and not isinstance(count, bool) and count >= least:
        return count
    raise option_error(repr(count), f"a whole number, {least} or more")
