"""Tests of pipes: items are in order, failures are reported, no item is held back, and no process keeps running."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import millstream
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from millstream import (
    CommandFailed,
    Pipe,
    StageFailed,
    Summary,
    Writer,
    batch,
    collect,
    command,
    count,
    filter,
    flat_map,
    fold,
    for_each,
    inspect,
    map,
    merge,
    parallel,
    pipe,
    scan_state,
    skip,
    take,
    tee,
)


def lines(data: bytes) -> millstream.Reader[bytes]:
    return millstream.from_bytes(data)


def test_stages_and_sinks() -> None:
    assert pipe(lines(b"1\n2\n3\n"), map(int), filter(lambda n: n != 2), collect()) == [1, 3]
    assert pipe(range(5), skip(1), take(3), flat_map(lambda n: [n] * n), collect()) == [1, 2, 2, 3, 3, 3]
    assert pipe(range(5), count()) == 5
    assert pipe(range(5), fold(10, lambda sum, n: sum + n)) == 20
    shown: list[int] = []
    got: list[int] = []
    summary = pipe(iter(range(3)), inspect(shown.append), for_each(got.append))
    assert (shown, got, summary.records, summary.items) == ([0, 1, 2], [0, 1, 2], 3, 3)
    assert pipe([], map(int), collect()) == []
    more: millstream.Stage[int, int] = map(lambda n: n + 1)
    assert pipe(range(100), *[more] * 1000, fold(0, max)) == 1099


def test_a_pipe_without_a_sink_is_a_source() -> None:
    inner = pipe(lines(b"a\nb\nc\n"), map(bytes.decode))
    assert pipe(inner, map(str.upper), collect()) == ["A", "B", "C"]
    assert list(inner) == [], "it runs once"
    assert list(pipe(lines(b"a\nb\n"))) == [b"a", b"b"]
    assert list(pipe(lines(b"a\nb\n"), batch(1)).batches()) == [[b"a"], [b"b"]]
    summary = pipe(lines(b"a\nb\n"), take(1)).run()
    assert (summary.records, summary.items, summary.ended_early) == (2, 1, True)


def test_a_writer_is_finished_or_given_up(tmp_path: Path) -> None:
    path = tmp_path / "out"
    summary = pipe(lines(b"a\nb\n"), map(bytes.upper), Writer.path(path))
    assert path.read_bytes() == b"A\nB\n"
    assert summary.writer is not None
    assert summary.writer.bytes == 4
    pipe(millstream.from_bytes(b"a;b;", delimiter=";"), Writer.path(path))
    assert path.read_bytes() == b"a;b;", "records end with the source's terminator"
    pipe([b"a", "ö", 1, memoryview(b"x")], Writer.path(path))
    assert path.read_bytes() == b"a\n\xc3\xb6\n1\nx\n"
    other = tmp_path / "other"
    with pytest.raises(StageFailed):
        pipe(lines(b"1\nx\n"), map(int), Writer.path(other))
    assert not other.exists()


def test_a_failure_names_its_record_and_comes_after_those_before_it() -> None:
    seen: list[int] = []
    with pytest.raises(StageFailed, match=r"in map: ValueError: invalid literal") as caught:
        pipe(lines(b"1\n22\n3\nx\n5\n"), skip(1), flat_map(lambda line: [line, line]), map(int), for_each(seen.append))
    error = caught.value
    assert seen == [22, 22, 3, 3]
    assert (error.record, error.offset, error.name, error.kind, error.code) == (3, 7, "memory", "stage_failed", 35)
    assert isinstance(error.__cause__, ValueError)


def test_a_writer_has_the_results_before_an_error_unless_its_file_is_complete_or_absent(tmp_path: Path) -> None:
    data = b"1\n22\nx\n5\n"
    kept, absent, aside = (tmp_path / name for name in ("kept", "absent", "aside"))
    for writer in (Writer.path(kept, partial="keep"), Writer.path(absent)):
        with pytest.raises(StageFailed):
            pipe(lines(data), tee(Writer.path(aside, partial="keep")), map(int), writer)
        assert aside.read_bytes() == data
    assert kept.read_bytes() == b"1\n22\n"
    assert not absent.exists()
    with open(kept, "wb") as file, pytest.raises(CommandFailed):
        pipe(command(["sh", "-c", "seq 3; exit 3"]), Writer.fd(file.fileno()))
    assert kept.read_bytes() == b"1\n2\n3\n"


def test_failures_may_be_passed_over_or_put_aside(tmp_path: Path) -> None:
    data = b"1\nx\n3\ny\n"
    passing = pipe(lines(data), map(int), on_error="skip")
    assert list(passing) == [1, 3]
    assert passing.summary.failed == 2
    aside: list[tuple[bytes, int | None]] = []
    kept = pipe(lines(data), map(int), collect(), on_error=lambda item, error: aside.append((item, error.record)))
    assert (kept, aside) == ([1, 3], [(b"x", 1), (b"y", 3)])
    assert pipe(lines(data), map(int), collect(), on_error=Writer.path(tmp_path / "bad")) == [1, 3]
    assert (tmp_path / "bad").read_bytes() == b"x\ny\n"


def test_stop_iteration_is_no_end() -> None:
    def stop(item: int) -> int:
        if item == 2:
            raise StopIteration
        return item

    with pytest.raises(StageFailed, match="StopIteration") as caught:
        pipe([1, 2], map(stop), collect())
    assert caught.value.record == 1
    assert pipe([1, 2, 3], filter(stop), collect(), on_error="skip") == [1, 3]


class Strange:
    def __bool__(self) -> bool:
        raise ValueError("neither")


def test_what_functions_return() -> None:
    with pytest.raises(StageFailed, match="in filter: ValueError: neither"):
        pipe([1], filter(lambda n: Strange()), collect())
    with pytest.raises(StageFailed, match="returned bytes: return a list"):
        pipe([1], flat_map(lambda n: b"ab"), collect())

    def some(n: int) -> Iterator[int]:
        yield n
        raise KeyError(n)

    with pytest.raises(StageFailed) as caught:
        pipe([1], flat_map(some), collect())
    assert isinstance(caught.value.__cause__, KeyError)


def test_errors_of_the_source_come_after_its_records() -> None:
    seen: list[bytes] = []
    for stage in (map(bytes), parallel(map(bytes), workers=2)):
        seen.clear()
        with pytest.raises(millstream.CommandFailed):
            pipe(millstream.command(["sh", "-c", "echo one; echo two; exit 3"]), stage, for_each(seen.append))
        assert seen == [b"one", b"two"]

    def items() -> Iterator[bytes]:
        yield b"one"
        raise OSError("gone")

    for stage in (map(bytes), parallel(map(bytes), workers=2)):
        seen.clear()
        with pytest.raises(OSError, match="gone"):
            pipe(items(), stage, for_each(seen.append))
        assert seen == [b"one"]
    texts: list[str] = []
    with pytest.raises(millstream.EncodingError):
        pipe(millstream.from_bytes(b"a\nb\n\xff\nc\n", encoding="utf-8"), for_each(texts.append))
    assert texts == ["a", "b"]


def test_a_state_goes_from_item_to_item() -> None:
    numbered: millstream.Stage[bytes, str] = scan_state(
        1, lambda number, line: (number + 1, f"{number} {line.decode()}")
    )
    for _ in range(2):
        assert pipe(lines(b"a\nb\nc\n"), batch(2), numbered, collect()) == ["1 a", "2 b", "3 c"]

    def add(sum: int, line: bytes) -> tuple[int, int]:
        return sum + int(line), sum + int(line)

    sums = scan_state(0, add)
    running = pipe(lines(b"1\nx\n3\n"), sums, on_error="skip")
    assert (list(running), running.summary.failed) == ([1, 4], 1)
    with pytest.raises(StageFailed, match="in scan_state") as caught:
        pipe(lines(b"1\nx\n3\n"), sums, collect())
    assert caught.value.record == 1
    with pytest.raises(StageFailed, match="in scan_state: TypeError"):
        pipe([1], scan_state(0, lambda state, item: 3), collect())  # type: ignore[arg-type, return-value]


def test_a_copy_to_a_writer(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    upper = pipe(lines(b"a\nb\nc\n"), tee(Writer.path(copy)), filter(lambda line: line != b"b"), collect())
    assert (upper, copy.read_bytes()) == ([b"a", b"c"], b"a\nb\nc\n")
    source = millstream.from_bytes(b"a; b; c; ", delimiter="; ")
    pipe(source, tee(Writer.path(copy)), take(2), Writer.path(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"a; b; "
    assert copy.read_bytes() == b"a; b; c; ", "the stage was before take"
    pipe(lines(b"1\n2\n3\n"), batch(1), tee(Writer.path(copy)), take(2), collect())
    assert copy.read_bytes() == b"1\n2\n"


def test_a_copy_that_is_not_whole_is_given_up(tmp_path: Path) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    with pytest.raises(StageFailed):
        pipe(lines(b"1\nx\n"), tee(Writer.path(copy)), map(int), collect())
    assert not copy.exists()
    with pytest.raises(millstream.CommandFailed):
        pipe(millstream.command(["sh", "-c", "echo one; exit 3"]), tee(Writer.path(copy)), collect())
    assert not copy.exists()
    left = pipe(millstream.command(["yes"]), tee(Writer.path(copy)))
    next(iter(left))
    left.close()
    assert not copy.exists()

    def full(data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        pipe(range(10), tee(Writer.path(copy)), tee(Writer.callback(full)), Writer.path(other), on_error="skip")
    assert not other.exists()


def test_several_sources_in_turn() -> None:
    running = pipe(merge(lines(b"1\n2\n3\n"), range(10, 13), pipe(lines(b"7\n"), map(int))), map(int))
    found = list(running)
    assert sorted(found) == [1, 2, 3, 7, 10, 11, 12]
    assert [n for n in found if n < 4] == [1, 2, 3], "the items of each source stay in order"
    assert [n for n in found if n >= 10] == [10, 11, 12]
    assert running.summary.records == 7
    assert pipe(merge(), count()) == 0
    assert sorted(merge([1], merge([2], [3]))) == [1, 2, 3]
    summary = pipe(merge(millstream.command(["echo", "a"]), millstream.command(["echo", "b"])), for_each(bytes))
    assert (summary.items, [end.argv for end in summary.commands]) == (2, [("echo", "a"), ("echo", "b")])


def test_a_source_that_waits_is_passed_over() -> None:
    """The first source continues only when all items of the other source have passed."""
    there, answer = os.pipe()
    waiting = millstream.command(["sh", "-c", "read line; echo $line"], stdin=there)
    os.close(there)
    watch = threading.Timer(20, waiting.cancel)
    watch.start()
    got: list[bytes] = []

    def reply(line: bytes) -> None:
        got.append(line)
        if len(got) == 1000:
            os.write(answer, b"last\n")

    pipe(merge(waiting, lines(b"x\n" * 1000)), for_each(reply))
    watch.cancel()
    os.close(answer)
    assert got == [*[b"x"] * 1000, b"last"]


def test_all_of_several_must_succeed() -> None:
    healthy = millstream.command(["yes"])
    with pytest.raises(millstream.CommandFailed):
        pipe(merge(healthy, millstream.command(["sh", "-c", "echo one; exit 3"])), for_each(bytes))
    assert healthy.closed
    with pytest.raises(StageFailed) as caught:
        pipe(merge(lines(b"1\n2\n"), millstream.from_bytes(b"3\n4\nx\n", name="second")), map(int), collect())
    assert (caught.value.record, caught.value.offset, caught.value.name) == (2, 4, "second")
    both = [millstream.command(["sleep", "60"]) for _ in range(2)]
    waiting = pipe(merge(*both), parallel(map(bytes), workers=2))
    threading.Timer(0.1, waiting.cancel).start()
    with pytest.raises(millstream.Cancelled):
        waiting.run()
    assert all(reader.closed for reader in both)


def test_take_ends_the_command() -> None:
    summary: Summary = pipe(millstream.command(["yes"]), take(3), for_each(lambda line: None))
    assert (summary.items, summary.ended_early, len(summary.commands)) == (3, True, 1)
    pulled: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100):
            pulled.append(n)
            yield n

    assert pipe(items(), take(0), collect()) == []
    assert pulled == []


@pytest.mark.parametrize("source", [[1, 0, 0], lines(b"1\n0\n0\n")])
def test_what_take_drops_does_not_count(source: Any) -> None:
    running = pipe(source, map(lambda n: 1 // int(n)), take(1), on_error="skip")
    assert (list(running), running.summary.failed) == ([1], 0)
    assert pipe([1, 2, 0], map(lambda n: 2 // n), take(2), collect()) == [2, 1]


def test_batch_of_one_sends_each_record_all_the_way() -> None:
    events: list[str] = []

    def note(word: str) -> Callable[[bytes], None]:
        return lambda line: events.append(word + line.decode())

    pipe(lines(b"1\n2\n3\n"), batch(1), inspect(note("a")), inspect(note("b")), take(2), for_each(note("c")))
    assert events == ["a1", "b1", "c1", "a2", "b2", "c2"]


def test_a_sink_that_raises_ends_it_as_it_is() -> None:
    reader = millstream.command(["yes"])

    def full(line: bytes) -> None:
        raise BufferError("full")

    with pytest.raises(BufferError):
        pipe(reader, for_each(full))
    assert reader.closed


def test_leaving_early_closes_the_source() -> None:
    reader = millstream.command(["yes"])
    running: Pipe[bytes] = pipe(reader, map(bytes))
    for _ in running:
        break
    running.close()
    assert reader.closed
    reader = millstream.command(["yes"])
    with pipe(reader, map(bytes), parallel(map(bytes), workers=2)) as running:
        next(iter(running))
    assert reader.closed


@pytest.mark.parametrize("stage", [map(bytes), parallel(map(bytes), workers=2)])
def test_a_record_is_not_late(stage: millstream.Stage[bytes, bytes]) -> None:
    """The command continues only after it has received an answer."""
    there, answer = os.pipe()
    with millstream.command(
        ["sh", "-c", "echo one; read line; echo $line; read line; echo $line"], stdin=there
    ) as reader:
        os.close(there)
        got: list[bytes] = []

        def reply(line: bytes) -> None:
            got.append(line)
            os.write(answer, b"more\n" if len(got) < 3 else b"")

        watch = threading.Timer(20, reader.cancel)
        watch.start()
        pipe(reader, stage, for_each(reply))
        watch.cancel()
    os.close(answer)
    assert got == [b"one", b"more", b"more"]


def test_cancel() -> None:
    waiting = pipe(millstream.command(["sleep", "60"]), map(bytes))
    threading.Timer(0.1, waiting.cancel).start()
    with pytest.raises(millstream.Cancelled):
        waiting.run()
    endless = pipe(iter(int, 1), map(lambda n: n))
    threading.Timer(0.1, endless.cancel).start()
    with pytest.raises(millstream.Cancelled):
        endless.run()


def square(n: int) -> int:
    if n == 1_000_000:
        raise ValueError(n)
    return n * n


def no_third(n: int) -> int:
    return n % 3


def process_id(n: int) -> int:
    time.sleep(0.001)
    return os.getpid()


class Unportable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def unportable(n: int) -> int:
    raise Unportable(n, n)


@pytest.mark.parametrize("using", ["threads", "processes"])
def test_workers(using: Literal["threads", "processes"]) -> None:
    both: millstream.Stage[int, int] = parallel(filter(no_third), map(square), workers=3, using=using)
    assert pipe(range(20_000), both, collect()) == [n * n for n in range(20_000) if n % 3]
    seen: list[int] = []
    with pytest.raises(StageFailed) as caught:
        pipe([*range(5000), 1_000_000, *range(5000)], both, map(str), map(int), for_each(seen.append))
    assert caught.value.record == 5000
    assert seen == [n * n for n in range(5000) if n % 3]
    # Items still have their record after the workers.
    with pytest.raises(StageFailed) as caught:
        pipe(range(5000), both, map(lambda n: 1 // (n - 100 * 100)), collect())
    assert caught.value.record == 100
    places = set(pipe(range(100), parallel(map(process_id), workers=2, using=using), collect()))
    assert (os.getpid() in places) == (using == "threads")
    with pytest.raises(StageFailed) as caught:
        pipe([1], parallel(map(unportable), using=using), collect())
    assert "1 and 1" in str(caught.value)


def test_workers_are_not_ahead_without_bound() -> None:
    """A sink that accepts no more data stops the source."""
    pulled = 0

    def items() -> Iterator[int]:
        nonlocal pulled
        for n in range(1_000_000):
            pulled = n
            yield n

    running = pipe(items(), batch(10), parallel(map(square), workers=2))
    next(iter(running.batches()))
    assert pulled < 2000
    running.close()


def leave(n: int) -> None:
    os._exit(1)


def test_a_worker_that_dies_is_an_error() -> None:
    with pytest.raises(StageFailed, match="__main__") as caught:
        pipe(range(10), parallel(map(leave), workers=2, using="processes"), collect())
    assert caught.value.record == 0


def test_worker_processes_are_no_forks_of_one_that_has_threads() -> None:
    """Workers are not forked: a lock that another thread holds would stay locked in a fork. Functions are imported."""
    with LOCK:
        found: list[bool] = pipe([0] * 4, parallel(map(can_lock), workers=2, using="processes"), collect())
    assert found == [True] * 4
    with pytest.raises(millstream.OptionError, match="pickled"):
        parallel(map(lambda n: n), using="processes")


LOCK = threading.Lock()


def can_lock(_: int) -> bool:
    if LOCK.acquire(timeout=1):
        LOCK.release()
        return True
    return False


WITH_WORKERS = """
import os, sys, time
from millstream import map, parallel, pipe

def work(n):
    time.sleep(0.001)
    return os.getpid()

if __name__ == "__main__":
    seen = set()
    for worker in pipe(iter(int, 1), parallel(map(work), workers=2, using="processes")):
        if worker not in seen:
            seen.add(worker)
            print(worker, flush=True)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="it asks Linux which processes there are")
def test_worker_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "with_workers.py"
    script.write_text(WITH_WORKERS)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        workers = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
    until = time.monotonic() + 20
    while any(is_alive(worker) for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_statistics() -> None:
    running = pipe(range(10), map(square), filter(lambda n: n > 10), parallel(map(square), workers=2), take(2))
    summary = running.run()
    assert [(stage.name, stage.items) for stage in summary.stages][:2] == [
        ("map", 10),
        ("filter", 6),
    ] or summary.records < 10
    assert [stage.name for stage in summary.stages] == ["map", "filter", "parallel", "take"]
    assert summary.stages[-1].items == summary.items == 2
    assert summary.elapsed >= summary.source_waited >= 0


def test_statistics_of_stages_that_run_in_one_loop() -> None:
    pieces = [b"%d\n" % n for n in range(200)]
    source = millstream.from_callback(lambda _: pieces.pop(0) if pieces else b"")
    stages = (map(int), map(_map), filter(_filter), map(_map), flat_map(_flat_map))
    summary = pipe(source, *stages, on_error="skip").run()
    numbers, counts = list(range(200)), [200]
    for stage in (_map, _filter, _map, _flat_map):
        made: list[int] = []
        for number in numbers:
            with suppress(Wrong):
                result: Any = stage(number)
                made += [number] * result if stage is _filter else result if stage is _flat_map else [result]
        numbers = made
        counts.append(len(made))
    assert [stage.items for stage in summary.stages] == counts
    assert all(stage.time > 0 for stage in summary.stages)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: map(3),  # type: ignore[arg-type]
        lambda: take(-1),
        lambda: take(True),
        lambda: batch(True),
        lambda: parallel(map(int), workers=True),
        lambda: for_each(3),  # type: ignore[arg-type]
        lambda: fold(0, None),  # type: ignore[arg-type]
        lambda: batch(0),
        lambda: skip("1"),  # type: ignore[arg-type]
        lambda: parallel(take(1)),
        lambda: parallel(map(int), workers=0),
        lambda: parallel(map(int), using="magic"),  # type: ignore[call-overload]
        lambda: scan_state(0, 1),  # type: ignore[arg-type]
        lambda: tee("text"),  # type: ignore[arg-type]
        lambda: parallel(tee(Writer.memory())),
        lambda: merge([1], "text"),
        lambda: pipe("text", collect()),
        lambda: pipe(3, collect()),  # type: ignore[call-overload]
        lambda: pipe([1], int, collect()),
        lambda: pipe([1], collect(), on_error="ignore"),  # type: ignore[call-overload]
    ],
)
def test_what_cannot_be_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(millstream.OptionError):
        wrong()


# A random chain, compared with a simple implementation that processes one item at a time.


class Wrong(Exception):
    pass


def _map(n: int) -> int:
    if n % 13 == 5:
        raise Wrong(n)
    return n * 3 + 1


def _filter(n: int) -> bool:
    if n % 17 == 3:
        raise Wrong(n)
    return n % 4 != 1


def _flat_map(n: int) -> list[int]:
    if n % 19 == 7:
        raise Wrong(n)
    return list(range(n, n + n % 3))


FUNCTIONS: dict[str, Callable[[int], Any]] = {"map": _map, "filter": _filter, "flat_map": _flat_map}
STAGES: dict[str, Callable[..., millstream.Stage[Any, Any]]] = {
    "map": map,
    "filter": filter,
    "flat_map": flat_map,
    "take": take,
    "skip": skip,
    "batch": batch,
}

chains = st.lists(
    st.tuples(st.sampled_from(["map", "filter", "flat_map"]), st.just(0))
    | st.tuples(st.sampled_from(["take", "skip", "batch"]), st.integers(0, 30)),
    max_size=6,
)


class _End(Exception):
    """Raised when a `take` has all its items."""


def naive(numbers: list[int], chain: list[tuple[str, int]], on_error: str) -> tuple[list[int], set[int], int | None]:
    """Returns the output, the records that were skipped, and the record that ended the chain."""
    out: list[int] = []
    failed: set[int] = set()
    left = [size for _, size in chain]

    def push(record: int, item: int, at: int) -> None:
        if at == len(chain):
            out.append(item)
            return
        kind = chain[at][0]
        if kind == "take":
            left[at] -= 1
            push(record, item, at + 1)
            if left[at] == 0:
                raise _End
        elif kind == "skip" and left[at] > 0:
            left[at] -= 1
        elif kind in FUNCTIONS:
            try:
                made = FUNCTIONS[kind](item)
            except Wrong:
                if on_error == "stop":
                    raise
                failed.add(record)
                return
            for next_item in {"map": [made], "filter": [item] if made else [], "flat_map": made}[kind]:
                push(record, next_item, at + 1)
        else:
            push(record, item, at + 1)

    if ("take", 0) in chain:
        return out, failed, None
    for record, item in enumerate(numbers):
        try:
            push(record, item, 0)
        except Wrong:
            return out, failed, record
        except _End:
            break
    return out, failed, None


@given(
    numbers=st.lists(st.integers(0, 1000), max_size=60),
    chain=chains,
    split=st.integers(0, 6),
    on_error=st.sampled_from(["stop", "skip"]),
    size=st.integers(1, 100),
    workers=st.booleans(),
)
@settings(max_examples=300)
def test_as_if_one_at_a_time(
    numbers: list[int],
    chain: list[tuple[str, int]],
    split: int,
    on_error: Literal["stop", "skip"],
    size: int,
    workers: bool,
) -> None:
    chain = [(kind, max(size, 1) if kind == "batch" else size) for kind, size in chain]
    stages = [STAGES[kind](FUNCTIONS[kind]) if kind in FUNCTIONS else STAGES[kind](size) for kind, size in chain]
    if workers:
        # As many stages as may run on workers.
        stages = [
            parallel(stage, workers=2) if at >= split and kind in FUNCTIONS else stage
            for at, (stage, (kind, _)) in enumerate(zip(stages, chain, strict=True))
        ]
    data = b"".join(b"%d\n" % n for n in numbers)
    # The source delivers pieces of any size.
    pieces = [data[at : at + size] for at in range(0, len(data), size)][::-1]
    source = millstream.from_callback(lambda _: pieces.pop() if pieces else b"")
    aside: list[int | None] = []
    running = Pipe[int](
        pipe(source, map(int)),
        tuple(stages),
        "stop" if on_error == "stop" else lambda item, error: aside.append(error.record),
    )
    out: list[int] = []
    ended_by = None
    try:
        running.run(for_each(out.append))
    except StageFailed as error:
        ended_by = error.record
    assert (out, set(aside), ended_by) == naive(numbers, chain, on_error)
    assert len(aside) == running.summary.failed


def test_what_was_collected_before_an_error_is_in_its_partial() -> None:
    def double(item: int) -> int:
        if item == 5:
            raise ValueError("no five")
        return 2 * item

    with pytest.raises(StageFailed) as caught:
        pipe(range(10), map(double), collect())
    assert caught.value.partial == [0, 2, 4, 6, 8]
    with pytest.raises(CommandFailed) as failed:
        pipe(command(["sh", "-c", "echo one; echo two; exit 3"], stderr="null"), collect())
    assert failed.value.partial == [b"one", b"two"]


def test_numbers_through_a_pipe_look_as_if_put() -> None:
    items: list[Any] = [1, 1.0, 0.1, True, None, "text", 1 << 80]
    by_put, by_pipe = Writer.memory(), Writer.memory()
    for item in items:
        by_put.put(item)
    end = by_put.close()
    assert end is not None
    assert end.memory is not None
    for chosen in (items, [*items, b"bytes"]):
        by_pipe = Writer.memory()
        summary = pipe(chosen, by_pipe)
        assert summary.writer is not None
        assert summary.writer.memory == end.memory + (b"" if chosen is items else b"bytes\n")
