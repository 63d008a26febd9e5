"""Tests of the command-line tool as the wheel installs it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import millstream
import pytest
from millstream import bson

MODULE = [sys.executable, "-m", "millstream"]
SCRIPT = [str(Path(sys.executable).with_name("millstream"))]


def tool(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MODULE, *words], input=stdin, capture_output=True, timeout=60)


@pytest.mark.parametrize("command", [MODULE, SCRIPT])
def test_it_runs_as_a_module_and_as_a_script(command: list[str]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, check=True)
    assert done.stdout.decode() == f"millstream {millstream.__version__}\n"


def test_it_is_the_whole_tool(tmp_path: Path) -> None:
    usage = tool("--help").stdout.decode()
    assert "Usage: millstream <COMMAND>" in usage
    for subcommand in ("run", "bson", "bench", "completions", "man"):
        assert f"\n  {subcommand} " in usage
        assert f"Usage: millstream {subcommand}" in tool(subcommand, "--help").stdout.decode()
    assert tool("run", stdin=b"one\ntwo\n").stdout == b"one\ntwo\n"
    counted = tool("run", "--count", "--", "seq", "1000")
    assert (counted.returncode, counted.stdout) == (0, b"1000 records, 3893 bytes\n")
    document = tmp_path / "document.bson"
    document.write_bytes(bson.dumps({"name": "Ann"}))
    assert tool("bson", "cat", str(document)).stdout == b'{"name":"Ann"}\n'


def test_words_need_not_be_text() -> None:
    name = b"\xff\xfe"
    done = subprocess.run([*MODULE, "run", "--", "printf", "%s", name], capture_output=True, check=True)
    assert done.stdout == name


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["run", "--", "sh", "-c", "echo one; exit 3"], 1, "exited with status 3"),
        (["run", "no such file"], 1, "no such file"),
        (["run", "--capacity", "12Q"], 2, "--capacity"),
        ([], 2, "a subcommand is missing"),
    ],
)
def test_its_exit_status_is_the_tools(words: list[str], status: int, complaint: str) -> None:
    done = tool(*words)
    said, *hints = done.stderr.decode().splitlines()
    assert (done.returncode, said.startswith("millstream: "), complaint in said) == (status, True, True)
    assert [hint.startswith("hint: ") for hint in hints] in ([], [True])


def test_ctrl_c_stops_it_and_leaves_no_orphan(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["run", "-o", str(out), "--", "sh", "-c", "echo $$ >&2; exec sleep 60"]
    # Processes that run in the background may ignore the signal initially.
    heeds = (
        f"import os, signal, sys; signal.signal({signal.SIGINT:d}, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen([sys.executable, "-c", heeds, *MODULE, *words], stderr=subprocess.PIPE)
    assert process.stderr is not None
    with process:
        orphan = int(process.stderr.readline())
        watch = threading.Timer(60, process.kill)
        watch.start()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        watch.cancel()
    # The signal kills the process, as it should for commands; there is no KeyboardInterrupt.
    assert (process.returncode, "Traceback" in said) == (-signal.SIGINT, False)
    with pytest.raises(ProcessLookupError):
        os.kill(orphan, 0)
    assert not out.exists()


def test_a_consumer_that_leaves_ends_it_by_sigpipe() -> None:
    process = subprocess.Popen([*MODULE, "run", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="it asks Linux what is ignored")
def test_its_commands_start_without_what_python_does_to_signals() -> None:
    done = tool("run", "--", "sh", "-c", "grep SigIgn /proc/$$/status")
    ignored = int(done.stdout.split()[1], 16)
    assert [number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored & 1 << (number - 1)] == []


def test_a_file_that_grows_too_large_is_an_error(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    words = ["run", "-o", str(tmp_path / "out"), "--", "head", "-c", "1000000", "/dev/zero"]
    done = subprocess.run([*MODULE, *words], preexec_fn=limit, capture_output=True)
    assert done.returncode == 1
    assert b"File too large" in done.stderr


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_closed_standard_stream_is_not_taken_for_something_else(fd: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["run", "-o", str(out), "--", "seq", "10"]
    done = subprocess.run([*MODULE, *words], preexec_fn=lambda: os.close(fd), timeout=60)
    assert done.returncode == 0
    assert out.read_bytes() == b"".join(b"%d\n" % n for n in range(1, 11))


def test_a_closed_standard_stream_that_is_needed_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = tmp_path / "in"
    source.write_text("one\n")
    for fd, name, words in [(0, b"input", ["-o", str(out)]), (1, b"output", [str(source)])]:
        close = partial(os.close, fd)
        done = subprocess.run([*MODULE, "run", *words], preexec_fn=close, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1
        assert b"standard " + name + b": open failed: found a closed file descriptor" in done.stderr
        assert not out.exists()
