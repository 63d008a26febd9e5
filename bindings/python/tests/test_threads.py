"""Tests of signals, threads, forks and memory."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import millstream
import pytest

STUCK = "read, write = os.pipe(); out = millstream.Writer.fd(write)"
STUCK_LATE = "read, write = os.pipe(); out = millstream.Writer.fd(write, flush_delay=0.01)"
SPARSE = "file = open(path, 'wb'); file.truncate(1 << 40)"

LONG_CALLS = {
    "a command that prints nothing": "next(millstream.command(['sleep', '60']))",
    "a thread that reads ahead": "next(millstream.command(['sleep', '60'], read_ahead='on'))",
    "its batches": "next(millstream.command(['sleep', '60']).batches())",
    "a count without an end": "millstream.command(['yes']).count()",
    "a read without an end": "millstream.open('/dev/zero').read(1 << 62)",
    "a pipe without a writer": "millstream.from_fd(os.pipe()[0]).readline()",
    "a fifo that no process opens": "os.mkfifo(path); millstream.open(path).read()",
    "a source in Python": "millstream.from_callback(lambda n: time.sleep(60)).read()",
    "a fifo without a reader": "os.mkfifo(path); millstream.Writer.path(path)",
    "writes to a pipe that is not read": f"{STUCK}; [out.write(b'x' * 10**6) for _ in range(9)]",
    "writes next to a thread that flushes": f"{STUCK_LATE}; [out.write(b'x' * 10**6) for _ in range(9)]",
    "a flush": f"{STUCK}; out.write(b'x' * 10**7); out.flush()",
    "a flush next to a thread that flushes": f"{STUCK_LATE}; out.write(b'x' * 10**7); out.flush()",
    "a close": f"{STUCK}; out.write(b'x' * 10**7); out.close()",
    "a close next to a thread that flushes": f"{STUCK_LATE}; out.write(b'x' * 10**7); time.sleep(0.1); out.close()",
    "the end of a command": "millstream.Writer.command(['sleep', '60']).close()",
    "a pipe of functions": f"{STUCK}; millstream.pipe(iter(int, 1), out)",
    "a plan that searches a large file": f"{SPARSE}; millstream.Splits.plan(path, millstream.Framer.delimiter(b'aa'))",
    "the search for a first record": f"{SPARSE}; millstream.open_split(millstream.Splits.plan(path, size=1 << 39)[1])",
    "workers": "millstream.pipe(iter(int, 1), millstream.parallel(millstream.map(str)), millstream.count())",
}


@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_ends_waits_at_once(call: str, tmp_path: os.PathLike[str]) -> None:
    program = f"""
import os, signal, time, millstream
signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that run in the background may ignore it initially
path = {os.fspath(tmp_path) + "/fifo"!r}
print("ready", flush=True)
try:
    {LONG_CALLS[call]}
except KeyboardInterrupt:
    print("interrupted", flush=True)
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
        assert process.stdout.readline() == b"interrupted\n"
        watch.cancel()


STUCK_FULL = """
import gc, os, signal, sys, time, millstream
signal.signal(signal.SIGINT, signal.default_int_handler)
read, write = os.pipe()
out = millstream.Writer.fd(write, FLUSH)
out.write(b"x" * 10**7)
"""


@pytest.mark.parametrize("flush", ['flush_policy="when_full"', "flush_delay=0", "flush_delay=0.01", "flush_delay=60.0"])
def test_giving_up_does_not_wait_for_a_sink_that_takes_nothing(flush: str) -> None:
    for end in ("out.abort()", "out.__exit__(KeyError, None, None)"):
        program = STUCK_FULL.replace("FLUSH", flush) + end
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("flush", ['flush_policy="when_full"', "flush_delay=0.01"])
@pytest.mark.parametrize("end", ["del out", "cycle = [out]; cycle.append(cycle); del out, cycle; gc.collect()"])
def test_a_writer_that_is_forgotten_waits_a_second_and_shows_what_is_lost(flush: str, end: str) -> None:
    program = STUCK_FULL.replace("FLUSH", flush) + f"{end}\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"goes on\n"
    assert b"Stalled" in done.stderr
    assert b"which was not closed" in done.stderr


FORGOTTEN = {
    "the program continues": "del out\nwhile True: time.sleep(0.01)",
    "the program ends, and waits for the sink": "pass",
}


@pytest.mark.parametrize("end", FORGOTTEN)
def test_ctrl_c_ends_the_wait_of_a_forgotten_writer(end: str) -> None:
    program = STUCK_FULL.replace("FLUSH", 'flush_policy="when_full"') + f"print('ready', flush=True)\n{FORGOTTEN[end]}"
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        watch = threading.Timer(20, process.kill)
        watch.start()
        assert process.wait() == -signal.SIGINT
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


MASKED = """
import os, signal, millstream
signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
assert b"".join(millstream.command(["cat"], stdin=b"x" * 10**6)) == b"x" * 10**6
# A command has a mask of its own: signals end it.
for name in ("PIPE", "TERM"):
    try:
        list(millstream.command(["sh", "-c", f"kill -{name} $$; echo alive"]))
    except millstream.CommandFailed as error:
        assert error.returncode == -getattr(signal, f"SIG{name}"), error
    else:
        raise AssertionError(name)
with millstream.command(["sleep", "60"]):
    pass
read, write = os.pipe()
os.close(read)
try:
    with millstream.Writer.fd(write) as out:
        out.write(b"x")
except BrokenPipeError:
    print("ended")
"""


def test_signals_that_the_program_has_masked() -> None:
    done = subprocess.run([sys.executable, "-c", MASKED], capture_output=True, timeout=50, check=False)
    assert (done.stdout, done.stderr) == (b"ended\n", b"")


def test_what_has_a_position_cannot_be_pickled(tmp_path: Path) -> None:
    reader = millstream.from_bytes(b"one\ntwo\n")
    with millstream.Writer.path(tmp_path / "out") as writer:
        for value in (reader, reader.next_batch(1), millstream.Framer.csv(), writer):
            for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="cannot pickle"):
                    duplicate(value)
    assert next(reader) == b"two"


def test_a_handler_that_does_not_raise_is_called_and_the_wait_goes_on() -> None:
    signals: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: signals.append(number))
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert list(millstream.command(["sh", "-c", "sleep 0.4; echo one"])) == [b"one"]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert signals == [signal.SIGUSR1]


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
    readers.append(millstream.from_callback(lambda _: next(readers[0])))
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


INHERITED = """
import gc, os, sys, time, millstream

def fork(child):
    process = os.fork()
    if process == 0:
        try:
            child()
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
    assert os.waitpid(process, 0)[1] == 0

def refused(call, *args):
    try:
        call(*args)
    except millstream.Closed as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("it was not refused")
"""

FORKS = {
    "a child that leaves the block": """
process = None
with millstream.Writer.path("output") as out:
    out.write(b"x" * 100_000)
    process = os.fork()
    if process == 0:
        sys.exit(3)
    assert os.waitpid(process, 0)[1] == 3 << 8
    out.write(b"y")
assert os.stat("output").st_size == 100_001
""",
    "a block that ends in the parent": """
with millstream.Writer.path("output") as out:
    out.write(b"x")
    def child():
        refused(out.write, b"y")
        refused(out.flush)
        refused(out.close)
        out.abort()
    fork(child)
assert open("output").read() == "x"
""",
    "bytes in the buffer": """
read, write = os.pipe()
out = millstream.Writer.fd(write)
late = millstream.Writer.fd(write, flush_delay=60.0)
out.write(b"once")
late.write(b"late")
def child():
    global out, late
    del out, late
    gc.collect()
fork(child)
out.close()
late.close()
assert os.read(read, 100) == b"oncelate"
""",
    "a writer to a command": """
out = millstream.Writer.command(["sh", "-c", "cat > output"])
out.write(b"one")
def child():
    global out
    out.abort()
    del out
fork(child)
out.write(b"two")
out.close()
assert open("output").read() == "onetwo"
""",
    "a thread that reads ahead": """
reader = millstream.command(["sh", "-c", "seq 1000; sleep 0.5; seq 1000"], read_ahead="on")
other = millstream.command(["sh", "-c", "sleep 0.5; seq 3"])
first = next(reader)
def child():
    global reader, other
    while True:
        try:
            next(reader)
        except millstream.Closed as error:
            break
    refused(next, other)
    refused(reader.read)
    refused(reader.count)
    reader.close()
    del reader, other
    gc.collect()
fork(child)
assert 1 + reader.count() == 2000
assert list(other) == [b"1", b"2", b"3"]
""",
    "a pipe": """
reader = millstream.command(["sh", "-c", "seq 10; sleep 0.3; seq 10"])
running = iter(millstream.pipe(reader, millstream.map(int)))
next(running)
def child():
    try:
        list(running)
    except millstream.Closed:
        pass
    else:
        raise AssertionError("it was not refused")
fork(child)
assert len(list(running)) == 19
""",
}


@pytest.mark.parametrize("work", FORKS)
def test_a_fork_cannot_use_or_end_what_its_parent_has_opened(work: str, tmp_path: os.PathLike[str]) -> None:
    argv = [sys.executable, "-W", "ignore", "-c", INHERITED + FORKS[work]]
    done = subprocess.run(argv, cwd=tmp_path, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(os.listdir(tmp_path)) in ([], ["output"])


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
