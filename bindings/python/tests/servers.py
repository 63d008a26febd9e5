"""versitygw, a server for S3 that keeps each object in a file. As a plugin of pytest, it has fixtures for engines."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).resolve().parents[3] / ".servers/bin/versitygw"

#: Why tests are skipped without it.
MISSING = "versitygw is missing: see tools/setup"


@contextlib.contextmanager
def versitygw(place: Path, environment: pytest.MonkeyPatch) -> Iterator[Path | None]:
    """Starts it, and sets the variables that lead this process and its children to it. Yields the folder with the
    objects of `s3://bucket`, or `None` if the server is missing."""
    if not _PROGRAM.exists():
        assert os.environ.get("CI") != "true", MISSING
        yield None
        return
    bucket = place / "objects" / "bucket"
    bucket.mkdir(parents=True)
    (place / "attributes").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    access = ["--access", "some-key", "--secret", "some-secret", "--region", "eu-north-1", "--port", f"{host}:{port}"]
    folders = ["posix", "--sidecar", str(place / "attributes"), str(bucket.parent)]
    variables = {"ENDPOINT_URL": f"http://{host}:{port}", "REGION": "eu-north-1"}
    variables |= {"ACCESS_KEY_ID": "some-key", "SECRET_ACCESS_KEY": "some-secret"}
    for name, value in variables.items():
        environment.setenv(f"AWS_{name}", value)
    with subprocess.Popen([_PROGRAM, *access, *folders], stdout=subprocess.DEVNULL) as server:
        try:
            while True:
                assert server.poll() is None
                try:
                    socket.create_connection((host, port)).close()
                    break
                except OSError:
                    time.sleep(0.01)
            yield bucket
        finally:
            server.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """The store to which the environment leads. An engine must start its processes after it."""
    place = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as environment, versitygw(place, environment) as bucket:
        yield bucket


@pytest.fixture
def store(server: Path | None) -> Path:
    """The folder with the objects of `s3://bucket`."""
    if server is None:
        pytest.skip(MISSING)
    return server
