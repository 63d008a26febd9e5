"""What every engine must do with objects in a store. The environment leads to it."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import millstream as ms
import pyarrow as pa
import pytest

DEEP = bool(os.environ.get("MILLSTREAM_DEEP"))

#: How many objects are read, one of which is corrupt, and how often an object is replaced while it is read.
OBJECTS, REPLACED = (100, 30) if DEEP else (4, 1)

#: A task takes longer in Spark than elsewhere.
ROWS = 5_000


@dataclasses.dataclass
class Engine:
    """An engine, and the folder with its objects of `s3://bucket/NAME`."""

    name: str
    #: Reads URLs of a format, with splits of this size.
    read: Callable[[str, str, int], Any]
    #: The rows, in order.
    rows: Callable[[Any, pa.Schema], pa.Table]
    #: Writes Parquet to a URL.
    write: Callable[[Any, str], None]
    #: The same rows, of which the later ones fail.
    fail: Callable[[Any], Any]

    def url(self, key: str) -> str:
        return f"s3://bucket/{self.name}/{key}"


def put(url: str, path: Path) -> None:
    with ms.Writer.path(ms.Remote(url), existing="replace", encode="off") as out:
        out.write(path.read_bytes())


def check_jobs(engine: Engine, store: Path, place: Path) -> None:
    """A job reads an object whose key has odd characters, and writes all rows or nothing."""
    url, path = engine.url("ord er/é%41+#?[1]&;'\"\\.csv"), data.csv(place / "a.csv", ROWS)
    put(url, path)
    whole = data.single(path)
    frame = engine.read("csv", url, data.SIZE)
    assert engine.rows(frame, whole.schema) == whole
    engine.write(frame, engine.url("out"))
    assert data.written(engine.url("out/")).cast(whole.schema) == whole
    assert (store / engine.name / "out/_SUCCESS").exists()
    with pytest.raises(Exception, match="already exists"):
        engine.write(frame, engine.url("out"))
    with pytest.raises(Exception, match="a late row"):
        engine.write(engine.fail(frame), engine.url("failed"))
    assert list((store / engine.name).glob("failed/*")) == []
    listed = [sys.executable, "-m", "millstream", "uploads", "ls", "s3://bucket/"]
    assert subprocess.run(listed, capture_output=True, text=True, check=True).stdout == ""


def check_corruption(engine: Engine, place: Path) -> None:
    """The error of one corrupt object among several names it."""
    path = place / "a.gz"
    for number in range(OBJECTS):
        lines = b"".join(b"%d of %d\n" % (n * 2654435761, number) for n in range(2_000))
        compressed = bytearray(gzip.compress(lines))
        if number == OBJECTS // 2:
            compressed[len(compressed) // 2] ^= 1
        path.write_bytes(compressed)
        put(engine.url(f"many/a b {number}.gz"), path)
    with pytest.raises(Exception, match=f"{engine.url(f'many/a b {OBJECTS // 2}.gz')}: ") as caught:
        engine.rows(engine.read("lines", engine.url("many/*.gz"), data.SIZE), data.LINES)
    assert "source changed" not in str(caught.value)


def check_replacement(engine: Engine, place: Path) -> None:
    """An object that is replaced after it was planned is an error, unless all of it was read before."""
    url, path, other = engine.url("replaced"), data.lines(place / "a.txt"), data.lines(place / "b.txt", data.ROWS + 1)
    whole, errors = data.single(path), []
    for attempt in range(REPLACED):
        put(url, path)
        frame = engine.read("lines", url, data.SIZE)
        # The first time, no task has begun.
        thread = threading.Timer(random.random() if attempt else 0, put, (url, other))
        thread.start()
        if attempt == 0:
            thread.join()
        try:
            found = engine.rows(frame, whole.schema)
        except Exception as error:
            errors.append(str(error))
        else:
            assert found == whole
        thread.join()
    assert errors
    assert [error for error in errors if f"{url}: source changed" not in error] == []
