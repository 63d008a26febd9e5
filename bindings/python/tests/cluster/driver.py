"""A process that writes lines as a job, and is killed while it commits.

Its arguments are the engine, `before` or `after` (the manifest), the input, the output, and the address of Ray."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import kill
import millstream as ms
import pytest
from millstream import _jobs


def main(engine: str, when: str, path: str, out: str, address: str = "") -> None:
    if engine == "spark":
        from test_spark import start

        session = start()
        killing = session.read.format("millstream").option("splitSize", 64 << 10).load(path).write.format("committing")
        killing.option("when", when).option("group", os.getpgid(0)).mode("append").save(out)
        return
    source: Any = importlib.import_module(f"millstream.{engine}")
    begin: Any = _jobs.Output.begin
    _jobs.Output.begin = lambda *words: kill.WhileCommitting(begin(*words), when, os.getpgid(0))  # type: ignore[assignment]
    # The tasks of Dask are threads of this process.
    if engine == "ray":
        ray: Any = importlib.import_module("ray")
        ray.cloudpickle.register_pickle_by_value(kill)
        ray.init(address=address, log_to_driver=False)
    source.write_lines(source.read_lines(path, split_size=64 << 10), out)


def check(engine: str, when: str, path: Path, out: Path, address: str = "") -> None:
    """Runs the driver until it is killed, and then ends its job: it is completed only after the manifest."""
    words = [sys.executable, __file__, engine, when, str(path), str(out), address]
    # It imports modules of the other tests. The group of its processes is killed.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    ended = subprocess.run(words, start_new_session=True, stdout=subprocess.DEVNULL, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    visible = [name for name in os.listdir(out) if name.startswith("part-")]
    assert bool(visible) == (when == "after")
    with pytest.raises(ms.Error, match="unfinished job"):
        ms.Job.parts(out)
    resumed, refused = kill.end("resume", out)
    if when == "before":
        assert "found a job without a manifest" in refused
        assert kill.end("abort", out) == ("removed the job\n", "")
        assert os.listdir(out) == []
        return
    assert resumed.startswith("complete: parts: ")
    parts = ms.Job.parts(out)
    assert parts is not None
    assert b"".join(Path(part).read_bytes() for part in parts).splitlines() == path.read_bytes().splitlines()


if __name__ == "__main__":
    main(*sys.argv[1:])
