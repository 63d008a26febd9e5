"""Uses the installed package: `tools/package --check python` runs this in an empty environment."""

import gzip
import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys

import millstream
from millstream import bson

VERSION = sys.argv[1]
assert millstream.__version__ == importlib.metadata.version("millstream") == VERSION
assert pathlib.Path(millstream.__file__).is_relative_to(sys.prefix), millstream.__file__
assert importlib.util.find_spec("numpy") is None, "this environment is not empty"
assert all("extra ==" in need for need in importlib.metadata.requires("millstream") or [])

# The end of a stream means that its command succeeded.
got = []
try:
    for line in millstream.command(["sh", "-c", "echo one; echo two; exit 3"]):
        got.append(line)
except millstream.CommandFailed as error:
    assert error.status == 3
else:
    raise AssertionError("a command that fails must raise")
assert got == [b"one", b"two"]

# A file is there when its writer is closed.
with millstream.Writer.path("out.txt") as writer:
    writer.put("a", 1)
assert pathlib.Path("out.txt").read_bytes() == b"a 1\n"

# Compressed input is decoded; if it is truncated, that is an error.
pathlib.Path("lines.txt.gz").write_bytes(gzip.compress(b"".join(b"%d\n" % n for n in range(1000))))
assert millstream.open("lines.txt.gz").count() == 1000
pathlib.Path("cut.gz").write_bytes(pathlib.Path("lines.txt.gz").read_bytes()[:-20])
try:
    millstream.open("cut.gz").count()
except millstream.DecodeError:
    pass
else:
    raise AssertionError("truncated input must raise")

# A document.
assert bson.loads(bson.dumps({"total": 7})) == {"total": 7}

# A pipe, whose modules are imported here.
assert millstream.pipe([1, 2, 3], millstream.map(lambda x: x * x), millstream.collect()) == [1, 4, 9]

# Types for type checkers.
folder = pathlib.Path(millstream.__file__).parent
assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()

# The command line, as a module.
command = [sys.executable, "-m", "millstream", "--version"]
assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"millstream {VERSION}\n"
print("all as promised")
