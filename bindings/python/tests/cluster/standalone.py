"""A standalone cluster of Spark on this machine, for tests and for `tools/failures`."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Processes of Java that live for seconds spend much of their time compiling otherwise.
JAVA = "-XX:TieredStopAtLevel=1"

#: Settings of a session that begins when both workers can work for it.
BOTH = {"spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.cores.max": "2"}


class Standalone:
    """A master, and two workers that Spark takes for two hosts: it starts no second attempt of a task on one host.

    `address` is that of the master, and `pyspark` the directory of the package."""

    HOSTS = ("127.0.0.2", "127.0.0.3")

    def __init__(
        self, pyspark: Path, place: Path, memory: str = "768m", variables: Mapping[str, str] | None = None
    ) -> None:
        self._program = str(pyspark / "bin/spark-class")
        self._place = place
        self._memory = memory
        self._environment = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": JAVA, **(variables or {})}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"spark://127.0.0.1:{port}"
        self._master = self._start("master.Master", "127.0.0.1", "--port", str(port))
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.replace()

    def _start(self, name: str, host: str, *words: str) -> subprocess.Popen[bytes]:
        command = [self._program, f"org.apache.spark.deploy.{name}", "--host", host, "--webui-port", "0", *words]
        return start_session(command, self._environment)

    def replace(self) -> None:
        """Starts the workers that are missing."""
        for host in self.HOSTS:
            if host not in self._workers:
                resources = ["--cores", "1", "--memory", self._memory, "--work-dir", str(self._place / host)]
                self._workers[host] = self._start("worker.Worker", host, *resources, self.address)

    def names(self) -> list[str]:
        """The hosts of the workers."""
        return list(self._workers)

    def lose(self, name: str) -> None:
        """Kills a worker with its executors, as a node that is lost."""
        kill_session(self._workers.pop(name))

    def close(self) -> None:
        for process in (self._master, *self._workers.values()):
            kill_session(process)


def start_session(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Starts a process without output in a new session."""
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=silent, stderr=silent, start_new_session=True, env=environment)


def kill_session(process: subprocess.Popen[Any]) -> None:
    """Kills all processes of the session that this process has begun, whatever groups they have."""
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == process.pid:
                os.kill(pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def standalone(
    pyspark: Path, place: Path, memory: str = "768m", variables: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """A standalone cluster, which is killed at the end."""
    with contextlib.closing(Standalone(pyspark, place, memory, variables)) as started:
        yield started


def session(address: str, settings: Mapping[str, str] | None = None) -> Any:
    """Returns a session of this cluster that knows the package, with these settings. It is the driver."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master(address)
    standard = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
    }
    for name, value in {**standard, **(settings or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    importlib.import_module("millstream.spark").register(made)
    return made
