"""Items in transit through a pipe: a list of items, and the trail back to the records that they were made from."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


class Records(Protocol):
    """The items that the source delivered in one piece."""

    @property
    def name(self) -> str | None:
        """The name of the source in errors."""

    @property
    def first_record(self) -> int:
        """The number of the first record in its source."""
        ...

    def record(self, index: int) -> Any:
        """One of the records, unchanged."""

    def offset(self, index: int) -> int | None:
        """The position of a record in the source, in bytes."""

    def line(self, index: int) -> int | None:
        """The line number of a record, if it is a line of a text."""


class Back(Protocol):
    """A step of the trail: from the index of an item to the index of the item it was made from. Processes exchange
    steps."""

    def __call__(self, place: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Shifted:
    """Items were split off: this many items were before them."""

    count: int

    def __call__(self, place: int) -> int:
        return place + self.count


@dataclass(frozen=True, slots=True)
class Origins:
    """Some items were left out, or became several; these are the indexes of the items before."""

    places: list[int]

    def __call__(self, place: int) -> int:
        return self.places[place]


@dataclass(frozen=True, slots=True)
class Failure:
    """A stage raised an exception."""

    #: The position of the failed item among those that the stage received.
    index: int
    #: The length of the trail that led to these items.
    depth: int
    stage: str
    error: Exception


def _walk(trail: tuple[Back, ...], place: int) -> int:
    for back in reversed(trail):
        place = back(place)
    return place


class Block:
    """Items that go through the stages together."""

    __slots__ = ("failures", "goes_on", "items", "records", "trail")

    def __init__(self, items: list[Any], records: Records | None, goes_on: bool, trail: tuple[Back, ...] = ()) -> None:
        self.items = items
        self.records = records
        #: Whether a failure loses only the item.
        self.goes_on = goes_on
        self.trail = trail
        self.failures: list[Failure] = []

    def record_of(self, failure: Failure) -> int:
        """The record for which a stage raised an exception."""
        return _walk(self.trail[: failure.depth], failure.index)

    def is_after(self, place: int, failure: Failure) -> bool:
        """Whether an item would have come after this failure if items came one at a time."""
        return failure.index < _walk(self.trail[failure.depth :], place)

    def step(self, items: list[Any], back: Back | None = None) -> None:
        """A block with other items in place of these."""
        self.items = items
        if back is not None:
            self.trail = (*self.trail, back)

    def pieces(self, size: Callable[[], int]) -> Blocks:
        """Cuts it into blocks of at most this many items, each with the failures before its last item."""
        start, failures = 0, self.failures
        while len(self.items) - start > (count := size()):
            piece = Block(self.items[start : start + count], self.records, self.goes_on, (*self.trail, Shifted(start)))
            start += count
            if failures:
                piece.failures = [failure for failure in failures if self.is_after(start - 1, failure)]
                failures = [failure for failure in failures if not self.is_after(start - 1, failure)]
            yield piece
        if start > 0:
            self.step(self.items[start:], Shifted(start))
        self.failures = failures
        yield self


#: Blocks in transit. Closing the generator means that the consumer needs no more.
Blocks: TypeAlias = Generator[Block, None, None]
