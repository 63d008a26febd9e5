"""A standalone cluster of Spark on this machine, for tests and for `tools/failures`."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def standalone(
    pyspark: Path, place: Path, memory: str = "768m", variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Starts a master, and two workers that Spark takes for two hosts: it starts no second attempt of a task on one
    host. Yields the address of the master. `pyspark` is the directory of the package."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"

    def start(name: str, host: str, *words: str) -> subprocess.Popen[bytes]:
        program = [str(pyspark / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
        command = [*program, "--host", host, "--webui-port", "0", *words]
        silent, environment = subprocess.DEVNULL, {**os.environ, **(variables or {})}
        return subprocess.Popen(command, stdout=silent, stderr=silent, start_new_session=True, env=environment)

    processes = [start("master.Master", "127.0.0.1", "--port", str(port))]
    try:
        for host in ("127.0.0.2", "127.0.0.3"):
            resources = ["--cores", "1", "--memory", memory, "--work-dir", str(place / host)]
            processes.append(start("worker.Worker", host, *resources, address))
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def session(address: str, settings: Mapping[str, str] | None = None) -> Any:
    """Returns a session of this cluster that knows the package, with these settings. It is the driver."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master(address)
    standard = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
    }
    for name, value in {**standard, **(settings or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    importlib.import_module("millstream.spark").register(made)
    return made
