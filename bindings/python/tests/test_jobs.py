"""Tests of jobs, whose parts become visible together or not at all."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millstream as ms
import pytest
from servers import MISSING, versitygw


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
    for url in ("az://container/out", ms.Remote("https://host/out")):
        for call in (ms.Job.begin, ms.Job.parts):
            with pytest.raises(ms.Unsupported, match="expected s3://"):
                call(url)
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


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with the objects of `s3://bucket`, in the store that the environment leads to."""
    with versitygw(tmp_path, monkeypatch) as bucket:
        if bucket is None:
            pytest.skip(MISSING)
        yield bucket


def repeat(directory: str, job: str) -> str:
    """Does work that may have been done, and returns what it has found."""
    joined = ms.Job.join(directory, job)
    if joined is None:
        ms.Job.resume(directory)
        return "done"
    joined.commit([write(joined, 0)])
    return "written"


def check_repetition(directory: str, uploads: Callable[[], str] = str) -> None:
    job = "0123456789abcdef" * 2
    with pytest.raises(ms.OptionError, match="32 hexadecimal digits"):
        ms.Job.join(directory, "x")
    # A process that was killed before the manifest.
    killed = ms.Job.join(directory, job)
    assert killed is not None
    assert killed == ms.Job.join(directory, job)
    write(killed, 0)
    with pytest.raises(ms.Error, match="unfinished job"):
        ms.Job.join(directory, job[::-1])
    assert [repeat(directory, job) for _ in range(3)] == ["written", "done", "done"]
    [part] = ms.Job.parts(f"{directory}/") or []
    assert (ms.open(part).read(), uploads()) == (b"from task 0\nx\n", "")


def test_work_that_is_repeated_is_visible_once(tmp_path: Path) -> None:
    check_repetition(str(tmp_path / "out"))


def test_work_that_is_repeated_in_a_store(store: Path) -> None:
    check_repetition("s3://bucket/out", unfinished)
    assert sorted(path.name[:5] for path in (store / "out").iterdir()) == ["_SUCC", "_mill", "part-"]


def unfinished() -> str:
    listed = command_line("uploads", "ls", "s3://bucket/")
    assert listed.returncode == 0, listed.stderr
    return listed.stdout


def test_jobs_in_a_store(store: Path) -> None:
    url = "s3://bucket/some/out"
    job = ms.Job.begin(url)
    assert job.directory == url
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        parts = pool.starmap(write, [(job, task) for task in range(3)])
    write(job, 1)
    assert [path.name for path in (store / "some/out").iterdir()] == [".millstream-job.lock"]
    with pytest.raises(ms.Error, match="unfinished job") as caught:
        ms.Job.begin(url)
    assert caught.value.kind == "already_exists"
    with pytest.raises(ms.Error, match="`millstream commit abort s3://bucket/some/out`"):
        ms.Job.parts(url)
    for value in (job, parts[0]):
        assert type(value).from_json(value.to_json()) == value
    with pytest.raises(ms.OptionError, match="another directory than that of the job"):
        job.with_remote(ms.Remote("s3://bucket/other"))
    pickle.loads(pickle.dumps(job)).with_remote(ms.Remote(url, part_size=5 << 20)).commit(parts)
    found = ms.Job.parts(url + "/") or []
    assert found == [f"{url}/{part.name}" for part in parts]
    assert [ms.open(part).read() for part in found] == [f"from task {task}\nx\n".encode() for task in range(3)]
    assert unfinished() == ""
    assert command_line("commit", "resume", url).stdout == "complete: parts: 3, bytes: 42, records: 6\n"
    with pytest.raises(ms.Error, match="found a complete job"):
        job.abort()
    # A driver that is killed before the manifest, and a task that is.
    job = ms.Job.begin("s3://bucket/killed")
    write(job, 0)
    assert unfinished() != ""
    assert command_line("commit", "abort", "s3://bucket/killed").stdout == "removed the job\n"
    assert (unfinished(), list((store / "killed").glob("*"))) == ("", [])
    with pytest.raises(ms.Closed, match="no unfinished job"):
        write(job, 1)


def test_tables_in_a_store(store: Path) -> None:
    """What the modules of engines do, without an engine."""
    pa = pytest.importorskip("pyarrow")
    import millstream.arrow as source
    from millstream._jobs import Output, Writers

    table = pa.table({"id": [1, 2, 3], "text": ["a", "b\n", ""]})

    def run(table: Any, output: Output) -> list[ms.Part | None]:
        sent = pickle.loads(pickle.dumps(output))
        return [sent.write(task, [table.slice(task, 1)]) for task in range(3)]

    def fail(table: Any, output: Output) -> Any:
        yield output.write(0, [table])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Writers(fail).parquet(table, "s3://bucket/out")
    assert (unfinished(), list((store / "out").glob("*"))) == ("", [])
    Writers(run).csv(table, "s3://bucket/out")
    for paths in ("s3://bucket/out/", "s3://bucket/out/*.csv"):
        batches = source.read_csv(paths)
        assert pa.Table.from_batches(batches, schema=batches.schema).to_pylist() == table.to_pylist()
    (store / "out/_SUCCESS").unlink()
    for paths in ("s3://bucket/out/", "s3://bucket/out/*.csv"):
        with pytest.raises(ms.Error, match="unfinished job"):
            source.read_csv(paths)
    Output.begin("s3://bucket/empty", "csv").commit([None])
    with pytest.raises(ms.OptionError, match="wrote no parts"):
        source.read_csv("s3://bucket/empty/")
