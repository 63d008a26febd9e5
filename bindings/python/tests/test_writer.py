"""Tests of sinks, the data written to them, and how they end."""

from __future__ import annotations

import gzip
import os
import select
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

import millstream
import numpy as np
import pytest
from millstream import Writer
from vectors import cases


def ended(writer: Writer) -> bytes:
    end = writer.close()
    assert end is not None
    assert end.memory is not None
    return end.memory


def test_every_sink_gets_the_same_bytes(tmp_path: Path) -> None:
    path, by_fd, by_command = tmp_path / "path", tmp_path / "fd", tmp_path / "command"
    called: list[bytes] = []
    with by_fd.open("wb") as file:
        writers = [
            Writer.path(path),
            Writer.fd(file.fileno()),
            Writer.command(["sh", "-c", 'cat > "$0"', str(by_command)]),
            Writer.callback(called.append, capacity=4),
        ]
        for writer in writers:
            assert writer.write(b"one\n") == 4
            assert writer.write("zwölf\n") == 7
            assert writer.write(bytearray(b"two")) == 3
            writer.writelines([b"a", "b"])
            assert writer.accepted == 16
            end = writer.close()
            assert end is not None
            assert (end.bytes, writer.closed, writer.close()) == (16, True, None)
            with pytest.raises(millstream.Closed):
                writer.write(b"")
    expected = "one\nzwölf\ntwoab".encode()
    assert path.read_bytes() == by_fd.read_bytes() == by_command.read_bytes() == b"".join(called) == expected


def test_put() -> None:
    writer = Writer.memory()
    writer.put("a", b"b", 1, -2, 10**30, 0.5, True, None)
    writer.put(1, 2, sep=",", end="")
    writer.put()
    assert ended(writer) == b"a b 1 -2 1000000000000000000000000000000 0.5 true None\n1,2\n"


# The kinds of values that Python has.
VALUES = [case for case in cases("put.tsv") if case[1] in ("bool", "f64") or case[1][0] in "iu"]


@pytest.mark.parametrize(("name", "kind", "value", "expected"), VALUES)
def test_shared_vectors(name: str, kind: str, value: str, expected: str) -> None:
    given: object
    match kind:
        case "bool":
            given = value == "true"
        case "f64":
            given = struct.unpack(">d", bytes.fromhex(value))[0]
        case _:
            given = int(value)
    writer = Writer.memory()
    writer.put(given, end="")
    assert ended(writer) == bytes.fromhex(expected)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with Writer.path(path) as writer:
        writer.write(b"x" * 1_000_000)
        assert not path.exists()
    assert path.stat().st_size == 1_000_000
    with pytest.raises(TypeError), Writer.path(path) as writer:
        writer.writelines([b"other", 1])  # type: ignore[list-item]
    assert path.stat().st_size == 1_000_000
    writer = Writer.path(tmp_path / "given up")
    writer.write(b"a")
    writer.abort()
    assert os.listdir(tmp_path) == ["out"]
    with Writer.path(path, existing="append", durability="data") as writer:
        writer.write(b"y")
    assert path.stat().st_size == 1_000_001


def test_compression_by_name(tmp_path: Path) -> None:
    path = tmp_path / "out.gz"
    with Writer.path(path, level=1) as writer:
        writer.write(b"one\n" * 1000)
    assert gzip.decompress(path.read_bytes()) == b"one\n" * 1000
    with Writer.path(path, encode="off") as writer:
        writer.write(b"one\n")
    assert path.read_bytes() == b"one\n"


def test_flush_policies() -> None:
    read, write = os.pipe()
    try:
        for policy, expected in (("line", b"a\n"), ("when_full", b"")):
            os.set_blocking(read, False)
            with Writer.fd(write, flush_policy=policy) as writer:  # type: ignore[arg-type]
                writer.write(b"a\nb")
                try:
                    assert os.read(read, 100) == expected
                except BlockingIOError:
                    assert expected == b""
                writer.flush()
                assert os.read(read, 100).endswith(b"b")
        os.set_blocking(read, True)
        with Writer.fd(write, flush_delay=0.01) as writer:
            writer.write(b"late")
            assert select.select([read], [], [], 60)[0]
            assert os.read(read, 100) == b"late"
    finally:
        os.close(read)
        os.close(write)


def test_what_goes_wrong(tmp_path: Path) -> None:
    writer = Writer.command(["sh", "-c", "cat >/dev/null; exit 3"])
    writer.write(b"a")
    with pytest.raises(millstream.CommandFailed) as caught:
        writer.close()
    assert caught.value.status == 3
    with pytest.raises(FileNotFoundError):
        Writer.path(tmp_path / "missing" / "file")
    with pytest.raises(millstream.OptionError):
        Writer.memory(encode="zip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown option"):
        Writer.memory(colour=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Writer.memory().write(1)  # type: ignore[arg-type]

    def refuse(_: bytes) -> int:
        raise ZeroDivisionError

    writer = Writer.callback(refuse, capacity=4)
    with pytest.raises(ZeroDivisionError):
        writer.write(b"12345678")


def test_a_pipe_without_a_reader() -> None:
    read, write = os.pipe()
    os.close(read)
    writer = Writer.fd(write)
    os.close(write)
    writer.write(b"a")
    with pytest.raises(BrokenPipeError) as caught:
        writer.flush()
    assert isinstance(caught.value, millstream.Error)
    writer.abort()


@pytest.mark.parametrize("flush", [{"flush_policy": "when_full"}, {"flush_delay": 0.01}])
def test_a_stalled_sink(flush: dict[str, Any]) -> None:
    """The limit is longer than the interval at which signals are checked, and these checks do not restart it."""
    read, write = os.pipe()
    writer = Writer.fd(write, stall_timeout=0.2, **flush)
    try:
        with pytest.raises(TimeoutError) as caught:
            writer.writelines([b"x" * 1_000_000] * 3)
        assert isinstance(caught.value, millstream.Stalled)
    finally:
        os.close(read)
        writer.abort()
        os.close(write)


def test_a_command_may_work_for_as_long_as_it_likes() -> None:
    writer = Writer.command(["sh", "-c", "cat >/dev/null; sleep 0.5"], stall_timeout=0.1)
    writer.write(b"one\n")
    assert writer.close() is not None
    writer = Writer.command(["sleep", "60"], stall_timeout=0.1)
    with pytest.raises(millstream.Stalled):
        writer.writelines([b"x" * 4_000_000] * 2)
    writer.abort()


def test_threads_at_a_writer_with_a_delay_lose_nothing() -> None:
    """The writer's thread flushes in between; the data of each thread stays in order and is written once."""
    each = 20_000
    read, write = os.pipe()
    writer = Writer.fd(write, flush_delay=0.001, capacity=4096)
    os.close(write)
    odd: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(each):
                while True:
                    try:
                        writer.put(number, turn)
                        break
                    except millstream.InUse:
                        time.sleep(0)
                if turn % 1000 == 0:
                    time.sleep(0.002)  # after the delay
        except BaseException as error:
            odd.append(error)

    def close(threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        writer.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=close, args=(threads,))
    closer.start()
    # At the same time, the reader's blocking calls are interrupted at every tick and continue.
    with open(read, "rb") as file:
        found: dict[int, list[int]] = {number: [] for number in range(4)}
        for line in millstream.from_fd(file.fileno()):
            number, turn = map(int, line.split())
            found[number].append(turn)
    closer.join()
    assert odd == []
    assert found == {number: list(range(each)) for number in range(4)}


def test_from_a_command_to_a_command() -> None:
    with Writer.command(["wc", "-c"], stderr="inherit") as writer:
        for batch in millstream.command(["seq", "1000"]).batches():
            writer.write(batch.data)


def test_standard_output() -> None:
    import subprocess

    program = "from millstream import Writer\nwith Writer.stdout() as out: out.put('one', 2)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"one 2\n"


def test_booleans_of_numpy_look_like_all_booleans() -> None:
    writer = Writer.memory()
    writer.put(np.bool_(True), np.bool_(False), np.int64(7), np.float64(0.5))
    assert ended(writer) == b"true false 7 0.5\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_descriptor_has_its_own_number_in_errors() -> None:
    with open("/dev/full", "wb") as full:
        writer = Writer.fd(full.fileno())
        writer.write(b"x")
        with pytest.raises(OSError, match=rf"(?m)^file descriptor {full.fileno()}: ") as caught:
            writer.close()
        assert caught.value.filename == f"file descriptor {full.fileno()}"
        named = Writer.fd(full.fileno(), name="the log")
        assert named.name == "the log"
        named.abort()
