"""Tests that the examples of the README run and print the documented output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from readme import EXAMPLES, README


def test_every_example_says_what_it_prints() -> None:
    assert README.count("```python") == len(EXAMPLES) > 0


@pytest.mark.parametrize(("program", "output"), EXAMPLES, ids=lambda text: text.split("\n")[-2] if text else "")
def test_example(program: str, output: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("Ann\nBob\nCarol\n")
    (tmp_path / "reads.tsv").write_text("r1\t10\t0.5\nr2\t20\t1.5\n")
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", output)
