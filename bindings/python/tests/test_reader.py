"""Tests of sources, records and the end of streams."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import millstream
import pytest
from millstream import Framer, bson
from millstream._options import Encode

File = Callable[[bytes], Path]


def test_every_source_gives_the_same_records(text: File) -> None:
    data = b"one\ntwo\r\n\nthree"
    path = text(data)
    expected = [b"one", b"two", b"", b"three"]
    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        readers = [
            millstream.open(path),
            millstream.open(str(path)),
            millstream.open(os.fsencode(path)),
            millstream.open(path, read_ahead="on", latency="low", capacity=1),
            millstream.command(["cat", path]),
            millstream.command(["cat"], stdin=data),
            millstream.command(["cat"], stdin=file),
            millstream.pipeline([["cat", path], ["cat"]]),
            millstream.shell("cat", stdin=data),
            millstream.from_bytes(data),
            millstream.from_bytes(bytearray(data)),
            millstream.from_bytes(memoryview(data)[::1]),
            millstream.from_file(io.BytesIO(data)),
            millstream.from_file(raw),
        ]
        for reader in readers:
            assert list(reader) == expected, reader
            assert list(reader) == [], "after the end, there are no more records"
    with path.open("rb") as file:
        reader = millstream.from_fd(file.fileno())
        assert list(reader) == expected
        os.fstat(file.fileno())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no leases")
def test_a_file_with_a_lease_is_opened_when_its_holder_gives_it_up(text: File) -> None:
    path = text(b"one\n")
    holder = f"""
import fcntl, os, signal
file = os.open({os.fspath(path)!r}, os.O_RDWR)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
signal.sigwait([signal.SIGIO])
print("asked", flush=True)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
"""
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert millstream.open(path).read() == b"one\n"
        assert process.stdout.read() == b"asked\n"


def test_a_loop_and_single_calls_take_turns() -> None:
    reader = millstream.from_bytes(b"".join(b"%d\n" % n for n in range(8)))
    for line in reader:
        assert line == b"0"
        break
    assert (next(reader), reader.readline(), reader.read(2)) == (b"1", b"2\n", b"3\n")
    first, second = iter(reader), iter(reader)
    assert (next(first), next(second), next(reader), next(first)) == (b"4", b"5", b"6", b"7")
    assert list(second) == list(first) == list(reader) == []
    lines = iter(millstream.from_bytes(b"a\n"))
    assert list(iter(lines)) == [b"a"], "the iterator keeps the reader alive"
    closed = iter(reader)
    reader.close()
    with pytest.raises(millstream.Closed):
        next(closed)
    with pytest.raises(TypeError):
        type(closed)()


def test_a_loop_says_what_went_wrong() -> None:
    reader = millstream.from_bytes(b"one\nmuch too long\ntwo\n", record_limit=3)
    seen: list[bytes] = []
    with pytest.raises(millstream.RecordTooLong):
        seen.extend(reader)
    assert seen == [b"one"]
    reader.skip_record()
    assert list(reader) == [b"two"]


def test_text() -> None:
    data = "größe\n水\n".encode()
    assert list(millstream.from_bytes(data, encoding="utf-8")) == ["größe\n", "水\n"]
    assert list(millstream.from_bytes(b"gr\xf6\xdfe\n", encoding="latin-1")) == ["größe\n"]
    assert list(millstream.from_bytes(b"a\xff\n", encoding="utf-8", errors="replace")) == ["a\ufffd\n"]
    with pytest.raises(millstream.OptionError) as caught:
        millstream.from_bytes(b"", encoding="no such")
    assert isinstance(caught.value.__cause__, LookupError)


def test_what_is_no_text_names_its_record_and_is_passed() -> None:
    reader = millstream.from_bytes(b"a\nb\n\xff\nc\n", encoding="utf-8")
    assert next(reader) == "a\n"
    assert next(reader) == "b\n"
    with pytest.raises(millstream.EncodingError) as caught:
        next(reader)
    assert (caught.value.kind, caught.value.code, caught.value.record) == ("utf8_invalid", 9, 2)
    assert (caught.value.object, caught.value.start, caught.value.__cause__) == (b"\xff\n", 0, None)
    assert list(reader) == ["c\n"]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_counting_has_no_record_limit(size: int) -> None:
    data = b"much too long\nab\n" * 3 + b"much too long"
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    reader = millstream.from_callback(lambda _: pieces.pop(0) if pieces else b"", record_limit=3)
    assert (reader.count(), reader.position) == (7, (len(data), 7))
    reader = millstream.from_bytes(data, record_limit=3)
    with pytest.raises(millstream.RecordTooLong):
        next(reader)
    assert (reader.skip_record(), next(reader), reader.count()) == (True, b"ab", 5)
    documents = b"".join(bson.dumps({"a": "x" * n}) for n in (1, 100, 1))
    assert millstream.from_bytes(documents, framer=Framer.bson(), record_limit=30).count() == 3


def test_batches() -> None:
    reader = millstream.from_bytes(b"one\ntwo\r\nthree", capacity=64)
    reader.peek()
    batch = next(reader.batches())
    assert bytes(batch.data) == b"one\ntwo\r\n"
    assert batch.data.readonly
    assert list(batch.offsets) == [0, 4, 9]
    assert (len(batch), batch[0], batch[-1], list(batch)) == (2, b"one", b"two", [b"one", b"two"])
    assert batch.to_list() == [b"one", b"two"]
    assert (batch.first_record, batch.offset, batch.terminated, batch.trim) == (0, 0, True, (0, 1, True))
    with pytest.raises(IndexError):
        batch[2]
    last = reader.next_batch()
    assert last is not None
    assert (last.first_record, last.offset, last.terminated, last[0]) == (2, 9, False, b"three")
    assert reader.next_batch() is None


def test_offsets_are_numpys_and_outlive_everything() -> None:
    numpy = pytest.importorskip("numpy")
    with millstream.command(["seq", "3"]) as reader:
        offsets = next(reader.batches()).offsets
    assert offsets.dtype == numpy.uint32
    assert not offsets.flags.writeable
    assert offsets[0] == 0


def test_batches_of_at_most(text: File) -> None:
    reader = millstream.open(text(b"a\n" * 1000))
    assert [len(batch) for batch in reader.batches(300)] == [300, 300, 300, 100]


def test_a_failing_command_raises_after_its_last_record() -> None:
    reader = millstream.command(["sh", "-c", "echo one; echo two; echo oops >&2; exit 3"], stderr="capture")
    assert [next(reader), next(reader)] == [b"one", b"two"]
    with pytest.raises(millstream.CommandFailed) as caught:
        next(reader)
    error = caught.value
    assert (error.kind, error.code, error.status, error.stderr_tail) == ("command_failed", 4, 3, b"oops\n")
    assert error.argv == ("sh", "-c", "echo one; echo two; echo oops >&2; exit 3")
    assert "exited with status 3" in str(error)


def test_a_command_ended_by_a_signal() -> None:
    reader = millstream.command(["sh", "-c", "echo one; kill -9 $$"])
    assert next(reader) == b"one"
    with pytest.raises(millstream.CommandFailed) as caught:
        next(reader)
    assert caught.value.status == -9
    assert list(reader) == []


CUT = ["sh", "-c", 'printf "100\\n200\\n30"; exit 3']
TAKEN: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "lines": (lambda: millstream.command(CUT), [b"100", b"200"]),
    "text": (lambda: millstream.command(CUT, encoding="utf-8"), ["100\n", "200\n"]),
    "records": (lambda: millstream.command(CUT, delimiter="\n"), [b"100", b"200"]),
    "a thread that reads ahead": (lambda: millstream.command(CUT, read_ahead="on"), [b"100", b"200"]),
    "batches": (lambda: (item for batch in millstream.command(CUT).batches() for item in batch), [b"100", b"200"]),
    "a pipe": (lambda: millstream.pipe(millstream.command(CUT), millstream.map(int)), [100, 200]),
    "readline": (lambda: iter(millstream.command(CUT).readline, b""), [b"100\n", b"200\n"]),
    "readline of a size": (lambda: iter(partial(millstream.command(CUT).readline, 10), b""), [b"100\n", b"200\n"]),
    "readuntil": (lambda: iter(millstream.command(CUT).readuntil, b""), [b"100\n", b"200\n"]),
}


@pytest.mark.parametrize("way", TAKEN)
def test_what_is_left_of_a_command_that_failed_is_no_record(way: str) -> None:
    make, expected = TAKEN[way]
    taken: list[Any] = []
    with pytest.raises(millstream.CommandFailed) as caught:
        taken.extend(item for item in make())
    assert taken == expected
    assert caught.value.status == 3
    if way != "readline of a size":
        assert 'unfinished record, "30"' in str(caught.value)


def test_what_is_left_of_a_command_that_failed_can_be_read() -> None:
    reader = millstream.command(CUT)
    with pytest.raises(millstream.CommandFailed):
        list(reader)
    assert (reader.peek(), reader.read(), reader.read()) == (b"30", b"30", b"")
    with pytest.raises(millstream.CommandFailed) as caught:
        millstream.command(CUT).readlines()
    assert caught.value.partial == [b"100\n", b"200\n"]
    with pytest.raises(millstream.CommandFailed) as caught:
        millstream.command(CUT).columns("\t", {"n": int})
    assert caught.value.partial["n"].tolist() == [100, 200]
    with pytest.raises(millstream.CommandFailed):
        millstream.command(CUT).count()
    # If the source succeeded, the last line is a record.
    assert list(millstream.command(["printf", "100\\n30"])) == [b"100", b"30"]


def test_a_failure_that_was_overlooked_is_raised_by_close_or_is_the_context() -> None:
    def overlook(then: Callable[[], object]) -> None:
        with millstream.command(CUT) as reader:
            with pytest.raises(millstream.CommandFailed):
                list(reader)
            then()

    def stop() -> None:
        with millstream.command(CUT) as reader:
            for _ in reader:
                raise KeyError

    with pytest.raises(millstream.CommandFailed):
        overlook(lambda: None)
    with pytest.raises(IndexError) as caught:
        overlook(list[int]().pop)
    assert isinstance(caught.value.__context__, millstream.CommandFailed)
    with pytest.raises(KeyError) as stopped:
        stop()
    assert stopped.value.__context__ is None, "it stopped before the end"


def test_stopping_early_is_no_failure() -> None:
    """The command may or may not have failed by then."""
    fails = ["sh", "-c", "seq 2; exit 3"]
    for turn in range(200):
        assert millstream.pipe(millstream.command(fails), millstream.take(1), millstream.collect()) == [b"1"]
        with millstream.command(fails) as reader:
            for line in reader:
                assert line == b"1"
                break
        if turn % 20 == 0:
            time.sleep(0.01)  # by now the command has failed
            reader = millstream.command(fails)
            next(reader)
            time.sleep(0.02)
            reader.close()
            assert [end.status for end in reader.ends] == [3]
            running = millstream.pipe(millstream.command(fails), millstream.take(1))
            assert list(running) == [b"1"]
            assert [end.status for end in running.summary.commands] in ([3], [-13])


def test_a_pipeline_whose_last_command_has_enough_succeeds() -> None:
    for _ in range(20):
        assert list(millstream.pipeline([["yes"], ["head", "-n", "3"]])) == [b"y"] * 3
    assert list(millstream.pipeline([["sh", "-c", "yes; exit $?"], ["head", "-n", "1"]])) == [b"y"]
    with pytest.raises(millstream.CommandFailed):
        list(millstream.pipeline([["yes"], ["sh", "-c", "exit 3"]]))


def test_failure_can_be_allowed() -> None:
    reader = millstream.command(["sh", "-c", "echo one; exit 3"], allow_failure=True)
    assert list(reader) == [b"one"]
    assert [end.status for end in reader.ends] == [3]


def test_any_command_of_a_pipeline_may_fail() -> None:
    with pytest.raises(millstream.CommandFailed) as caught:
        list(millstream.pipeline([["sh", "-c", "echo 1; exit 4"], ["cat"]]))
    assert caught.value.status == 4
    with pytest.raises(millstream.CommandFailed):
        list(millstream.shell("false | cat"))


def test_the_environment_and_the_directory_of_a_command(tmp_path: Path) -> None:
    reader = millstream.command(
        ["sh", "-c", "echo $A; pwd"], env={"A": "1", "PATH": os.environ["PATH"]}, current_dir=tmp_path
    )
    assert list(reader) == [b"1", os.fsencode(tmp_path)]


def test_leaving_early_stops_the_command() -> None:
    with millstream.command(["yes"]) as reader:
        assert next(reader) == b"y"
    assert reader.closed
    assert [end.status for end in reader.ends] == [-13]
    with pytest.raises(millstream.Closed):
        next(reader)
    with pytest.raises(ValueError, match="closed"):
        reader.read()
    reader.close()


def test_what_cannot_be_opened_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        millstream.open(tmp_path / "missing")
    error: OSError = caught.value
    assert isinstance(error, millstream.Error)
    assert isinstance(error, millstream.FileError)
    assert (error.errno, error.kind, error.code) == (2, "open_failed", 2)
    assert error.filename == str(tmp_path / "missing")
    with pytest.raises(millstream.FileError):
        millstream.open(tmp_path)
    with pytest.raises(millstream.CommandNotStarted) as not_started:
        millstream.command(["no-such-program-at-all"])
    assert isinstance(not_started.value, FileNotFoundError)
    with pytest.raises(OSError, match="Bad file descriptor"):
        millstream.from_fd(987)


def test_options_that_cannot_be() -> None:
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"", read_ahead="sometimes")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unknown option colour"):
        millstream.from_bytes(b"", colour=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        millstream.from_bytes(b"", capacity="x")  # type: ignore[call-overload]
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"", capacity=0)
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"", delimiter="")
    with pytest.raises(millstream.OptionError):
        millstream.from_bytes(b"", framer=Framer.lines(), delimiter="x")
    with pytest.raises(TypeError, match="sequence of words"):
        millstream.command("ls -l")
    with pytest.raises(millstream.OptionError):
        Framer.length_prefixed(3)
    with pytest.raises(millstream.Error):
        millstream.command([])


def test_compressed_files_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    whole = gzip.compress(b"one\ntwo\n" * 1000)
    path.write_bytes(whole)
    assert millstream.open(path).count() == 2000
    assert millstream.open(path, decode="off").read() == whole
    path.write_bytes(whole[:-9])
    with pytest.raises(millstream.DecodeError) as caught:
        millstream.open(path).count()
    assert caught.value.kind == "decode_truncated"
    path.write_bytes(whole)
    with pytest.raises(millstream.DecodeError):
        millstream.open(path, decode_limit=100).count()


def test_a_record_that_is_too_long_can_be_skipped() -> None:
    reader = millstream.from_bytes(b"one\nmuch too long\ntwo\n", record_limit=3)
    assert next(reader) == b"one"
    for _ in range(2):
        with pytest.raises(millstream.RecordTooLong) as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (1, 4)
    assert reader.skip_record()
    assert list(reader) == [b"two"]
    assert reader.position == (22, 3)


def test_what_a_source_raises_comes_out_after_the_last_record() -> None:
    class Oops(Exception):
        pass

    pieces = iter([b"one\ntwo\n"])

    def read(_: int) -> bytes:
        for piece in pieces:
            return piece
        raise Oops("here")

    reader = millstream.from_callback(read)
    assert [next(reader), next(reader)] == [b"one", b"two"]
    with pytest.raises(Oops, match="here"):
        next(reader)
    assert list(reader) == []
    with pytest.raises(TypeError, match="binary mode"):
        next(millstream.from_file(io.StringIO("text")))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="int, not bytes"):
        next(millstream.from_callback(lambda n: n))  # type: ignore[arg-type, return-value]


def test_a_source_may_return_more_than_it_was_asked_for() -> None:
    pieces = iter([b"x" * 3_000_000, b"\ny\n"])
    reader = millstream.from_callback(lambda _: next(pieces, b""))
    assert [len(record) for record in reader] == [3_000_000, 1]


def test_read_keeps_what_came_before_an_error() -> None:
    reader = millstream.command(["sh", "-c", "printf abc; exit 1"])
    with pytest.raises(millstream.CommandFailed) as caught:
        reader.read()
    assert caught.value.partial == b"abc"


def test_a_stalled_source() -> None:
    with millstream.command(["sleep", "60"], stall_timeout=0.05) as reader, pytest.raises(TimeoutError) as caught:
        next(reader)
    assert isinstance(caught.value, millstream.Stalled)
    assert caught.value.name == "sleep 60"


def test_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"one\ntwo\n")

        thread = threading.Thread(target=serve)
        thread.start()
        assert list(millstream.tcp("127.0.0.1", port)) == [b"one", b"two"]
        thread.join()
        server.close()
        with pytest.raises(ConnectionRefusedError):
            millstream.tcp("127.0.0.1", port)


def test_a_file_that_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    with millstream.open(path, follow="growing") as reader:
        assert next(reader) == b"one"
        with path.open("ab") as file:
            file.write(b"two\n")
        assert next(reader) == b"two"


@pytest.mark.parametrize("how", ["truncated", "renamed", "deleted"])
def test_a_followed_file_that_is_not_what_it_was(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    reader = millstream.open(path, follow="growing", stall_timeout=60)
    assert [next(reader), next(reader)] == [b"one", b"two"]
    if how == "truncated":
        path.write_bytes(b"another\nand longer\n")
    elif how == "renamed":
        path.rename(tmp_path / "log.1")
    else:
        path.unlink()
    for again in (lambda: next(reader), reader.close):
        with pytest.raises(millstream.FileError) as caught:
            again()
        assert caught.value.kind == ("source_shrank" if how == "truncated" else "source_changed")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"line\n" * 1_000_000)
    reader = millstream.open(path)
    next(reader)
    os.utime(path, (0, 0))
    with pytest.raises(millstream.FileError, match="source changed"):
        reader.count()
    reader = millstream.open(path, pin="identity")
    next(reader)
    with path.open("ab") as file:
        file.write(b"more\n")
    with pytest.raises(millstream.FileError, match="source changed"):
        reader.count()


def test_names_and_first_bytes_promise_a_format(tmp_path: Path) -> None:
    plain, unknown, hidden = tmp_path / "a.gz", tmp_path / "b.lz4", tmp_path / "c"
    plain.write_bytes(b"plain\n")
    unknown.write_bytes(b"plain\n")
    hidden.write_bytes(b"\x04\x22\x4d\x18\x64\x40\xa7")
    with pytest.raises(millstream.DecodeError, match="as its name implies"):
        list(millstream.open(plain))
    for path in unknown, hidden:
        with pytest.raises(millstream.Unsupported, match="lz4 data"):
            list(millstream.open(path))
    assert list(millstream.open(unknown, decode="off")) == [b"plain"]
    with pytest.raises(millstream.Unsupported, match="lz4 data"):
        millstream.Writer.path(tmp_path / "d.lz4")
    assert not (tmp_path / "d.lz4").exists()
    with millstream.Writer.path(tmp_path / "d.lz4", encode="off") as writer:
        writer.write(b"plain\n")


def test_xz_is_read_and_written(tmp_path: Path) -> None:
    text = b"one\ntwo\n" * 10_000
    cases: list[tuple[str, Encode]] = [("a.xz", "auto"), ("b", "xz")]
    for name, encode in cases:
        with millstream.Writer.path(tmp_path / name, encode=encode, level=1) as writer:
            writer.write(text)
        assert lzma.decompress((tmp_path / name).read_bytes()) == text
    (tmp_path / "c").write_bytes(lzma.compress(text, check=lzma.CHECK_SHA256) + lzma.compress(b"three\n"))
    assert list(millstream.open(tmp_path / "c"))[-2:] == [b"two", b"three"]
    (tmp_path / "c").write_bytes(lzma.compress(text)[:-1])
    with pytest.raises(millstream.DecodeError, match="truncated"):
        list(millstream.open(tmp_path / "c"))


def test_nothing_is_appended_to_a_file_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"one\n")[:-1])
    with pytest.raises(OSError, match="a complete gzip file"):
        millstream.Writer.path(path, existing="append")
    with millstream.Writer.path(path, existing="append_unchecked") as writer:
        writer.write(b"two\n")


def test_progress(text: File) -> None:
    class Bar:
        def __init__(self) -> None:
            self.total: float | None = None
            self.n = 0.0

        def update(self, n: float | None = 1) -> bool | None:
            self.n += n or 0
            return None

    path = text(b"line\n" * 200_000)
    bar = Bar()
    assert millstream.open(path, observer=bar, observer_interval=0).count() == 200_000
    assert (bar.n, bar.total) == (1_000_000, 1_000_000)
    calls: list[tuple[int, int | None, int]] = []
    reader = millstream.open(path, observer=lambda *told: calls.append(told), observer_interval=0)
    assert reader.count() == 200_000
    assert calls[-1] == (1_000_000, 1_000_000, 200_000)
    tqdm = pytest.importorskip("tqdm")
    with tqdm.tqdm(unit="B", file=io.StringIO()) as real:
        millstream.open(path, observer=real, observer_interval=0).count()
        assert (real.n, real.total) == (1_000_000, 1_000_000)


def test_framers_are_values() -> None:
    assert Framer.lines() == Framer.lines()
    assert Framer.lines() != Framer.lines(keep_delimiter=True)
    assert list(millstream.from_bytes(b"a\0b\0", framer=Framer.delimiter(0))) == [b"a", b"b"]


def test_a_reader_can_be_referred_to_weakly_and_says_what_it_is() -> None:
    reader = millstream.from_bytes(b"", name="x")
    assert weakref.ref(reader)() is reader
    assert repr(reader) == '<millstream.Reader "x">'
    assert reader.name == "x"


def test_standard_input(tmp_path: Path) -> None:
    import subprocess

    program = "import millstream; print(millstream.stdin().count())"
    done = subprocess.run([sys.executable, "-c", program], input=b"a\nb\n", capture_output=True, check=True)
    assert done.stdout == b"2\n"


def test_limits_of_a_command() -> None:
    """A command can be timed out in total, stopped by other means, and succeed with other statuses."""
    script = ["sh", "-c", "read line; echo $line; exit $line"]
    assert list(millstream.command(script, stdin=b"3\n", success_statuses=[0, 3], success_signals=[9])) == [b"3"]
    with pytest.raises(millstream.CommandFailed, match="expected exit status 0 or 3"):
        list(millstream.command(script, stdin=b"4\n", success_statuses=[0, 3]))
    with pytest.raises(millstream.CommandFailed) as failed:
        list(millstream.command(["sh", "-c", "echo 12345 >&2; exit 3"], stderr_limit=3))
    assert failed.value.stderr == b"45\n"
    stubborn = millstream.command(
        ["sh", "-c", "trap '' TERM; exec sleep 60"],
        total_timeout=0.05,
        stop_signal=signal.SIGINT,
        stop_grace=0,
        process_group="own",
    )
    with pytest.raises(TimeoutError) as caught:
        list(stubborn)
    assert isinstance(caught.value, millstream.TimedOut)
    refused: list[dict[str, Any]] = [
        {"success_statuses": [256]},
        {"stop_signal": 0},
        {"success_statuses": [1], "allow_failure": True},
    ]
    for wrong in refused:
        with pytest.raises(millstream.OptionError):
            millstream.command(["true"], **wrong)


def test_after_a_time_limit_close_succeeds_and_the_command_got_its_signal() -> None:
    script = "trap 'exit 8' TERM; echo one; while :; do sleep 0.05; done"
    reader = millstream.command(["sh", "-c", script], stall_timeout=2, stop_grace=60)
    assert next(reader) == b"one"
    with pytest.raises(millstream.Stalled):
        next(reader)
    reader.close()
    assert [end.status for end in reader.ends] == [8]
    failing = millstream.command(["sh", "-c", "exit 3"], stderr="null")
    with pytest.raises(millstream.CommandFailed):
        next(failing)
    with pytest.raises(millstream.CommandFailed):
        failing.close()
