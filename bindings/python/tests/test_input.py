"""Tests of what a command gets as its standard input, and of commands in the middle of a pipe."""

from __future__ import annotations

import asyncio
import gc
import io
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millstream as ms
import pytest
from millstream import aio

#: Different things with the same content.
INPUTS: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda _: b"b\na\n",
    "bytearray": lambda _: bytearray(b"b\na\n"),
    "memoryview": lambda _: memoryview(b"b\na\n"),
    "file": lambda path: path.open("rb"),
    "text file": lambda path: path.open(encoding="utf-8"),
    "bytes in memory": lambda _: io.BytesIO(b"b\na\n"),
    "text in memory": lambda _: io.StringIO("b\na\n"),
    "list of text": lambda _: ["b\n", "", "a\n"],
    "generator of bytes": lambda _: (b"%c\n" % char for char in b"ba"),
    "mixed": lambda _: iter(["b", b"\na", bytearray(b"\n")]),
    "reader": lambda path: ms.open(path),
    "reader of text": lambda path: ms.open(path, encoding="utf-8"),
    "command": lambda path: ms.command(["cat", path]),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_a_command_reads(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"b\na\n")
    given = INPUTS[kind](path)
    assert list(ms.command(["sort"], stdin=given)) == [b"a", b"b"]
    if hasattr(given, "close"):
        given.close()
    again = INPUTS[kind](path)
    assert list(ms.pipeline([["sort"], ["head", "-n", "1"]], stdin=again)) == [b"a"]
    if hasattr(again, "close"):
        again.close()


def test_text_is_written_as_utf_8() -> None:
    assert list(ms.command(["cat"], stdin=["é\n", "\U0001f600"], encoding="utf-8")) == ["é\n", "\U0001f600"]


def test_pieces_are_taken_as_the_command_accepts_them() -> None:
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for taken in itertools.count(1):  # noqa: B007
            yield b"x" * 99_999 + b"\n"

    reader = ms.command(["head", "-n", "3"], stdin=pieces())
    assert reader.count() == 3
    assert taken < 200


def test_an_exception_of_the_input_is_raised_after_the_output() -> None:
    class Broken(Exception):
        pass

    def pieces() -> Iterator[str]:
        yield "one\n"
        raise Broken("no more")

    lines = []
    with pytest.raises(Broken, match="no more"):  # noqa: PT012
        for line in ms.command(["cat"], stdin=pieces()):
            lines.append(line)
    assert lines == [b"one"]
    with pytest.raises(TypeError):
        list(ms.command(["cat"], stdin=[1, 2]))  # type: ignore[list-item] # pyright: ignore
    with pytest.raises(TypeError):
        ms.command(["cat"], stdin=object())  # type: ignore[call-overload] # pyright: ignore
    with pytest.raises(ms.OptionError, match="iterable"):
        ms.command(["cat"], stdin="text")


def test_the_iterable_is_released() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one\n"

    generator = pieces()
    alive = weakref.ref(generator)
    reader = ms.command(["cat"], stdin=generator)
    del generator
    assert list(reader) == [b"one"]
    reader.close()
    del reader
    wait_until(lambda: alive() is None)


def test_closing_a_reader_does_not_wait_for_an_input_that_waits() -> None:
    goes_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"one\n"
        goes_on.wait(60)

    reader = ms.command(["cat"], stdin=pieces())
    assert next(reader) == b"one"
    reader.close()
    goes_on.set()


def test_asyncio_has_it_too() -> None:
    async def work() -> list[bytes]:
        return [line async for line in aio.command(["sort"], stdin=["b\n", "a\n"])]

    assert asyncio.run(work()) == [b"a", b"b"]


def test_the_end_of_the_program_does_not_wait_for_an_input() -> None:
    program = """
import time, millstream
def pieces():
    yield "one\\n"
    time.sleep(60)
reader = millstream.command(["cat"], stdin=pieces())
print(next(reader))
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=50)
    assert (done.returncode, done.stdout) == (0, b"b'one'\n"), done.stderr
    assert time.monotonic() - began < 45


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        gc.collect()
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


# Commands in the middle of a pipe.


def test_items_go_through_a_command() -> None:
    upper = ms.pipe(ms.from_bytes(b"pear\nx\napple\n"), ms.filter(lambda line: len(line) > 1), ms.through(["sort"]))
    assert list(upper) == [b"apple", b"pear"]
    assert ms.pipe([3, 1, 2], ms.through(["sort"]), ms.map(int), ms.collect()) == [1, 2, 3]
    assert ms.pipe(["é", "a"], ms.through(["cat"], encoding="utf-8"), ms.collect()) == ["é", "a"]
    twice = ms.pipe(range(10), ms.through(["sort", "-rn"]), ms.take(3), ms.through(["sort", "-n"]), ms.collect())
    assert twice == [b"7", b"8", b"9"]
    assert ms.pipe([], ms.through(["sort"]), ms.count()) == 0


def test_the_statistics_have_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "out"
    summary = ms.pipe(
        ms.command(["seq", "100"]),
        ms.map(int),
        ms.filter(lambda number: number % 2),
        ms.through(["tail", "-n", "10"]),
        ms.map(int),
        ms.Writer.path(path),
    )
    assert [(stage.name, stage.items) for stage in summary.stages] == [
        ("map", 100),
        ("filter", 50),
        ("through", 10),
        ("map", 10),
    ]
    assert (summary.records, summary.items, [end.argv[0] for end in summary.commands]) == (100, 10, ["seq", "tail"])
    assert path.read_bytes().splitlines()[0] == b"81"


def test_an_exception_before_the_command_comes_after_its_output() -> None:
    lines: list[bytes] = []
    with pytest.raises(ms.StageFailed) as caught:
        ms.pipe(
            ms.from_bytes(b"1\n2\nx\n4\n", name="data"),
            ms.batch(1),
            ms.map(int),
            ms.through(["cat"]),
            ms.for_each(lines.append),
        )
    assert lines == [b"1", b"2"]
    assert (caught.value.name, caught.value.record, caught.value.line) == ("data", 2, 3)
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ms.CommandFailed, match="exit 3"):
        ms.pipe(ms.command(["sh", "-c", "echo 1; exit 3"]), ms.through(["cat"]), ms.collect())


def test_a_command_that_fails_ends_the_pipe() -> None:
    with pytest.raises(ms.CommandFailed) as caught:
        ms.pipe(ms.command(["yes"]), ms.through(["sh", "-c", "read line; echo $line; exit 3"]), ms.collect())
    assert caught.value.returncode == 3
    with pytest.raises(FileNotFoundError):
        ms.pipe([1], ms.through(["no such command"]), ms.collect())


def test_an_exception_after_the_command_names_the_record_of_its_output() -> None:
    with pytest.raises(ms.StageFailed) as caught:
        ms.pipe(["b", "a", "x"], ms.through(["sort"]), ms.map(lambda line: {b"a": 1, b"b": 2}[line]), ms.collect())
    assert (caught.value.name, caught.value.record) == ("sort", 2)


def test_failures_on_both_sides_are_put_aside(tmp_path: Path) -> None:
    aside: list[object] = []

    def sixth(line: bytes) -> int:
        return 6 // (int(line) - 2)

    stages: list[Any] = [ms.map(int), ms.through(["cat"]), ms.map(sixth)]
    kept = ms.pipe(["1", "x", "2", "3"], *stages, ms.collect(), on_error=lambda item, error: aside.append(item))
    assert kept == [-6, 6]
    assert sorted(map(str, aside)) == ["b'2'", "x"]
    running = ms.pipe(["1", "x", "2", "3"], *stages, on_error=ms.Writer.path(tmp_path / "bad"))
    assert running.run().failed == 2
    assert sorted((tmp_path / "bad").read_bytes().split()) == [b"2", b"x"]


def test_a_pipe_that_ends_early_stops_both_sides() -> None:
    source = ms.command(["sh", "-c", "echo $$; exec yes"])
    pid = int(next(source))
    assert ms.pipe(source, ms.through(["cat"]), ms.take(2), ms.collect()) == [b"y", b"y"]
    wait_until(lambda: not is_alive(pid))
    # A source that waits is interrupted.
    source = ms.command(["sh", "-c", "echo $$; echo one; exec sleep 60"])
    pid = int(next(source))
    assert ms.pipe(source, ms.through(["cat"]), ms.take(1), ms.collect()) == [b"one"]
    wait_until(lambda: not is_alive(pid))


def test_a_command_that_needs_no_more_ends_the_source() -> None:
    source = ms.command(["sh", "-c", "echo $$; exec yes"])
    pid = int(next(source))
    assert ms.pipe(source, ms.through(["head", "-n", "2"]), ms.collect()) == [b"y", b"y"]
    wait_until(lambda: not is_alive(pid))


def test_cancel_stops_both_sides() -> None:
    running = ms.pipe(ms.command(["sleep", "60"]), ms.through(["cat"]))
    timer = threading.Timer(0.2, running.cancel)
    timer.start()
    with pytest.raises(ms.Cancelled):
        running.run(ms.count())
    timer.join()


def test_what_cannot_be_a_command_is_refused() -> None:
    with pytest.raises(TypeError, match="sequence of words"):
        ms.through("sort -u")
    with pytest.raises(TypeError, match="stdin"):
        ms.through(["sort"], stdin=b"")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
