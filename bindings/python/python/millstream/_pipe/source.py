"""Where a pipe's items come from: a reader's batches, or what any iterable yields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

from .._errors import EncodingError
from .._native import Batch, Reader
from .block import Block, Blocks

#: Of an iterable: how many items are taken at once at most, and how long that may take, in seconds.
_MOST = 1024
_LONGEST = 0.001


class Source:
    """A source at work."""

    #: What errors call it.
    name: str | None = None
    #: What ends a record, where it is written again.
    terminator = b"\n"

    def blocks(self, goes_on: bool) -> Blocks:
        """All there is, block by block. An error comes behind the items before it."""
        raise NotImplementedError

    def waits(self) -> bool:
        """Whether the next block has to be waited for."""
        return False

    def cancel(self) -> None:
        """Ends a wait of another thread."""

    def close(self) -> None:
        """Leaves it, wherever it is."""


@dataclass(frozen=True, slots=True)
class _BatchRecords:
    batch: Batch[Any]

    @property
    def first_record(self) -> int:
        return self.batch.first_record

    def record(self, index: int) -> Any:
        return self.batch[index]

    def offset(self, index: int) -> int:
        return self.batch.offset + int(self.batch.offsets[index])


class ReaderSource(Source):
    """Batches as the reader has them: what is there, without waiting for more."""

    def __init__(self, reader: Reader[Any]) -> None:
        self._reader = reader
        self.name = reader.name
        self.terminator = reader.terminator

    def blocks(self, goes_on: bool) -> Blocks:
        for batch in self._reader.batches():
            records = _BatchRecords(batch)
            try:
                items = batch.to_list()
            except EncodingError as error:
                right = (error.record or 0) - batch.first_record
                yield Block([batch[index] for index in range(right)], records, goes_on)
                raise
            yield Block(items, records, goes_on)

    def waits(self) -> bool:
        return self._reader.waits()

    def cancel(self) -> None:
        self._reader.cancel()

    def close(self) -> None:
        self._reader.close()


@dataclass(frozen=True, slots=True)
class _ListRecords:
    first_record: int
    items: list[Any]

    def record(self, index: int) -> Any:
        return self.items[index]

    def offset(self, index: int) -> None:
        return None


class IterableSource(Source):
    """Items of an iterable: so many at once as it yields in a millisecond, so that none is late."""

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
