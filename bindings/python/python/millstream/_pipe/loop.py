"""Consecutive stages as one loop: each item passes through all of them before the next one does.

The loop is generated for the stages. It is the code that a program without a pipe contains:

    for x in source:
        x = f0(x)
        if not f1(x): continue
        made.append(x)

So the stages cost as much as calling their functions, and the objects that they create for an item are freed before the
next item. With a list of items between the stages, a pipe took up to half as much time again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import length_hint
from time import perf_counter
from types import FunctionType
from typing import Any

from .block import Block, Failure, Origins
from .stage import MAP, Each, Stage, Step, several
from .summary import StageStats

#: One of so many blocks passes through the stages one by one, which shows the share of each in their common time.
_SAMPLED = 32


def grouped(stages: Iterable[Stage[Any, Any]]) -> Iterator[list[Any]]:
    """The stages in groups: those that one loop can run, or a single other one.

    One stage of a loop may change the number of items, so that the number of results of each is known; if a failure
    could lose only some results of an item, it is the last one."""
    group: list[Any] = []
    for stage in stages:
        if group and not (isinstance(stage, Each) and isinstance(group[0], Each) and _fits(group, stage)):
            yield group
            group = []
        group.append(stage)
    if group:
        yield group


def _fits(group: list[Each[Any, Any]], stage: Each[Any, Any]) -> bool:
    return group[-1].changes != "spreads" and not (stage.changes and any(one.changes for one in group))


class Loop(Step):
    """The running stages of a group."""

    #: The number of blocks so far.
    turn = 0

    def __init__(self, group: Sequence[Each[Any, Any]], stats: Sequence[StageStats], *, is_last: bool) -> None:
        functions = [stage.start_function() for stage in group]
        self._stats = stats
        self._whole = Pass(group, functions, is_last=is_last)
        self._single = [Pass([stage], [function]) for stage, function in zip(group, functions, strict=True)]
        self._shares = [1 / len(group)] * len(group)

    def run(self, block: Block) -> None:
        began = perf_counter()
        if len(self._stats) > 1 and self.turn % _SAMPLED == 0:
            counts, times = list[int](), list[float]()
            for one in self._single:
                counts += one.run(block)
                times.append(perf_counter() - began - sum(times))
            self._shares = [time / sum(times) for time in times]
        else:
            counts = self._whole.run(block)
        self.turn += 1
        elapsed = perf_counter() - began
        for stats, count, share in zip(self._stats, counts, self._shares, strict=True):
            stats.items += count
            stats.time += share * elapsed


class Pass:
    """The generated loop of some stages."""

    def __init__(
        self,
        stages: Sequence[Each[Any, Any]],
        functions: list[Callable[[Any], Any]] | None = None,
        *,
        is_last: bool = False,
    ) -> None:
        self._names = [stage.name for stage in stages]
        self._functions = functions or [stage.start_function() for stage in stages]
        self._is_last = is_last
        #: The number of stages before the one that changes the number of items.
        self._before = next((place for place, stage in enumerate(stages) if stage.changes), len(stages))
        self._tracks = not is_last and self._before < len(stages)
        #: A single function that is not Python code: `map` is faster than a loop then.
        self._is_map = [stage.line for stage in stages] == [MAP] and not isinstance(self._functions[0], FunctionType)
        self._loop = _compiled(tuple(stage.line for stage in stages), self._tracks)

    def run(self, block: Block) -> list[int]:
        """Replaces the items by the results, and returns how many results each stage had. Items for which a function
        raises an exception, and items after the first of them unless the pipe continues, are dropped."""
        items, made, origins, wrong = block.items, list[Any](), list[int](), list[int]()
        failed = [0] * len(self._names)
        rest = iter(items)
        source = enumerate(rest) if self._tracks else rest
        count = len(items)
        while True:
            try:
                if self._is_map:
                    made.extend(map(self._functions[0], rest))
                    if len(made) + len(wrong) < count:
                        # `map` took StopIteration for the end of the items.
                        raise RuntimeError("a stage's function raised StopIteration")
                else:
                    self._loop(source, made, origins, *self._functions)
                break
            except Exception as error:
                # The second entry of the traceback is the generated loop, which has one line for each stage.
                entry: Any = error.__traceback__
                stage = 0 if self._is_map else entry.tb_next.tb_lineno - _FIRST_LINE
                place = len(items) - length_hint(rest) - 1
                block.failures.append(Failure(place, len(block.trail), self._names[stage], error))
                wrong.append(place)
                failed[stage] += 1
                if not block.goes_on:
                    count = place + 1
                    break
        if wrong and not self._tracks and not self._is_last:
            origins = sorted(set(range(count)).difference(wrong))
        block.step(made, Origins(origins) if self._tracks or origins else None)
        if not wrong:
            return [count] * self._before + [len(made)] * (len(failed) - self._before)
        return [
            count - sum(failed[: stage + 1]) if stage < self._before else len(made) + sum(failed[stage + 1 :])
            for stage in range(len(failed))
        ]


#: The line of the first stage in a generated loop.
_FIRST_LINE = 3


@lru_cache
def _compiled(lines: tuple[str, ...], tracks: bool) -> Callable[..., None]:
    """The loop for stages with these lines. If it tracks, it also collects the place of each result's item."""
    names = [f"f{number}" for number in range(len(lines))]
    body = [f"        {line.format(f=name)}" for line, name in zip(lines, names, strict=True)]
    indent = " " * (12 if lines[-1].endswith(":") else 8)
    if lines[-1] == MAP:
        body[-1] = f"{indent}made.append({names[-1]}(x))"
    else:
        body.append(f"{indent}made.append(x)")
    if tracks:
        body.append(f"{indent}origins.append(place)")
    head = [
        f"def loop(source, made, origins, {', '.join(names)}):",
        f"    for {'place, ' if tracks else ''}x in source:",
    ]
    defined: dict[str, Any] = {"several": several}
    exec(compile("\n".join(head + body), "<stages of a pipe>", "exec"), defined)
    loop: Callable[..., None] = defined["loop"]
    return loop
