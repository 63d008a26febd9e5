"""`pipe` combines a source, stages and a sink in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from .._native import Writer
from .chain import OnError, Pipe
from .sink import Sink
from .stage import Stage
from .summary import Summary

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
R = TypeVar("R")


# One signature for each number of stages: without a sink, into a writer, and into any other sink.
@overload
def pipe(source: Iterable[A], /, *, on_error: OnError = "stop") -> Pipe[A]: ...
@overload
def pipe(source: Iterable[A], sink: Writer, /, *, on_error: OnError = "stop") -> Summary: ...
@overload
def pipe(source: Iterable[A], sink: Sink[A, R], /, *, on_error: OnError = "stop") -> R: ...
@overload
def pipe(source: Iterable[A], first: Stage[A, B], /, *, on_error: OnError = "stop") -> Pipe[B]: ...
@overload
def pipe(source: Iterable[A], first: Stage[A, B], sink: Writer, /, *, on_error: OnError = "stop") -> Summary: ...
@overload
def pipe(source: Iterable[A], first: Stage[A, B], sink: Sink[B, R], /, *, on_error: OnError = "stop") -> R: ...
@overload
def pipe(source: Iterable[A], first: Stage[A, B], second: Stage[B, C], /, *, on_error: OnError = "stop") -> Pipe[C]: ...
@overload
def pipe(
    source: Iterable[A], first: Stage[A, B], second: Stage[B, C], sink: Writer, /, *, on_error: OnError = "stop"
) -> Summary: ...
@overload
def pipe(
    source: Iterable[A], first: Stage[A, B], second: Stage[B, C], sink: Sink[C, R], /, *, on_error: OnError = "stop"
) -> R: ...
@overload
def pipe(
    source: Iterable[A], first: Stage[A, B], second: Stage[B, C], third: Stage[C, D], /, *, on_error: OnError = "stop"
) -> Pipe[D]: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    sink: Writer,
    /,
    *,
    on_error: OnError = "stop",
) -> Summary: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    sink: Sink[D, R],
    /,
    *,
    on_error: OnError = "stop",
) -> R: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    /,
    *,
    on_error: OnError = "stop",
) -> Pipe[E]: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    sink: Writer,
    /,
    *,
    on_error: OnError = "stop",
) -> Summary: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    sink: Sink[E, R],
    /,
    *,
    on_error: OnError = "stop",
) -> R: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    fifth: Stage[E, F],
    /,
    *,
    on_error: OnError = "stop",
) -> Pipe[F]: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    fifth: Stage[E, F],
    sink: Writer,
    /,
    *,
    on_error: OnError = "stop",
) -> Summary: ...
@overload
def pipe(
    source: Iterable[A],
    first: Stage[A, B],
    second: Stage[B, C],
    third: Stage[C, D],
    fourth: Stage[D, E],
    fifth: Stage[E, F],
    sink: Sink[F, R],
    /,
    *,
    on_error: OnError = "stop",
) -> R: ...
@overload
def pipe(source: Iterable[Any], /, *parts: Any, on_error: OnError = "stop") -> Any: ...
def pipe(source: Iterable[Any], /, *parts: Any, on_error: OnError = "stop") -> Any:
    """Sends the records of a source through stages into a sink, and returns the result of the sink.

    The source is a reader, any iterable, a pipe without a sink, or several combined with `merge`; the sink is a
    `Writer`, or made by `for_each`, `collect`, `count` or `fold`. Without a sink, the result is a `Pipe`, which you can
    iterate over or run.

    The pipe owns its source, its sink and the writers of `tee`: it closes the source and finishes the others, or aborts
    them after an error. An exception in a stage becomes the cause of a `StageFailed` with the record's number; earlier
    results have reached the sink."""
    if parts and isinstance(parts[-1], (Sink, Writer)):
        return Pipe[Any](source, parts[:-1], on_error).run(parts[-1])
    return Pipe[Any](source, parts, on_error)
