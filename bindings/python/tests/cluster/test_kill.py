"""Processes and nodes are killed at random times while an engine reads and writes a table. Each record is there once.

`MILLSTREAM_DEEP=1` makes more runs, and `MILLSTREAM_SEED` repeats the times of those that wrote it."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import data
import kill
import killed
import millstream as ms
import objects
import pytest
from nodes import DaskNodes, RayNodes
from standalone import Standalone, kill_session

psutil: Any = importlib.import_module("psutil")

SEED = int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))

#: What is killed in the runs of each engine, in turn: a process, all processes of a node, or the driver.
KINDS = ("process", "node", "driver", "process", "node")
RUNS = 50 if objects.DEEP else 3

#: Seconds after which an engine hangs.
LIMIT = 300

#: What the command lines of processes contain that can be killed alone.
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
        ready, _, node = self.line().partition(" ")
        assert ready == "ready", log.read_text()[-3000:]
        #: The id of the node that it is on, if it is on one.
        self.node = node

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
        """Kills it with the processes that it has started, so that nothing of it goes on."""
        kill_session(self.process)


class Nodes(Protocol):
    """The nodes of a cluster."""

    address: str

    def names(self) -> list[str]:
        """The ids of the nodes that can be lost."""
        ...

    def lose(self, name: str) -> None:
        """Kills all processes of a node."""

    def replace(self) -> None:
        """Starts a node for each one that was lost."""


class Session:
    """A cluster of an engine, and a driver that is started again after it was killed."""

    def __init__(self, engine: str, nodes: Nodes, place: Path) -> None:
        self.engine = engine
        self.nodes = nodes
        self.log = place / "log"
        # A task takes longer in Spark than elsewhere.
        self.path = data.csv(place / "a.csv", data.ROWS if objects.DEEP and engine != "spark" else objects.ROWS)
        self.right = killed.checksum(data.single(self.path).to_pylist())
        #: The seconds of a run that was not disturbed.
        self.took = 0.0
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self.engine, self.nodes.address, self.path, self.log)
        return self._driver

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver = None

    def measure(self, out: Path) -> None:
        """Makes a run that is not disturbed."""
        driver, begin = self.driver, time.monotonic()
        driver.begin(out)
        self.check(out)
        self.took = time.monotonic() - begin

    def check(self, out: Path) -> None:
        """Waits for the driver: the rows that it has read and written are right."""
        assert self.driver.line() == f"done {self.right}", self.log.read_text()[-3000:]
        assert written(out) == self.right

    def lose(self, draw: random.Random) -> str:
        """Kills all processes of a node that the driver is not on, and returns what it is."""
        name = draw.choice([name for name in self.nodes.names() if name != self.driver.node])
        self.nodes.lose(name)
        return "a node"

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


def spark(place: Path) -> Nodes:
    return Standalone(Path(importlib.import_module("pyspark").__file__ or "").parent, place)


#: The cluster of each engine. A node of Ray that starts while others work takes longer to answer.
CLUSTERS: dict[str, Callable[[Path], Any]] = {
    "ray": lambda _: RayNodes(health_check_failure_threshold=10),
    "dask": DaskNodes,
    "spark": spark,
}


@pytest.fixture(scope="module", params=CLUSTERS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    engine = request.param
    place = tmp_path_factory.mktemp(engine)
    with (
        contextlib.closing(CLUSTERS[engine](place)) as nodes,
        contextlib.closing(Session(engine, nodes, place)) as started,
    ):
        # The first run of a driver takes longer.
        for name in ("first", "second"):
            started.measure(place / name)
        yield started


@pytest.mark.parametrize("number", range(RUNS))
def test_killed(session: Session, number: int, tmp_path: Path) -> None:
    print(f"MILLSTREAM_SEED={SEED}")
    draw = random.Random(f"{SEED} {session.engine} {number}")
    kind = KINDS[number % len(KINDS)]
    if kind == "driver":
        kill_driver(session, draw, tmp_path / "out")
        return
    act = session.lose if kind == "node" else session.kill
    # A run counts if something was killed before the end.
    for attempt in range(20):
        found: list[str] = []
        out, after = tmp_path / f"{attempt}", draw.uniform(0, session.took)
        timer = threading.Timer(after, lambda found=found: found.append(act(draw)))
        begin = time.monotonic()
        session.driver.begin(out)
        timer.start()
        session.check(out)
        took = time.monotonic() - begin
        # What is killed after the answer does not count.
        is_disturbed = any(found)
        timer.cancel()
        timer.join()
        session.nodes.replace()
        print(f"after {after:.2f} of {session.took:.2f} s: {found}")
        if is_disturbed:
            return
        session.took = min(session.took, took)
    pytest.fail("nothing was killed in time")


def kill_driver(session: Session, draw: random.Random, out: Path) -> None:
    """Its job is completed, or removed and written by another driver. Nothing is visible before the manifest."""
    session.driver.begin(out)
    after = draw.uniform(0, session.took)
    time.sleep(after)
    session.close()
    exists = out.exists()
    found = sorted(os.listdir(out)) if exists else []
    print(f"the driver, after {after:.2f} of {session.took:.2f} s: {found}")
    has_manifest = "_millstream.json" in found
    assert has_manifest or all(name.startswith(".") for name in found)
    if draw.random() < 0.5:
        resumed, refused = kill.end("resume", out)
        assert bool(resumed) == has_manifest, refused
    is_complete = (out / "_SUCCESS").exists()
    aborted, refused = kill.end("abort", out)
    if is_complete:
        assert "found a complete job" in refused
    elif not exists:
        assert "No such file or directory" in refused
    else:
        assert aborted == ("removed the job\n" if found else "no job\n")
        assert os.listdir(out) == []
    if not is_complete:
        # Nothing that is left of the job hinders another one.
        session.driver.begin(out)
        session.check(out)
    assert written(out) == session.right
