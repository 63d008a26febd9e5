"""Tests the package alone: `tools/python test` runs this in an environment that contains only the wheel."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from typing import Any

import millstream

assert importlib.util.find_spec("numpy") is None, "this environment is not empty"
assert importlib.metadata.version("millstream") == millstream.__version__
assert all("extra ==" in name for name in importlib.metadata.requires("millstream") or [])
assert list(millstream.command(["printf", "one\ntwo\n"])) == [b"one", b"two"]
batch: Any = next(millstream.from_bytes(b"a\n").batches())
assert (list(batch.offsets), batch.offsets.format) == ([0, 2], "I")
try:
    millstream.command(["sh", "-c", "exit 3"]).read()
except millstream.CommandFailed as error:
    assert error.status == 3
else:
    raise AssertionError("a command that fails must raise")
subprocess.run([sys.executable, "-c", "import millstream; millstream.from_bytes(b'')"], check=True)
print("python: the wheel works alone")
