"""Stages on several workers, with the order kept.

Lots of items go to the workers, at most twice as many as there are workers, and their results are taken in order: so
memory is bounded, and a slow sink stops the source. A lot is what a worker needs some milliseconds for.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, TypeVar, overload

from .._errors import Cancelled, Error
from .._native import option_error, pipe_error
from .block import Back, Block, Blocks, Failure
from .source import Source
from .stage import Stage, Stateless, Step

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

#: How long a worker is to be busy with a lot, in seconds: long against handing it over, short against waiting for it.
_LOT_TIME = 0.01
_LARGEST_LOT = 4096


@dataclass(frozen=True)
class Parallel(Stage[A, B]):
    """Stages on several workers."""

    stages: tuple[Stateless[Any, Any], ...]
    workers: int
    using: Literal["threads", "processes"]


@overload
def parallel(
    first: Stage[A, B], /, *, workers: int | None = None, using: Literal["threads", "processes"] = "threads"
) -> Stage[A, B]: ...
@overload
def parallel(
    first: Stage[A, B],
    second: Stage[B, C],
    /,
    *,
    workers: int | None = None,
    using: Literal["threads", "processes"] = "threads",
) -> Stage[A, C]: ...
@overload
def parallel(
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    /,
    *,
    workers: int | None = None,
    using: Literal["threads", "processes"] = "threads",
) -> Stage[A, D]: ...
@overload
def parallel(
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    /,
    *more: Stage[Any, Any],
    workers: int | None = None,
    using: Literal["threads", "processes"] = "threads",
) -> Stage[A, Any]: ...
def parallel(
    *stages: Any, workers: int | None = None, using: Literal["threads", "processes"] = "threads"
) -> Stage[Any, Any]:
    """Runs `map`, `filter`, `flat_map` and `inspect` stages on several workers, as many as there are processors unless
    told otherwise. The order is kept.

    Threads are for functions that wait, or compute without the interpreter's lock, as numpy's do. Processes are for
    functions that compute in Python; items, results and (unless processes are forked) functions are pickled for them.
    """
    for stage in stages:
        if not isinstance(stage, Stateless):
            raise option_error(getattr(stage, "name", repr(stage)), "map, filter, flat_map or inspect in parallel()")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise option_error(f"workers={workers!r}", "1 or more")
    if using not in ("threads", "processes"):
        raise option_error(f"using={using!r}", '"threads" or "processes"')
    return Parallel("parallel", stages, workers or len(os.sched_getaffinity(0)), using)


@dataclass(frozen=True, slots=True)
class _Lot:
    """What workers have made of a lot."""

    items: list[Any]
    trail: tuple[Back, ...]
    failures: list[Failure]
    elapsed: float


class Workers:
    """The stages at work."""

    def __init__(self, parallel: Parallel[Any, Any], source: Source) -> None:
        self._parallel = parallel
        self._source_waits = source.waits
        self._name = source.name
        self._pending: deque[tuple[Block, Future[_Lot]]] = deque()
        self._size = 1
        #: Seconds that all workers were busy.
        self.busy = 0.0

    def run(self, blocks: Blocks) -> Blocks:
        """The blocks with what became of their items, in order."""
        pending, most = self._pending, 2 * self._parallel.workers
        executor, submit = _start(self._parallel)
        try:
            failed = None
            while True:
                # What is ready is not to be late because the source has nothing.
                while pending and (pending[0][1].done() or self._source_waits()):
                    yield self._finish()
                try:
                    block = next(blocks, None)
                except Cancelled:
                    raise
                except Exception as error:
                    # All that came before it comes through before it is told.
                    block, failed = None, error
                if block is None:
                    break
                for piece in block.pieces(lambda: self._size):
                    while len(pending) >= most:
                        yield self._finish()
                    pending.append((piece, submit(piece.items, piece.goes_on)))
            while pending:
                yield self._finish()
            if failed is not None:
                raise failed
        finally:
            executor.shutdown(wait=True, cancel_futures=True)

    def _finish(self) -> Block:
        block, future = self._pending.popleft()
        try:
            lot = future.result()
        except Exception as error:
            # No stage has raised: a process has died, or something could not be pickled.
            raise self._lost(block, error) from error
        self.busy += lot.elapsed
        if block.items:
            # It grows step by step, since one item is not as quick as the next.
            fitting = int(len(block.items) * _LOT_TIME / max(lot.elapsed, 1e-9))
            self._size = max(1, min(fitting, 2 * self._size, _LARGEST_LOT))
        for failure in lot.failures:
            block.failures.append(replace(failure, depth=len(block.trail) + failure.depth))
        block.items = lot.items
        block.trail += lot.trail
        return block

    def _lost(self, block: Block, error: Exception) -> Error:
        record = None
        if block.records is not None and block.items:
            record = block.records.first_record + block.record_of(Failure(0, len(block.trail), "parallel", error))
        return pipe_error("stage_failed", self._name, record, None, f"in parallel: {type(error).__name__}: {error}")


def _start(parallel: Parallel[Any, Any]) -> tuple[Executor, Callable[[list[Any], bool], Future[_Lot]]]:
    if parallel.using == "threads":
        threads = ThreadPoolExecutor(parallel.workers, "millstream worker")
        return threads, lambda items, goes_on: threads.submit(_work, parallel.stages, items, goes_on)
    processes = ProcessPoolExecutor(parallel.workers, initializer=_set_up, initargs=(parallel.stages,))
    return processes, lambda items, goes_on: processes.submit(_work_here, items, goes_on)


def _work(stages: tuple[Step, ...], items: list[Any], goes_on: bool) -> _Lot:
    began = perf_counter()
    block = Block(items, None, goes_on)
    for stage in stages:
        stage.run(block)
    return _Lot(block.items, block.trail, block.failures, perf_counter() - began)


#: Of a worker process: its stages, which it is given once.
_stages: tuple[Step, ...] = ()


def _set_up(stages: tuple[Step, ...]) -> None:
    global _stages
    _stages = stages
    # The process that has started us hears it, too, and ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work_here(items: list[Any], goes_on: bool) -> _Lot:
    lot = _work(_stages, items, goes_on)
    portable = [replace(failure, error=_portable(failure.error)) for failure in lot.failures]
    return _Lot(lot.items, lot.trail, portable, lot.elapsed)


def _portable(error: Exception) -> Exception:
    """The same as another process can have it, with its traceback as a note."""
    error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        portable = RuntimeError(repr(error))
        portable.__notes__ = error.__notes__
        return portable
    return error
