"""The sources of a pipe's items: a reader's batches, any iterable, or several of these in turn."""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Generic, TypeVar

from .._command import CommandEnd
from .._errors import EncodingError
from .._native import Batch, Reader, option_error
from .block import Block, Blocks

A = TypeVar("A")

#: The maximum number of items taken at a time. The stages' results for them stay in the processor's cache.
_MOST = 4096
#: For an iterable: the maximum time for that in seconds.
_LONGEST = 0.001


class Source:
    """A running source."""

    #: Its name in error messages.
    name: str | None = None
    #: The terminator that is written after each record.
    terminator = b"\n"

    def blocks(self, goes_on: bool) -> Blocks:
        """Yields everything, block by block. An error is raised after the items before it."""
        raise NotImplementedError

    def waits(self) -> bool:
        """Whether the next block requires a wait, as far as known."""
        return False

    def ends(self) -> list[CommandEnd]:
        """How its commands ended."""
        return []

    def cancel(self) -> None:
        """Interrupts a wait of another thread."""

    def close(self) -> None:
        """Closes the source, at any position."""


@dataclass(frozen=True, slots=True)
class _BatchRecords:
    batch: Batch[Any]
    name: str | None

    @property
    def first_record(self) -> int:
        return self.batch.first_record

    def record(self, index: int) -> Any:
        return self.batch[index]

    def offset(self, index: int) -> int:
        return self.batch.offset + int(self.batch.offsets[index])

    def line(self, index: int) -> int | None:
        first = self.batch.first_line
        return None if first is None else first + index


class ReaderSource(Source):
    """Batches as the reader delivers them: what is available, without waiting for more."""

    def __init__(self, reader: Reader[Any]) -> None:
        self._reader = reader
        self.name = reader.name
        self.terminator = reader.terminator

    def blocks(self, goes_on: bool) -> Blocks:
        for batch in self._reader.batches(_MOST):
            records = _BatchRecords(batch, self.name)
            try:
                items = batch.to_list()
            except EncodingError as error:
                right = (error.record or 0) - batch.first_record
                yield Block([batch[index] for index in range(right)], records, goes_on)
                raise
            yield Block(items, records, goes_on)

    def waits(self) -> bool:
        waits = self._reader.waits()
        if waits is None and (fd := self._reader.waits_for()) is not None:
            # The first bytes of the iterable, which decide how to continue.
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            return not poll.poll(0)
        return bool(waits)

    def ends(self) -> list[CommandEnd]:
        return self._reader.ends

    def cancel(self) -> None:
        self._reader.cancel()

    def close(self) -> None:
        self._reader.close()


@dataclass(frozen=True, slots=True)
class _ListRecords:
    first_record: int
    items: list[Any]
    name: str | None = None

    def record(self, index: int) -> Any:
        return self.items[index]

    def offset(self, index: int) -> None:
        return None

    def line(self, index: int) -> None:
        return None


class IterableSource(Source):
    """The items of an iterable, as many at once as it yields in a millisecond, so that none is delayed."""

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterable = iterable

    def blocks(self, goes_on: bool) -> Blocks:
        items, done, size = iter(self._iterable), 0, 1
        while True:
            taken: list[Any] = []
            began = perf_counter()
            try:
                taken.extend(islice(items, size))
            except Exception:
                yield Block(taken, _ListRecords(done, taken), goes_on)
                raise
            if not taken:
                return
            yield Block(taken, _ListRecords(done, taken), goes_on)
            done += len(taken)
            size = min(2 * size, _MOST) if perf_counter() - began < _LONGEST else max(1, size // 2)

    def close(self) -> None:
        close = getattr(self._iterable, "close", None)
        if close is not None:
            close()


class MergedSource(Source):
    """Several sources, which take turns, one block at a time. A source that would require a wait is skipped while
    another would not."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        #: The sources that have not ended; the next one is first.
        self._running = deque(sources)
        if sources:
            self.terminator = sources[0].terminator

    def blocks(self, goes_on: bool) -> Blocks:
        running, blocks = self._running, {source: source.blocks(goes_on) for source in self._sources}
        while running:
            running.rotate(-next((turn for turn, source in enumerate(running) if not source.waits()), 0))
            block = next(blocks[running[0]], None)
            if block is None:
                running.popleft()
            else:
                running.rotate(-1)
                yield block

    def waits(self) -> bool:
        return bool(self._running) and all(source.waits() for source in self._running)

    def ends(self) -> list[CommandEnd]:
        return [end for source in self._sources for end in source.ends()]

    def cancel(self) -> None:
        for source in self._sources:
            source.cancel()

    def close(self) -> None:
        failed: Exception | None = None
        for source in self._sources:
            try:
                source.close()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed


class Merged(Generic[A]):
    """Sources that a pipe treats as one. `merge` creates this."""

    def __init__(self, sources: Sequence[Iterable[A]]) -> None:
        self.source = MergedSource([source_of(source) for source in sources])

    def __iter__(self) -> Iterator[A]:
        for block in self.source.blocks(goes_on=False):
            yield from block.items


def merge(*sources: Iterable[A]) -> Merged[A]:
    """Combines the items of several sources for a pipe: `pipe(merge(a, b), ...)`.

    The sources take turns, one batch at a time. A reader without data is skipped while another source has some; if all
    require a wait, the pipe waits for the next one in turn. The items of each source stay in order, and a record's
    number is its number in its own source. The end means that all sources succeeded; a source that fails ends the
    pipe."""
    return Merged(sources)


def source_of(source: Any) -> Source:
    """Returns the source as an object that a pipe can read."""
    if isinstance(source, Reader):
        return ReaderSource(source)
    if isinstance(source, Merged):
        return source.source
    if isinstance(source, (str, bytes)):
        raise option_error(f"{type(source).__name__} as a source", "a reader, such as open(path), or another iterable")
    if isinstance(source, Iterable):
        return IterableSource(source)
    raise option_error(f"{type(source).__name__} as a source", "a reader or another iterable")
