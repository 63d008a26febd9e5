"""The programs of docs/cluster.md, which have the same output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[4] / "docs" / "cluster.md"
PROGRAMS: list[str] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def check(imported: str, directory: Path, capsys: Any, *, writes: bool = False) -> None:
    """Runs the program with this import that writes or only reads. It finds a session of its engine if there is one."""
    programs = [program for program in PROGRAMS if f"import {imported}\n" in program]
    [program] = [program for program in programs if (".write_" in program) == writes]
    orders = directory / "orders"
    orders.mkdir()
    for part in range(3):
        rows = "".join(f'{n},"an order,\nwith ""quotes""",{n / 4}\n' for n in range(part * 1000, part * 1000 + 1000))
        (orders / f"{part}.csv").write_text(f"id,text,price\n{rows}")
    capsys.readouterr()
    program = program.replace('"orders/', f'"{orders}/')
    for name in ("copy", "bad"):
        program = program.replace(f'"{name}"', f'"{directory / name}"')
    exec(program, {"__name__": "program"})
    assert capsys.readouterr().out.splitlines()[-1] == f"3000 {sum(range(3000)) / 4}"
