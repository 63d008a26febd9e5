"""A command in the middle of a pipe.

The stages before the command are a pipe of their own. The core's thread, which writes the command's standard input,
takes the items from it; the caller's thread reads the command's output."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

from .._command import CommandEnd
from .._open import command
from .block import Blocks
from .sink import joined
from .source import ReaderSource, Source
from .stage import Stage
from .summary import StageStats

if TYPE_CHECKING:
    from typing import Unpack

    from .._reader_options import CommandOptions
    from .._types import Argument
    from .chain import Pipe

#: How long the stages before a command may take to notice that the pipe has ended, in seconds.
_PATIENCE = 2.0


@dataclass(frozen=True)
class Through(Stage[Any, Any]):
    """Sends items through a command."""

    argv: tuple[str | bytes | os.PathLike[str], ...]
    options: dict[str, Any]


class ThroughSource(Source):
    """The output of a command whose input is another pipe."""

    def __init__(self, before: Pipe[Any], stage: Through, stats: StageStats) -> None:
        self.before = before
        self._stage = stage
        self._stats = stats
        self._feed = _Feed(before)
        self._output: ReaderSource | None = None

    def blocks(self, goes_on: bool) -> Blocks:
        options = {**self._stage.options, "stdin": self._feed}
        self._output = ReaderSource(command(self._stage.argv, **options))
        self.name, self.terminator = self._output.name, self._output.terminator
        for block in self._output.blocks(goes_on):
            self._stats.items += len(block.items)
            yield block

    def waits(self) -> bool:
        return self._output is not None and self._output.waits()

    def ends(self) -> list[CommandEnd]:
        return self.before.summary.commands + (self._output.ends() if self._output else [])

    def cancel(self) -> None:
        self.before.cancel()
        if self._output:
            self._output.cancel()

    def close(self) -> None:
        try:
            if self._output:
                self._output.close()
        finally:
            self._feed.stop()


class _Feed(Iterator[bytes | str]):
    """The items before the command, as its standard input."""

    def __init__(self, before: Pipe[Any]) -> None:
        self._before = before
        self._pieces = self._run()
        self._running = Lock()
        self._is_stopped = False

    def _run(self) -> Generator[bytes | str, None, None]:
        for items in self._before.batches():
            yield joined(items, self._before.terminator)

    def __next__(self) -> bytes | str:
        with self._running:
            if self._is_stopped:
                raise StopIteration
            return next(self._pieces)

    def stop(self) -> None:
        """Closes the pipe before the command. If its thread does not leave it in time, for example because the source
        is an iterable that waits, the thread does that later."""
        self._is_stopped = True
        if not self._running.acquire(blocking=False):
            self._before.cancel()
            if not self._running.acquire(timeout=_PATIENCE):
                return
        try:
            self._pieces.close()
            self._before.close()
        finally:
            self._running.release()


@overload
def through(
    argv: Sequence[Argument], *, encoding: None = None, **options: Unpack[CommandOptions]
) -> Stage[Any, bytes]: ...
@overload
def through(argv: Sequence[Argument], *, encoding: str, **options: Unpack[CommandOptions]) -> Stage[Any, str]: ...
def through(
    argv: Sequence[Argument], *, encoding: str | None = None, **options: Unpack[CommandOptions]
) -> Stage[Any, Any]:
    """Sends the items to a command, each followed by a line feed, and continues with the records of its output.

    The options are those of `command`, except `stdin`. The stages before the command run on another thread. A slow
    command stops them, and a command that ends early closes the source. If they or the source raise an exception, the
    command gets the end of its input, and the pipe raises the exception after the records of the command's output. If
    the command itself fails, the pipe raises `CommandFailed`. Errors of later stages name the record of the output.

        pipe(open("names.txt"), through(["sort", "-u"]), map(bytes.upper), collect())
    """
    if isinstance(argv, (str, bytes)):
        raise TypeError("a command is a sequence of words, such as ['sort', '-u']")
    if "stdin" in options:
        raise TypeError("unknown option stdin: the pipe is the standard input of the command")
    return Through("through", tuple(argv), {"encoding": encoding, **options})
