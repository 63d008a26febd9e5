"""Tests of readers and writers for asyncio."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import millstream
import pytest
from millstream import aio

R = TypeVar("R")


@pytest.fixture(autouse=True)
def leaves_no_thread() -> Iterator[None]:
    """Every test leaves no thread. `pytest.raises` makes cycles, which keep readers until they are collected."""
    yield
    assert asyncio.run(no_threads())


def run(work: Coroutine[Any, Any, R]) -> R:
    """Runs a task, which must not hang."""
    return asyncio.run(asyncio.wait_for(work, 30))


async def listed(reader: aio.Reader[Any]) -> list[Any]:
    return [record async for record in reader]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int) -> bool:
    for _ in range(500):
        if not is_alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


async def no_threads() -> bool:
    for _ in range(500):
        # The threads may hold the last exception a little longer.
        gc.collect()
        if all(thread.name != "millstream-asyncio" for thread in threading.enumerate()):
            return True
        await asyncio.sleep(0.01)
    return False


#: A command that prints its process number and then waits.
WAITS = ["sh", "-c", "echo $$; exec sleep 60"]


def test_every_function_reads(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")

    async def work() -> None:
        with path.open("rb") as file:
            readers: list[aio.Reader[Any]] = [
                aio.open(path),
                aio.command(["cat", path]),
                aio.pipeline([["cat", path], ["cat"]]),
                aio.shell(f"cat {path}"),
                aio.from_bytes(b"a\nb\n"),
                aio.from_file(file),
                aio.from_callback(Pieces([b"a\n", b"b\n"])),
            ]
            assert [await listed(reader) for reader in readers] == [[b"a", b"b"]] * len(readers)
        with path.open("rb") as file:
            reader = aio.from_fd(file.fileno())
        # The reader has its own descriptor, so the caller may close the file at once.
        assert await listed(reader) == [b"a", b"b"]

    run(work())


class Pieces:
    """A function that returns these bytes."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [*pieces, b""]

    def __call__(self, _: int) -> bytes:
        return self._pieces.pop(0)


def test_records_are_those_without_asyncio() -> None:
    data = b"one\r\n\ntwo" * 5_000 + b"end"

    async def work(**options: Any) -> list[Any]:
        return await listed(aio.from_bytes(data, **options))

    sets: list[dict[str, Any]] = [
        {},
        {"encoding": "utf-8"},
        {"encoding": "latin-1", "keep_delimiter": False},
        {"delimiter": b"o"},
        {"keep_delimiter": True},
        {"framer": millstream.Framer.fixed(3)},
    ]
    for options in sets:
        assert run(work(**options)) == list(millstream.from_bytes(data, **options))


def test_methods_continue_where_the_previous_one_ended() -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.from_bytes(b"one\ntwo\nthree\nfour\nfive\nsix\nseven,eight")
        assert await anext(reader) == b"one"
        async for line in reader:
            assert line == b"two"
            break
        assert await reader.readline() == b"three\n"
        assert await reader.read(2) == b"fo"
        assert await reader.peek() == b"ur\nfive\nsix\nseven,eight"
        assert await anext(reader) == b"ur"
        batch = await reader.next_batch(1)
        assert batch is not None
        assert list(batch) == [b"five"]
        assert await reader.skip_record()
        assert await reader.readuntil(",") == b"seven,"
        assert reader.position == (34, 7)
        assert await reader.read() == b"eight"
        assert (await reader.readline(), await reader.read1(), await reader.count()) == (b"", b"", 0)
        assert await listed(reader) == []

    run(work())


def test_batches_and_columns() -> None:
    async def work() -> None:
        sizes = [len(batch) async for batch in aio.from_bytes(b"a\n" * 10).batches(4)]
        assert sizes == [4, 4, 2]
        table = await aio.from_bytes(b"1\t2\n3\t4\n").columns("\t", {"a": int, "b": int})
        assert (len(table), list(table["b"])) == (2, [2, 4])

    run(work())


def test_errors_arrive_after_the_records_before_them(tmp_path: Path) -> None:
    async def work() -> None:
        lines = []
        with pytest.raises(subprocess.CalledProcessError) as caught:  # noqa: PT012
            async for line in aio.command(["sh", "-c", "echo one; echo two; exit 3"]):
                lines.append(line)
        assert (lines, caught.value.returncode) == ([b"one", b"two"], 3)
        with pytest.raises(FileNotFoundError):
            await aio.open(tmp_path / "missing")
        with pytest.raises(FileNotFoundError):
            async with aio.open(tmp_path / "missing"):
                pass
        with pytest.raises(FileNotFoundError):
            await listed(aio.open(tmp_path / "missing"))
        with pytest.raises(TypeError, match="unknown option colour"):
            await listed(aio.from_bytes(b"", colour="red"))  # type: ignore[call-overload] # pyright: ignore

    run(work())


def test_a_reader_continues_after_an_error_as_without_asyncio() -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.from_bytes(b"one\nmuch too long\ntwo\n", record_limit=3)
        assert await anext(reader) == b"one"
        with pytest.raises(millstream.RecordTooLong):
            await listed(reader)
        assert await reader.skip_record()
        assert await listed(reader) == [b"two"]
        text: aio.Reader[str] = aio.from_bytes(b"a\n\xff\nb\n", encoding="utf-8")
        assert await anext(text) == "a\n"
        with pytest.raises(UnicodeDecodeError):
            await anext(text)
        assert await listed(text) == ["b\n"]

    run(work())


def test_records_do_not_cross_threads_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    deliver: Callable[..., None] = aio._deliver

    def counted(*args: Any) -> None:
        nonlocal calls
        calls += 1
        deliver(*args)

    monkeypatch.setattr(aio, "_deliver", counted)

    async def work() -> int:
        return len(await listed(aio.from_bytes(b"line\n" * 100_000)))

    assert run(work()) == 100_000
    # At most one for each 64 KiB.
    assert 0 < calls < 10


def test_other_tasks_run_while_records_are_in_the_buffer() -> None:
    async def work() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        reader: aio.Reader[bytes] = aio.from_bytes(b"x\n" * 1000)
        await anext(reader)
        before = turns
        async for _ in reader:
            # Each record takes longer than a turn.
            time.sleep(0.0011)
            if turns - before > 10:
                break
        assert turns - before > 10
        assert reader.position[1] < 100
        task.cancel()

    run(work())


def test_a_command_whose_output_is_not_read_waits() -> None:
    async def work() -> None:
        async with aio.command(["sh", "-c", "while echo line; do :; done"]) as reader:
            assert await anext(reader) == b"line"
            before = usage()
            await asyncio.sleep(0.5)
            # Memory would grow by several MB.
            assert usage() - before < 4 << 20

    run(work())


def usage() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("wait", ["record", "body", "close"])
def test_a_cancelled_task_ends_its_command(wait: str) -> None:
    async def work() -> None:
        pids: list[int] = []

        async def task() -> None:
            reader: aio.Reader[bytes] = aio.command(WAITS)
            async with reader:
                pids.append(int(await anext(reader)))
                match wait:
                    case "record":
                        await anext(reader)
                    case "body":
                        await asyncio.sleep(60)
                    case _:
                        pass

        running = asyncio.create_task(task())
        while not pids:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # `async with` waits for the end of the command, unless it is cancelled itself.
        assert await gone(pids[0]) if wait == "close" else not is_alive(pids[0])
        assert await no_threads()

    run(work())


@pytest.mark.filterwarnings("ignore:the reader of sh:ResourceWarning")
def test_a_cancelled_loop_without_a_block_ends_its_command() -> None:
    async def work() -> None:
        pids: list[int] = []

        async def in_the_wait() -> None:
            async for line in aio.command(WAITS):
                pids.append(int(line))

        async def in_the_body() -> None:
            async for line in aio.command(WAITS):
                pids.append(int(line))
                await asyncio.sleep(60)

        for task in (in_the_wait, in_the_body):
            running = asyncio.create_task(task())
            while not pids:
                await asyncio.sleep(0.001)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert await gone(pids.pop())
        assert await no_threads()

    run(work())


@pytest.fixture
def silent() -> Iterator[int]:
    """A pipe from which nothing arrives."""
    reading, writing = os.pipe()
    yield reading
    os.close(reading)
    os.close(writing)


def test_after_a_cancellation_it_is_closed(silent: int) -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.from_fd(silent)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(reader), 0.05)
        assert reader.closed
        with pytest.raises(millstream.Closed):
            await anext(reader)
        await reader.close()

    run(work())


def test_a_reader_that_is_dropped_ends_its_command_and_warns() -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.command(WAITS)
        pid = int(await anext(reader))
        with pytest.warns(ResourceWarning, match=r"^the reader of sh .* was not closed"):  # noqa: PT031
            del reader
            assert await gone(pid)
            assert await no_threads()

    run(work())


def test_readers_that_end_leave_no_thread_and_no_cycle() -> None:
    async def work() -> None:
        gc.collect()
        gc.disable()
        try:
            reader: aio.Reader[bytes] = aio.from_bytes(b"a\nb\n")
            assert await listed(reader) == [b"a", b"b"]
            known = weakref.ref(reader)
            del reader
            assert known() is None
            assert await no_threads()
        finally:
            gc.enable()

    run(work())


def test_close_interrupts_the_call_of_another_task(silent: int) -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.from_fd(silent)
        waiting = asyncio.create_task(anext_of(reader))
        await asyncio.sleep(0.05)
        await reader.close()
        with pytest.raises(millstream.Cancelled):
            await waiting
        await reader.close()
        with pytest.raises(millstream.Closed):
            await reader.read()

    run(work())


async def anext_of(reader: aio.Reader[bytes]) -> bytes:
    return await anext(reader)


def test_two_calls_at_a_time_are_refused(silent: int) -> None:
    async def work() -> None:
        async with aio.from_fd(silent) as reader:
            waiting = asyncio.create_task(reader.read())
            await asyncio.sleep(0.01)
            with pytest.raises(millstream.InUse):
                await reader.read()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    run(work())


def test_a_call_that_is_not_awaited_warns() -> None:
    async def work() -> None:
        writer = aio.Writer.memory()
        with pytest.warns(RuntimeWarning, match="never awaited"):
            writer.write(b"lost")  # type: ignore[unused-coroutine] # pyright: ignore[reportUnusedCoroutine]
        await writer.close()

    run(work())


def test_without_a_loop_calls_are_refused() -> None:
    with pytest.raises(TypeError):
        iter(aio.from_bytes(b""))  # type: ignore[call-overload] # pyright: ignore


def test_writers(tmp_path: Path) -> None:
    path = tmp_path / "out.gz"

    async def work() -> None:
        async with aio.Writer.path(path) as out:
            assert await out.write(b"bytes ") == 6
            assert await out.write("text\n") == 5
            await out.put(1, 2.5, True)
            await out.writelines([b"a\n", "b\n"])
            assert not path.exists()
        assert gzip.decompress(path.read_bytes()) == b"bytes text\n1 2.5 true\na\nb\n"
        out = aio.Writer.memory(capacity=16)
        for number in range(1000):
            await out.put(number)
        await out.write(bytearray(b"more"))
        end = await out.close()
        assert end is not None
        assert end.memory == b"".join(b"%d\n" % number for number in range(1000)) + b"more"
        assert await out.close() is None
        with pytest.raises(millstream.Closed):
            await out.write(b"x")

    run(work())


def test_a_writer_to_a_command_reports_its_failure() -> None:
    async def work() -> None:
        with pytest.raises(subprocess.CalledProcessError):
            async with aio.Writer.command(["sh", "-c", "cat >/dev/null; exit 3"]) as out:
                await out.write(b"x" * 1_000_000)

    run(work())


async def pour(out: aio.Writer, size: int) -> None:
    """Writes more than a pipe holds, in pieces: one piece may be accepted as a whole."""
    for _ in range(size >> 16):
        await out.write(b"x" * (1 << 16))


def test_a_slow_sink_stops_the_program_but_not_its_other_tasks() -> None:
    async def work() -> None:
        reading, writing = os.pipe()
        try:
            out = aio.Writer.fd(writing)
            writer = asyncio.create_task(pour(out, 4 << 20))
            await asyncio.sleep(0.05)
            assert not writer.done()
            reader: aio.Reader[bytes] = aio.from_fd(reading)
            read = asyncio.create_task(reader.read())
            await writer
            await out.close()
            os.close(writing)
            assert len(await read) == 4 << 20
            await reader.close()
        finally:
            os.close(reading)

    run(work())


def test_a_cancelled_writer_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "out"

    async def task() -> None:
        async with aio.Writer.path(path) as out:
            await out.write(b"x" * 1_000_000)
            await asyncio.sleep(60)

    async def work() -> None:
        running = asyncio.create_task(task())
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert list(tmp_path.iterdir()) == []

    run(work())


def test_a_cancelled_wait_for_a_sink_ends_its_command() -> None:
    async def work() -> None:
        out = aio.Writer.command(["sleep", "60"])
        writing = asyncio.create_task(pour(out, 8 << 20))
        await asyncio.sleep(0.1)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await out.close()
        assert await no_threads()

    run(work())


def test_a_writer_that_is_dropped_warns_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "out"

    async def work() -> None:
        with path.open("wb") as file:
            out = aio.Writer.fd(file.fileno())
            await out.write(b"kept\n")
            with pytest.warns(ResourceWarning, match="was not closed"):  # noqa: PT031
                del out
                assert await no_threads()

    run(work())
    assert path.read_bytes() == b"kept\n"


def test_many_readers_at_a_time() -> None:
    async def count(number: int) -> int:
        total = 0
        async for _ in aio.command(["seq", str(number)]):
            total += 1
        return total

    async def work() -> list[int]:
        return await asyncio.gather(*(count(number) for number in range(20)))

    assert run(work()) == list(range(20))


def test_in_a_fork_calls_are_refused() -> None:
    async def work() -> None:
        reader: aio.Reader[bytes] = aio.command(["sh", "-c", "echo one; echo two; cat"])
        async with reader:
            assert await anext(reader) == b"one"
            pid = os.fork()
            if pid == 0:
                # This process has no other thread, so a call must not wait for one.
                refused = False
                try:
                    await reader.read()
                except millstream.Closed:
                    refused = True
                finally:
                    os._exit(0 if refused else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert await anext(reader) == b"two"

    run(work())


def test_a_program_that_ends_leaves_no_command() -> None:
    program = """
import asyncio, millstream
async def main():
    global reader
    reader = millstream.aio.command(["sh", "-c", "echo $$; exec sleep 60"])
    print((await anext(reader)).decode(), flush=True)
    global waiting
    waiting = asyncio.ensure_future(reader.read())
    await asyncio.sleep(0.01)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not is_alive(int(done.stdout))


def test_ctrl_c_ends_a_program_at_once() -> None:
    program = """
import asyncio, millstream
async def main():
    async with millstream.aio.command(["sh", "-c", "echo $$; exec sleep 60"]) as reader:
        async for line in reader:
            print(line.decode(), flush=True)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        os.kill(running.pid, 2)
        assert running.stdout.read() == b"interrupted\n"
        assert running.wait(30) == 0
    assert not is_alive(pid)
