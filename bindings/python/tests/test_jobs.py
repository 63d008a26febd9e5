"""Tests of jobs, whose parts become visible together or not at all."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import millstream as ms
import pytest


def visible(directory: Path) -> list[str]:
    """The names that programs see which ignore hidden files."""
    return sorted(name for name in os.listdir(directory) if name[0] not in "._")


def write(job: ms.Job, task: int) -> ms.Part:
    with job.part(task, ".txt") as part:
        assert part.write(f"from task {task}\n") == 12
        assert part.write(memoryview(b"x\n")) == 2
        part.add_records(2)
        assert part.tell() == 14
    return part.result


def command_line(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "millstream", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_parts_become_visible_together(tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = ms.Job.begin(out)
    assert (job.directory, len(job.id)) == (str(out), 32)
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        parts = pool.starmap(write, [(job, task) for task in range(3)])
    write(job, 1)
    assert visible(out) == []
    with pytest.raises(ms.Error, match="unfinished job") as caught:
        ms.Job.parts(out)
    assert caught.value.kind == "job_incomplete"
    job.commit(parts)
    paths = ms.Job.parts(out)
    assert paths is not None
    assert [Path(path).read_text() for path in paths] == [f"from task {task}\nx\n" for task in range(3)]
    assert visible(out) == [part.name for part in parts]
    assert (out / "_SUCCESS").read_bytes() == b""
    part = parts[2]
    assert (part.task, part.size, part.records, part.hash[:7]) == (2, 14, 2, "blake3:")
    for value in (job, part):
        assert pickle.loads(pickle.dumps(value)) == value
        assert type(value).from_json(value.to_json()) == value
    assert parts[0] != parts[1]
    assert repr(part) == f"<millstream.Part {part.name!r} of 14 bytes>".replace("'", '"')
    with pytest.raises(ms.Error, match="already exists: found a complete job"):
        job.abort()


def test_a_part_that_fails_is_discarded(tmp_path: Path) -> None:
    job = ms.Job.begin(tmp_path)
    part = job.part(0)

    def fail() -> None:
        with part:
            part.write(b"some")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert part.closed
    with pytest.raises(ms.OptionError, match=r"part of task 0 in .* found a part that is not complete"):
        _ = part.result
    for call in (lambda: part.write(b""), part.tell, lambda: part.add_records(1)):
        with pytest.raises(ms.Closed):
            call()
    part = job.part(0)
    assert (part.closed, part.writable(), part.readable(), part.seekable()) == (False, True, False, False)
    del part
    part = job.part(1, ".csv")
    part.close()
    part.close()
    assert part.result.records is None
    staging = tmp_path / f".millstream-job-{job.id}"
    assert len(os.listdir(staging)) == 1
    part = job.part(2)
    job.abort()
    job.abort()
    with pytest.raises(ms.Closed, match="no unfinished job"):
        part.close()
    assert os.listdir(tmp_path) == []


def test_wrong_arguments(tmp_path: Path) -> None:
    for url in ("s3://bucket/out", ms.Remote("https://host/out")):
        with pytest.raises(ms.Unsupported, match="found a URL as the directory of a job"):
            ms.Job.begin(url)
    job = ms.Job.begin(tmp_path / "a")
    with pytest.raises(ms.Error, match="unfinished job") as caught:
        ms.Job.begin(tmp_path / "a")
    assert caught.value.kind == "already_exists"
    with pytest.raises(ms.OptionError, match="the extension"):
        job.part(0, "csv")
    with pytest.raises(ms.OptionError, match="two parts of task 3"):
        job.commit([write(job, 3), write(job, 3)])
    other = ms.Job.begin(tmp_path / "b")
    with pytest.raises(ms.OptionError, match="a part of the job"):
        job.commit([write(other, 0)])
    with pytest.raises(ms.OptionError, match="a job that is not valid"):
        ms.Job.from_json("{}")
    with pytest.raises(TypeError):
        job.commit([1])  # type: ignore[list-item]
    assert ms.Job.parts(tmp_path) is None


def commit_blocked(directory: Path) -> None:
    """The driver: its commit fails after the manifest, and then it is killed."""
    job = ms.Job.begin(directory)
    parts = [write(job, task) for task in range(2)]
    (directory / parts[1].name).mkdir()
    try:
        job.commit(parts)
    except OSError:
        (directory / parts[1].name).rmdir()
        os.kill(os.getpid(), signal.SIGKILL)


def die(directory: Path) -> None:
    """The driver: it is killed before the manifest."""
    write(ms.Job.begin(directory), 0)
    os.kill(os.getpid(), signal.SIGKILL)


def killed(driver: Any, directory: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=driver, args=(directory,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_a_killed_driver(tmp_path: Path) -> None:
    out = tmp_path / "resumed"
    killed(commit_blocked, out)
    assert len(visible(out)) == 1
    with pytest.raises(ms.Error, match="complete it with `millstream commit resume"):
        ms.Job.parts(out)
    ended = command_line("commit", "resume", out)
    assert (ended.returncode, ended.stdout) == (0, "complete: parts: 2, bytes: 28, records: 4\n")
    assert len(ms.Job.parts(out) or []) == 2
    out = tmp_path / "aborted"
    killed(commit_blocked, out)
    assert command_line("commit", "abort", out).stdout == "removed the job\n"
    assert os.listdir(out) == []
    killed(die, out)
    assert visible(out) == []
    ended = command_line("commit", "resume", out)
    assert ended.returncode == 1
    assert "found a job without a manifest" in ended.stderr
    assert command_line("commit", "abort", out).returncode == 0
    ms.Job.begin(out).abort()
