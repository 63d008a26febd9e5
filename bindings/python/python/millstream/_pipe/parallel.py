"""Runs stages on several workers and keeps the order.

At most twice as many chunks of items as there are workers are in progress, and their results are taken in order. So
memory is bounded, and a slow sink stops the source. A worker takes a few milliseconds per chunk."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from time import perf_counter
from typing import Any, Literal, TypeVar, overload

from .._errors import Cancelled, Error
from .._native import option_error, pipe_error
from .block import Back, Block, Blocks, Failure
from .loop import Pass, grouped
from .source import Source
from .stage import Stage, Stateless

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

#: The target time of a worker for one chunk, in seconds: much longer than passing it on takes, and short to wait for.
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
    """Runs `map`, `filter`, `flat_map` and `inspect` stages on several workers, by default one for each processor. The
    order is kept.

    Threads are for functions that wait, or compute without the interpreter lock, as numpy's do. Processes are for
    functions that compute in Python. Items, results and functions are pickled for processes, so a function must be
    importable by name from a module; it cannot be a lambda or a nested function. The workers are never forks of this
    process, because a fork of a process with threads can hang. A fork server starts them (or they are spawned, if
    `multiprocessing` is set to that start method), and they import the main module. Protect the code of a script with
    `if __name__ == "__main__":`."""
    for stage in stages:
        if not isinstance(stage, Stateless):
            raise option_error(getattr(stage, "name", repr(stage)), "map, filter, flat_map or inspect in parallel()")
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise option_error(f"workers={workers!r}", "1 or more")
    if using not in ("threads", "processes"):
        raise option_error(f"using={using!r}", '"threads" or "processes"')
    if using == "processes":
        try:
            pickle.dumps(stages)
        except Exception as error:
            raise option_error(
                f'a function that cannot be pickled in parallel(using="processes"): {error}',
                'a function that can be imported by name from a module, or using="threads"',
            ) from error
    return Parallel("parallel", stages, workers or len(os.sched_getaffinity(0)), using)


@dataclass(frozen=True, slots=True)
class _Lot:
    """The results of the workers for a chunk."""

    items: list[Any]
    trail: tuple[Back, ...]
    failures: list[Failure]
    elapsed: float


class Workers:
    """The running stages."""

    def __init__(self, parallel: Parallel[Any, Any], source: Source) -> None:
        self._parallel = parallel
        self._source_waits = source.waits
        self._name = source.name
        self._pending: deque[tuple[Block, Future[_Lot]]] = deque()
        self._size = 1
        #: The total number of seconds that the workers were busy.
        self.busy = 0.0

    def run(self, blocks: Blocks) -> Blocks:
        """Yields the blocks with the results for their items, in order."""
        pending, most = self._pending, 2 * self._parallel.workers
        executor, submit = _start(self._parallel)
        try:
            failed = None
            while True:
                # Finished results must not be delayed while the source has no data.
                while pending and (pending[0][1].done() or self._source_waits()):
                    yield self._finish()
                try:
                    block = next(blocks, None)
                except Cancelled:
                    raise
                except Exception as error:
                    # Everything before the error is delivered before the error is reported.
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
            # No stage raised an exception: a process has died, or an object could not be pickled.
            raise self._lost(block, error) from error
        self.busy += lot.elapsed
        if block.items:
            # The size grows step by step, because the time per item varies.
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
        found = f"in parallel: {type(error).__name__}: {error}"
        if isinstance(error, BrokenProcessPool):
            found += " (are its functions importable by name from a module, and is the code of the script "
            found += 'protected by if __name__ == "__main__"?)'
        return pipe_error("stage_failed", self._name, record, found=found)


def _start(parallel: Parallel[Any, Any]) -> tuple[Executor, Callable[[list[Any], bool], Future[_Lot]]]:
    if parallel.using == "threads":
        threads = ThreadPoolExecutor(parallel.workers, "millstream worker")
        return threads, lambda items, goes_on: threads.submit(_work, parallel.stages, items, goes_on)
    processes = ProcessPoolExecutor(parallel.workers, _start_method(), initializer=_set_up, initargs=(parallel.stages,))
    return processes, lambda items, goes_on: processes.submit(_work_here, items, goes_on)


def _start_method() -> Any:
    """A way to start processes without forking a process that has threads: a fork inherits locks, but not the
    threads."""
    methods = multiprocessing.get_all_start_methods()
    spawns = multiprocessing.get_start_method(allow_none=True) == "spawn" or "forkserver" not in methods
    return multiprocessing.get_context("spawn" if spawns else "forkserver")


def _work(stages: tuple[Stateless[Any, Any], ...], items: list[Any], goes_on: bool) -> _Lot:
    began = perf_counter()
    block = Block(items, None, goes_on)
    for group in grouped(stages):
        Pass(group).run(block)
    return _Lot(block.items, block.trail, block.failures, perf_counter() - began)


#: The stages of a worker process, which it receives once.
_stages: tuple[Stateless[Any, Any], ...] = ()


def _set_up(stages: tuple[Stateless[Any, Any], ...]) -> None:
    global _stages
    _stages = stages
    # The parent process gets the signal too, and stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Without this, the worker would never end if the parent is killed.
    threading.Thread(target=_end_with_parent, name="millstream parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work_here(items: list[Any], goes_on: bool) -> _Lot:
    lot = _work(_stages, items, goes_on)
    portable = [replace(failure, error=_portable(failure.error)) for failure in lot.failures]
    return _Lot(lot.items, lot.trail, portable, lot.elapsed)


def _portable(error: Exception) -> Exception:
    """Returns the error in a form for another process, with its traceback as a note."""
    error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        portable = RuntimeError(repr(error))
        portable.__notes__ = error.__notes__
        return portable
    return error
