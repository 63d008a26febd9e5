"""Tests that the garbage collector frees readers and writers together with functions that refer back to them."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from typing import Any

import millstream
import pyarrow as pa
import pytest
from millstream import Writer
from test_threads import grows

# A cycle that is collected includes a writer that was not closed.
pytestmark = pytest.mark.filterwarnings("ignore:the writer to a callback was not closed:ResourceWarning")


class Friend:
    """An object that a function holds, to detect when it is freed."""

    other: Any = None

    def read(self, _: int) -> bytes:
        return b"one\ntwo\n"

    def fail(self, _: int) -> bytes:
        raise RuntimeError(self.other)

    def write(self, _: bytes) -> None:
        pass

    def look(self, *_: object) -> None:
        pass


def reader(friend: Friend) -> None:
    friend.other = millstream.from_callback(friend.read)


def reader_at_work(friend: Friend) -> None:
    friend.other = millstream.from_callback(friend.read)
    next(friend.other)


def reader_that_failed(friend: Friend) -> None:
    friend.other = millstream.from_callback(friend.fail)
    with pytest.raises(RuntimeError):
        next(friend.other)


def lines(friend: Friend) -> None:
    friend.other = iter(millstream.from_callback(friend.read))
    next(friend.other)


def batches(friend: Friend) -> None:
    friend.other = millstream.from_callback(friend.read).batches()
    next(friend.other)


def records_of_text(friend: Friend) -> None:
    friend.other = iter(millstream.from_callback(friend.read, encoding="utf-8"))
    next(friend.other)


def progress(friend: Friend) -> None:
    friend.other = millstream.from_bytes(b"one\ntwo\n", observer=friend.look)
    next(friend.other)


def writer(friend: Friend) -> None:
    friend.other = Writer.callback(friend.write)
    friend.other.put("one")


CYCLES = [reader, reader_at_work, reader_that_failed, lines, batches, records_of_text, progress, writer]


@pytest.mark.parametrize("make", CYCLES)
def test_a_cycle_is_collected(make: Callable[[Friend], None]) -> None:
    friend = Friend()
    make(friend)
    known = weakref.ref(friend)
    gc.collect()
    assert known() is friend, "it is in use"
    del friend
    gc.collect()
    assert known() is None


def test_who_is_alive_keeps_its_function() -> None:
    friend = Friend()
    friend.other = millstream.from_callback(friend.read)
    kept = friend.other
    del friend
    for _ in range(3):
        gc.collect()
        assert next(kept) in (b"one", b"two")
    kept.close()


def test_a_closed_reader_lets_go_of_its_function() -> None:
    friend = Friend()
    known = weakref.ref(friend)
    kept = millstream.from_callback(friend.read)
    next(kept)
    kept.close()
    del friend
    assert known() is None


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="it asks Linux for the resident memory")
@pytest.mark.parametrize("make", CYCLES)
def test_cycles_leave_nothing_behind(make: Callable[[Friend], None]) -> None:
    def work() -> None:
        for number in range(2000):
            make(Friend())
            if number % 100 == 0:
                gc.collect()

    assert grows(work) == 0


def test_streams_of_columns_without_the_interpreter_lock() -> None:
    """pyarrow frees a stream without the lock, also if the collector runs in a function that a reader calls."""

    class Collector:
        def read(self, _: int) -> bytes:
            gc.collect()
            return b""

    for _ in range(20):
        friend = Friend()
        columns = millstream.columns(millstream.from_bytes(b"a\n1\n", framer=millstream.Framer.csv()))
        friend.other = (friend, pa.RecordBatchReader.from_stream(columns))
        seen = weakref.ref(friend)
        del friend, columns
        assert millstream.from_file(Collector()).read() == b""
        assert seen() is None
