"""Tests that the examples of the README run and print the documented output."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from millstream import bson
from readme import EXAMPLES, README

# A program that prints the first fields of three records, for the example of a tool that may not be installed.
SAMTOOLS = """#!/bin/sh
printf 'r1\\t0\\tchr1\\t10\\t60\\nr2\\t16\\tchr1\\t20\\t30\\nr3\\t0\\tchr2\\t5\\t60\\n'
"""


def test_every_example_says_what_it_prints() -> None:
    assert README.count("```python") == len(EXAMPLES) > 0


@pytest.mark.parametrize(("program", "output"), EXAMPLES, ids=lambda text: text.split("\n")[-2] if text else "")
def test_example(program: str, output: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("Ann\nBob\nCarol\n")
    (tmp_path / "reads.tsv").write_text("r1\t10\t0.5\nr2\t20\t1.5\n")
    (tmp_path / "samtools").write_text(SAMTOOLS)
    (tmp_path / "samtools").chmod(0o755)
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(b"12:00 INFO start\n12:01 ERROR disk full\n12:02 INFO end\n"))
    (tmp_path / "orders.jsonl").write_text('{"price": 2.5}\n{"price": \n{"price": 5}\n')
    (tmp_path / "orders.csv").write_text('item,price\n"Lamp, red",2.5\nChair,40\n')
    players = b"".join(bson.dumps({"name": name}) for name in ("Ann", "Bob"))
    (tmp_path / "players.bson.gz").write_bytes(gzip.compress(players))
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    # Other processes import the file.
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", output)
