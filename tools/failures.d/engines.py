"""Measures what engines of clusters answer if a quoted field has line ends where a file is divided, a worker is killed, or the
file is overwritten meanwhile: the second table of `tools/failures`.

Each engine runs the sum of `benchmarks/competitors/cluster/engines.py` several times in one process, whose answers are
compared with the right ones. `tools/setup bench` installs the engines."""

import contextlib
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python/tests/cluster"))
from standalone import standalone

PYTHON = ROOT / "bindings/python/.venv-cluster/bin/python"
COMPETITORS = ROOT / "benchmarks/competitors/cluster"
SOURCES = ROOT / "benchmarks/millstream/cluster/sources.py"
LIMIT = 180  # seconds, after which an engine counts as hanging
SPLIT = 4_000_000

# The name in the table, the package with the version, and the engine as the program names it. `None` is Millstream's program.
ENGINES = {
    "Ray read_csv": ("ray", "ray-lines"),
    "Ray read_csv, newlines_in_values": ("ray", "ray"),
    "Spark csv": ("pyspark", "spark-lines"),
    "Spark csv, multiLine": ("pyspark", "spark"),
    "Dask read_csv": ("dask", "dask-blocks"),
    "Dask read_csv, blocksize=None": ("dask", "dask"),
    "Daft read_csv": ("daft", "daft"),
    "Sail csv, multiLine": ("pysail", "sail"),
    "Millstream on Ray": ("millstream", "ray"),
    "Millstream on Spark": ("millstream", "spark"),
    "Millstream on Dask": ("millstream", "dask"),
    "Millstream on Daft": ("millstream", "daft"),
}
# How the command lines of workers begin or what they contain. Daft and Sail have no other processes.
WORKERS = {"ray": rb"^ray::(?!IDLE|[^\0]*Actor)", "spark": rb"CoarseGrainedExecutorBackend", "dask": rb"spawn_main"}

ROW = ",{value}" + ",text" * 7 + ',"quoted{field}"\n'
# The end of a field, in lines that look like rows, and one without line ends.
LINES = "\n7,7,7,7,7,7,7,7,7,7" * 40
TEXT = " text" * 20
# Long enough that the file has many parts, some of which are over when others begin.
ROWS = 3_000_000
# The clusters of this program, and no others on the machine, have this in their environment.
VARIABLES = {"MILLSTREAM_FAILURES": str(os.getpid())}


@cache
def content(value, rows=ROWS, field=TEXT):
    row = ROW.format(value=value, field=field)
    return "".join(f"{number}{row}" for number in range(rows)).encode()


class Program:
    """A program that repeats its work."""

    def __init__(self, name, path, passes, spark=None):
        package, engine = ENGINES[name]
        own = package == "millstream"
        words = [PYTHON, SOURCES if own else COMPETITORS / "engines.py", "csv", engine, path, f"--passes={passes}"]
        paths = [str(COMPETITORS), *([str(PYTHON.parents[1] / "sail")] if engine == "sail" else [])]
        variables = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), **VARIABLES)
        if spark is not None and engine.startswith("spark"):
            variables["SPARK_MASTER"] = spark
        self.process = subprocess.Popen(
            [*words, f"--split={SPLIT}"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith((b"ready", b"failed", b"count=")):
                self.lines.put(line.decode())
        self.lines.put("failed: the program has ended")

    def line(self):
        """The next line, or `None` if the engine hangs."""
        try:
            return self.lines.get(timeout=LIMIT)
        except queue.Empty:
            return None

    def begin(self):
        """Begins a pass. Returns false if the engine hangs or has ended."""
        if not (self.line() or "").startswith("ready"):
            return False
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return True

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
            time.sleep(1)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def ours():
    """The processes of the clusters of this program, with their command lines."""
    [token] = ["=".join(pair).encode() for pair in VARIABLES.items()]
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if token in (directory / "environ").read_bytes().split(b"\0"):
                yield int(directory.name), (directory / "cmdline").read_bytes()


def outcome(line, right):
    """What an answer means. `right` has the number of rows and the sum of each right answer."""
    if line is None:
        return "hang"
    if line.startswith("failed"):
        return "reported"
    words = dict(word.split("=") for word in line.split())
    return "right" if (int(words["count"]), int(words["sum"])) in right else "wrong data"


def quoted(name, path, repeats, spark):
    path.write_bytes(content(1, 20_000, LINES))
    program = Program(name, path, repeats)
    found = []
    while len(found) < repeats and program.begin():
        found.append(outcome(program.line(), [(20_000, 20_000)]))
    program.close()
    return found


def disturbed(name, path, repeats, spark, disturb, right):
    """Repeats a pass, and disturbs each at a random time. The first two are not: they say how long one takes."""
    first = content(1)
    program = Program(name, path, 4 * repeats, spark)
    found, took = [], 0
    for number in range(4 * repeats):
        path.write_bytes(first)
        if not program.begin():
            break
        start, happened = time.monotonic(), False
        if number >= 2:
            time.sleep(random.uniform(0.1, 0.7) * took)
            # A pass that is over is not disturbed.
            if program.lines.empty():
                happened = disturb(name, path)
        line = program.line()
        if number < 2:
            took = time.monotonic() - start
        elif happened:
            found.append(outcome(line, right))
        if line is None or len(found) == repeats:
            break
    program.close()
    return found


def kill(name, path):
    pattern = WORKERS[ENGINES[name][1].partition("-")[0]]
    workers = [pid for pid, words in ours() if re.search(pattern, words)]
    with contextlib.suppress(IndexError, ProcessLookupError):
        os.kill(random.choice(workers), signal.SIGKILL)
        return True
    return False


def overwrite(name, path):
    with open(path, "r+b") as file:
        file.write(content(2))
    return True


def killed(name, path, repeats, spark):
    if ENGINES[name][1] in ("daft", "sail"):
        return []
    return disturbed(name, path, repeats, spark, kill, [(ROWS, ROWS)])


def changed(name, path, repeats, spark):
    return disturbed(name, path, repeats, spark, overwrite, [(ROWS, ROWS), (ROWS, 2 * ROWS)])


CASES = {
    "a quoted field with line ends": quoted,
    "a worker is killed": killed,
    "the file is overwritten": changed,
}


def version(package):
    line = f"import importlib.metadata as m; print(m.version('{package}'))"
    found = subprocess.run([PYTHON, "-c", line], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def table(repeats, only, wanted, counted):
    """Returns the lines of the table."""
    lines = []
    if not PYTHON.exists():
        print("engines: SKIPPED, they are not installed; run tools/setup bench", file=sys.stderr)
        return lines
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        path = Path(directory, "table.csv")
        [pyspark] = PYTHON.parents[1].glob("lib/python3*/site-packages/pyspark")
        with standalone(pyspark, Path(directory), "1g", VARIABLES) as cluster:
            for case, act in CASES.items():
                if wanted not in case:
                    continue
                for name, (package, _) in ENGINES.items():
                    if only not in name:
                        continue
                    number = version(package)
                    if number is None:
                        print(f"{name}: SKIPPED, it is not installed", file=sys.stderr)
                        continue
                    outcomes = act(name, path, repeats, cluster.address)
                    for pid, _ in ours():
                        # What the engine has left. The cluster of Spark is needed again.
                        with contextlib.suppress(OSError):
                            if b"spark" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                                os.kill(pid, signal.SIGKILL)
                    if outcomes:
                        lines.append(f"| {case} | {name} ({number}) | {counted(outcomes)} |")
                        print(lines[-1], flush=True)
    return lines
