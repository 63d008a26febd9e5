"""Signals, other threads, and what must not grow."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import millstream
import pytest

LONG_CALLS = {
    "a command that says nothing": "next(millstream.command(['sleep', '60']))",
    "a thread that reads ahead": "next(millstream.command(['sleep', '60'], read_ahead='on'))",
    "its batches": "next(millstream.command(['sleep', '60']).batches())",
    "a count without an end": "millstream.command(['yes']).count()",
    "a read without an end": "millstream.open('/dev/zero').read(1 << 62)",
    "a pipe that nobody writes": "millstream.from_fd(os.pipe()[0]).readline()",
    "a fifo that nobody opens": "os.mkfifo(path); millstream.open(path).read()",
    "a source in Python": "millstream.from_callable(lambda n: time.sleep(60)).read()",
}


@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_is_heard_at_once(call: str, tmp_path: os.PathLike[str]) -> None:
    program = f"""
import os, signal, time, millstream
signal.signal(signal.SIGINT, signal.default_int_handler)  # what is run in the background may begin by ignoring it
path = {os.fspath(tmp_path) + "/fifo"!r}
print("ready", flush=True)
try:
    {LONG_CALLS[call]}
except KeyboardInterrupt:
    print("heard", flush=True)
    os._exit(0)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        watch = threading.Timer(20, process.kill)
        watch.start()
        assert process.stdout.readline() == b"heard\n"
        watch.cancel()


def test_after_ctrl_c_nothing_is_lost() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        reader = millstream.command(["sh", "-c", "echo one; sleep 0.5; echo two"])
        assert next(reader) == b"one"
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            next(reader)
        assert list(reader) == [b"two"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_does_not_raise_is_called_and_the_wait_goes_on() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert list(millstream.command(["sh", "-c", "sleep 0.4; echo one"])) == [b"one"]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_the_lock_is_free_while_we_wait() -> None:
    reader = millstream.command(["sh", "-c", "sleep 0.3; echo one"])
    turns = 0
    done = threading.Event()

    def read() -> None:
        assert list(reader) == [b"one"]
        done.set()

    thread = threading.Thread(target=read)
    thread.start()
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 10


def test_a_reader_in_use_is_refused_and_can_be_cancelled() -> None:
    with millstream.command(["sleep", "60"]) as reader:
        caught: list[BaseException] = []

        def read() -> None:
            try:
                next(reader)
            except millstream.Error as error:
                caught.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.2)
        for call in (reader.read, reader.count, reader.next_batch, reader.close, lambda: next(reader)):
            with pytest.raises(millstream.InUse):
                call()
        assert not reader.closed
        reader.cancel()
        thread.join()
        assert isinstance(caught[0], millstream.Cancelled)


def test_a_source_that_reads_from_its_own_reader_is_refused() -> None:
    readers: list[millstream.Reader[bytes]] = []
    readers.append(millstream.from_callable(lambda _: next(readers[0])))
    with pytest.raises(millstream.InUse):
        next(readers[0])
    readers.clear()


def test_threads_at_one_reader_lose_nothing_and_hang_never() -> None:
    reader = millstream.command(["seq", "50000"])
    found: list[bytes] = []
    odd: list[BaseException] = []

    def read() -> None:
        while True:
            try:
                record = next(reader, None)
            except millstream.InUse:
                continue
            except BaseException as error:
                odd.append(error)
                return
            if record is None:
                return
            found.append(record)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert odd == []
    assert sorted(map(int, found)) == list(range(1, 50001))


def test_a_fork_can_read() -> None:
    program = """
import os, millstream
assert millstream.command(["seq", "10"]).count() == 10
if os.fork() == 0:
    status = 0 if millstream.command(["sh", "-c", "sleep 0.1; seq 10"]).count() == 10 else 1
    os._exit(status)
assert os.wait()[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows(work: object, limit: int = 4 << 20) -> int:
    assert callable(work)
    work()
    gc.collect()
    before = resident()
    work()
    gc.collect()
    return max(0, resident() - before - limit)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="it asks Linux for the resident memory")
def test_a_million_records_leave_nothing_behind() -> None:
    data = b"some line of text\n" * 1_000_000

    def records() -> None:
        for _ in millstream.from_bytes(data):
            pass

    def texts() -> None:
        for _ in millstream.from_bytes(data, encoding="utf-8"):
            pass

    def batches() -> None:
        for batch in millstream.from_bytes(data).batches():
            _ = batch.data, batch.offsets, batch[0]

    for work in (records, texts, batches):
        assert grows(work) == 0, work


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="it asks Linux for the open files")
def test_many_readers_leave_nothing_behind() -> None:
    def readers() -> None:
        for _ in range(300):
            next(millstream.open(__file__))
            next(millstream.from_bytes(b"a\n"))
            with pytest.raises(FileNotFoundError):
                millstream.open("/no such file")

    assert grows(readers) == 0
    open_files = len(os.listdir("/proc/self/fd"))
    readers()
    assert len(os.listdir("/proc/self/fd")) == open_files
