"""The programs of docs/cluster.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import data
import pytest

PAGE = Path(__file__).resolve().parents[4] / "docs" / "cluster.md"
PROGRAMS: list[str] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

MAIN = 'if __name__ == "__main__":'

#: What the programs print.
TOTAL = f"3000 {sum(range(3000)) / 4}"


def write_orders(directory: Path) -> None:
    orders = directory / "orders"
    orders.mkdir()
    for part in range(3):
        rows = "".join(f'{n},"an order,\nwith ""quotes""",{n / 4}\n' for n in range(part * 1000, part * 1000 + 1000))
        (orders / f"{part}.csv").write_text(f"id,text,price\n{rows}")


def _run(program: str, directory: Path, names: dict[str, Any]) -> None:
    """Runs a program whose files are in this directory."""
    program = program.replace('"orders/', f'"{directory}/orders/')
    for name in ("copy", "bad", "checkpoint"):
        program = program.replace(f'"{name}"', f'"{directory / name}"')
    exec(program, names)


def check(imported: str, directory: Path, capsys: Any, *, writes: bool = False) -> None:
    """Runs the program with this import that writes or only reads, and prints the number of orders and the sum of their
    prices. It finds a session of its engine if there is one."""
    programs = [program for program in PROGRAMS if f"import {imported}\n" in program and "print(" in program]
    [program] = [program for program in programs if (".write_" in program) == writes and MAIN not in program]
    write_orders(directory)
    capsys.readouterr()
    _run(program, directory, {"__name__": "program"})
    assert capsys.readouterr().out.splitlines()[-1] == TOTAL


def check_script(directory: Path) -> None:
    """Runs the program that starts processes, which import it."""
    [program] = [program for program in PROGRAMS if MAIN in program]
    write_orders(directory)
    script = directory / "program.py"
    script.write_text(program, encoding="utf-8")
    ended = subprocess.run([sys.executable, script], cwd=directory, stdout=subprocess.PIPE, text=True, check=True)
    assert ended.stdout == f"{TOTAL}\n"


def run(words: str, directory: Path, **names: Any) -> dict[str, Any]:
    """Runs the program with these words that continues others, whose names it has, and returns all names."""
    [program] = [program for program in PROGRAMS if words in program and "print(" not in program]
    names["__name__"] = "program"
    _run(program, directory, names)
    return names


def check_command(words: str, directory: Path, **names: Any) -> None:
    """Runs the program with these words whose tasks read the output of a command. If one command fails, nothing is
    written."""
    write_orders(directory)
    names = run("millstream.command(", directory, **names)
    run(words, directory, **names)
    rows = data.written(directory / "copy")
    assert rows.to_pydict() == {"id": list(range(3000)), "price": [n / 4 for n in range(3000)]}
    shutil.rmtree(directory / "copy")
    path = directory / "orders/1.csv"
    # It fails after most of its output.
    path.write_bytes(path.read_bytes() + b'2000,"\x81",0\n')
    with pytest.raises(Exception, match=r"the command `iconv .* exited with status 1"):
        run(words, directory, **names)
    assert list((directory / "copy").iterdir()) == []
