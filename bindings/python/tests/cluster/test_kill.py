"""Processes of engines are killed at random times, while a table is read and written. Each record is there once.

`MILLSTREAM_DEEP=1` makes more runs, and `MILLSTREAM_SEED` repeats the times of those that wrote it."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import killed
import millstream as ms
import objects
import pytest
from standalone import standalone

psutil: Any = importlib.import_module("psutil")

SEED = int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))

#: The runs of each engine. One of five kills the driver, and the others another process.
RUNS, DRIVERS = 50 if objects.DEEP else 3, 5

#: Seconds after which an engine hangs.
LIMIT = 300

#: What the command lines of processes contain that can be killed.
VICTIMS = {
    "ray": r"^ray::(?!IDLE|.*Agent|.*Actor)\w+",
    "dask": "spawn_main",
    "spark": "CoarseGrainedExecutorBackend|pyspark.daemon",
}


class Driver:
    """A process of `killed.py`."""

    def __init__(self, engine: str, address: str, path: Path, log: Path) -> None:
        words = [sys.executable, killed.__file__, engine, address, str(path)]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self.line() == "ready"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())
        self._lines.put("the driver has ended")

    def line(self) -> str:
        return self._lines.get(timeout=LIMIT)

    def begin(self, out: Path) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{out}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """Kills the group of its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Session:
    """A cluster of an engine, and a driver that is started again after it was killed."""

    def __init__(self, engine: str, address: str, place: Path) -> None:
        self.engine = engine
        self.address = address
        self.log = place / "log"
        self.path = data.csv(place / "a.csv", objects.ROWS if engine == "spark" else data.ROWS)
        self.right = killed.checksum(data.single(self.path).to_pylist())
        #: The seconds of a run.
        self.took = 0.0
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self.engine, self.address, self.path, self.log)
        return self._driver

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver = None

    def measure(self, place: Path) -> None:
        """Measures the second run: the first one needs more time."""
        for name in ("first", "second"):
            driver, begin = self.driver, time.monotonic()
            driver.begin(place / name)
            self.check(place / name)
            self.took = time.monotonic() - begin

    def check(self, out: Path) -> None:
        """Waits for the driver: the rows that it has read and written are right."""
        assert self.driver.line() == f"done {self.right}", self.log.read_text()[-3000:]
        assert written(out) == self.right

    def kill(self, draw: random.Random) -> str:
        """Kills a process of the cluster, and returns what it is, or nothing if there is none."""
        own = {process.pid for process in psutil.Process(self.driver.process.pid).children(recursive=True)}
        found: dict[str, list[Any]] = {}
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = "" if process.pid in own else " ".join(process.cmdline())
                if match := re.search(VICTIMS[self.engine], words):
                    found.setdefault(match.group(), []).append(process)
        if not found:
            return ""
        kind = draw.choice(sorted(found))
        with contextlib.suppress(psutil.NoSuchProcess):
            draw.choice(found[kind]).kill()
            return kind
        return ""


def written(out: Path) -> str:
    parts = ms.Job.parts(out)
    assert parts is not None
    return killed.checksum([json.loads(line) for part in parts for line in Path(part).open(encoding="utf-8")])


@contextlib.contextmanager
def ray(place: Path) -> Iterator[Session]:
    test_ray: Any = importlib.import_module("test_ray")
    # A node that starts while others work takes longer to answer.
    cluster = test_ray.start(health_check_failure_threshold=10)
    try:
        yield Session("ray", cluster.address, place)
    finally:
        cluster.shutdown()


@contextlib.contextmanager
def dask(place: Path) -> Iterator[Session]:
    distributed: Any = importlib.import_module("distributed")
    # By default a worker that is not back after 15 s is given up, and with the second one the cluster.
    importlib.import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "512MiB", "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        yield Session("dask", cluster.scheduler_address, place)


@contextlib.contextmanager
def spark(place: Path) -> Iterator[Session]:
    pyspark = Path(importlib.import_module("pyspark").__file__ or "").parent
    with standalone(pyspark, place) as address:
        yield Session("spark", address, place)


@pytest.fixture(scope="module", params=[ray, dask, spark], ids=lambda start: start.__name__)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    place = tmp_path_factory.mktemp(request.param.__name__)
    with request.param(place) as started, contextlib.closing(started):
        started.measure(place)
        yield started


@pytest.mark.parametrize("number", range(RUNS))
def test_killed(session: Session, number: int, tmp_path: Path) -> None:
    print(f"MILLSTREAM_SEED={SEED}")
    draw = random.Random(f"{SEED} {session.engine} {number}")
    if number % DRIVERS == DRIVERS // 2:
        kill_driver(session, draw, tmp_path / "out")
        return
    # A run counts if the process was killed before the end.
    for attempt in range(20):
        kinds: list[str] = []
        out, after = tmp_path / f"{attempt}", draw.uniform(0, session.took)
        timer = threading.Timer(after, lambda kinds=kinds: kinds.append(session.kill(draw)))
        session.driver.begin(out)
        timer.start()
        session.check(out)
        # A process that is killed after the answer does not count.
        is_disturbed = any(kinds)
        timer.cancel()
        timer.join()
        print(f"after {after:.2f} of {session.took:.2f} s: {kinds}")
        if is_disturbed:
            return
    pytest.fail("no process was killed in time")


def kill_driver(session: Session, draw: random.Random, out: Path) -> None:
    """Its job is completed or removed."""
    session.driver.begin(out)
    after = draw.uniform(0, session.took)
    time.sleep(after)
    session.close()
    found = sorted(path.name for path in out.iterdir()) if out.exists() else []
    print(f"the driver, after {after:.2f} of {session.took:.2f} s: {found}")
    commit = [sys.executable, "-m", "millstream", "commit"]
    if found and draw.random() < 0.5:
        resumed = subprocess.run([*commit, "resume", out], capture_output=True, check=False)
        assert (resumed.returncode == 0) == ("_millstream.json" in found), resumed.stderr
    if found and not (out / "_SUCCESS").exists():
        subprocess.run([*commit, "abort", out], stdout=subprocess.DEVNULL, check=True)
        assert list(out.iterdir()) == []
    elif found:
        assert written(out) == session.right
