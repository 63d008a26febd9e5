"""The path from a source through stages, one list of items at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from operator import itemgetter
from threading import Event, Lock
from time import perf_counter
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, overload

from .._errors import Error
from .._native import Writer, option_error, pipe_error
from .block import Block, Blocks, Failure
from .loop import Loop, grouped
from .parallel import Parallel, Workers
from .sink import Sink, Sinking, Writing
from .source import source_of
from .stage import Batch, Each, Stage, Step, Tee, Teeing, Timed
from .summary import StageStats, Summary
from .through import Through, ThroughSource

R = TypeVar("R")
T = TypeVar("T")

#: What to do with a record that a stage raises for: end the pipe; leave the record out and count it; or also pass it to
#: a writer, or to a function together with the error.
OnError: TypeAlias = Literal["stop", "skip"] | Writer | Callable[[Any, Error], object]


class Pipe(Generic[T]):
    """A source and stages. A pipe runs once: as an iterator of items, in `batches`, or into a sink with `run`."""

    def __init__(self, source: Any, stages: tuple[Any, ...], on_error: OnError) -> None:
        for stage in stages:
            if not isinstance(stage, Stage):
                raise option_error(f"{type(stage).__name__} in a pipe", "a stage, such as map(f), or a sink at the end")
        if not (on_error in ("stop", "skip") or isinstance(on_error, Writer) or callable(on_error)):
            raise option_error(f"on_error={on_error!r}", '"stop", "skip", a Writer or a function')
        self._on_error = on_error
        self._owns_on_error = True
        self._source = source_of(source)
        #: Held while a failed record is handled: the stages before and after a command run on different threads.
        self._handling = Lock()
        stats: list[StageStats] = []
        commands = [place for place, stage in enumerate(stages) if isinstance(stage, Through)]
        if commands:
            place, command = commands[-1], stages[commands[-1]]
            before: Pipe[Any] = Pipe(source, stages[:place], on_error)
            before._owns_on_error, before._handling = False, self._handling
            stats, stages = [*before.summary.stages, StageStats(command.name)], stages[place + 1 :]
            self._source = ThroughSource(before, command, stats[-1])
        self._own_stats = [StageStats(stage.name) for stage in stages]
        self.summary: Summary = Summary(stages=stats + self._own_stats)
        self._stages = stages
        self._tees: list[Teeing] = []
        self._cancelled = Event()
        self._batches = self._run()

    @property
    def terminator(self) -> bytes:
        """The bytes that end an item when it is written."""
        return self._source.terminator

    def __iter__(self) -> Iterator[T]:
        """The items."""
        for items in self._batches:
            yield from items

    def batches(self) -> Iterator[list[T]]:
        """Yields lists of items, as many at once as are available."""
        return self._batches

    @overload
    def run(self) -> Summary: ...
    @overload
    def run(self, sink: Writer) -> Summary: ...
    @overload
    def run(self, sink: Sink[T, R]) -> R: ...
    def run(self, sink: Sink[T, Any] | Writer | None = None) -> Any:
        """Runs to the end and returns the result of the sink; for a writer, the summary."""
        sinking: Sinking[Any] | None = None
        if isinstance(sink, Writer):
            sinking = Writing(sink, self)
        elif sink is not None:
            sinking = sink.start()
        try:
            for items in self._batches:
                if sinking is not None:
                    sinking.take(items)
        except BaseException as error:
            self.close()
            if sinking is not None:
                sinking.abandon(error)
            raise
        return self.summary if sinking is None else sinking.finish(self.summary)

    def cancel(self) -> None:
        """Stops the pipe from another thread: the pipe raises `Cancelled`, at the latest after processing one batch."""
        self._cancelled.set()
        self._source.cancel()

    def close(self) -> None:
        """Stops at the current position and closes the source. Errors of closing are ignored."""
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _run(self) -> Generator[list[T], None, None]:
        began, summary = perf_counter(), self.summary
        parts = self._parts()
        try:
            for block in parts[-1]:
                if block.items:
                    summary.items += len(block.items)
                    yield block.items
                self._deal_with(block)
                if self._cancelled.is_set():
                    raise pipe_error("cancelled", self._source.name)
            _close(parts)
            self._source.close()
            for tee in self._tees:
                tee.finish()
        except BaseException:
            # The error that ended the pipe is the one to report.
            try:
                _close(parts)
                self._source.close()
            except Exception:
                pass
            for tee in self._tees:
                tee.abandon()
            raise
        finally:
            summary.elapsed = perf_counter() - began
            summary.commands = self._source.ends()
            if isinstance(self._source, ThroughSource):
                before = self._source.before.summary
                summary.records, summary.failed = before.records, summary.failed + before.failed
            if isinstance(self._on_error, Writer) and self._owns_on_error:
                self._on_error.close()

    def _parts(self) -> list[Blocks]:
        """The traversal: each part takes blocks from the part before it."""
        parts, steps = [self._read()], list[Step]()
        groups, stats = list(grouped(self._stages)), iter(self._own_stats)

        def end_steps() -> None:
            if steps:
                parts.append(self._run_steps(parts[-1], steps.copy()))
                steps.clear()

        for number, group in enumerate(groups, 1):
            stage, own = group[0], [next(stats) for _ in group]
            if isinstance(stage, Each):
                steps.append(Loop(group, own, is_last=number == len(groups)))
            elif isinstance(stage, Parallel):
                end_steps()
                parts.append(self._parallel(parts[-1], stage, own[0]))
            elif isinstance(stage, Batch):
                end_steps()
                parts.append(_cut(parts[-1], stage.count, own[0]))
            elif isinstance(stage, Tee):
                self._tees.append(tee := Teeing(stage.writer, self))
                steps.append(Timed(tee, own[0]))
            else:
                steps.append(Timed(stage.start(), own[0]))
        end_steps()
        return parts

    def _read(self) -> Blocks:
        blocks = self._source.blocks(self._on_error != "stop")
        while True:
            began = perf_counter()
            block = next(blocks, None)
            self.summary.source_waited += perf_counter() - began
            if block is None:
                return
            self.summary.records += len(block.items)
            yield block

    def _run_steps(self, blocks: Blocks, steps: list[Step]) -> Blocks:
        """Runs stages one after another, each on all items of a block."""
        while not any(step.is_done for step in steps):
            block = next(blocks, None)
            if block is None:
                return
            for step in steps:
                step.run(block)
            yield block
        self.summary.ended_early = True

    def _parallel(self, blocks: Blocks, stage: Parallel[Any, Any], stats: StageStats) -> Blocks:
        workers = Workers(stage, self._source)
        for block in workers.run(blocks):
            stats.items += len(block.items)
            stats.time = workers.busy
            yield block

    def _deal_with(self, block: Block) -> None:
        """Handles the records for which stages raised exceptions."""
        if not block.failures:
            return
        if self._on_error == "stop":
            # The last failure is the first in the stream: each later stage can only have failed at an earlier item.
            raise self._error(block, block.failures[-1])
        reported: set[int] = set()
        for index, failure in sorted(
            ((block.record_of(failure), failure) for failure in block.failures), key=itemgetter(0)
        ):
            if index not in reported:
                reported.add(index)
                with self._handling:
                    self.summary.failed += 1
                    self._put_aside(block, failure)

    def _put_aside(self, block: Block, failure: Failure) -> None:
        if self._on_error == "skip" or block.records is None:
            return
        record = block.records.record(block.record_of(failure))
        if isinstance(self._on_error, Writer):
            Writing(self._on_error, self).take([record])
        elif callable(self._on_error):
            self._on_error(record, self._error(block, failure))

    def _error(self, block: Block, failure: Failure) -> Error:
        error, name, record, offset, line = failure.error, self._source.name, None, None, None
        if block.records is not None:
            index = block.record_of(failure)
            name = block.records.name
            record = block.records.first_record + index
            offset = block.records.offset(index)
            line = block.records.line(index)
        if isinstance(error, Error):
            # The block stays unchanged.
            error.record = record if error.record is None else error.record
            return error
        found = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        told: Error = pipe_error("stage_failed", name, record, offset, line, f"in {failure.stage}: {found}")
        told.__cause__ = error
        return told


def _cut(blocks: Blocks, count: int, stats: StageStats) -> Blocks:
    for block in blocks:
        for piece in block.pieces(lambda: count):
            stats.items += len(piece.items)
            yield piece


def _close(parts: list[Blocks]) -> None:
    """Stops the traversal, starting at its end, so that no part works for a consumer that has stopped."""
    for part in reversed(parts):
        part.close()
