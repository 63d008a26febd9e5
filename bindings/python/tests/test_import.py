"""Tests of `import millstream`: it is quick, and every name exists."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import millstream
import pytest

# Importing one of these modules takes longer than the whole of `import millstream`.
HEAVY = {
    "asyncio",
    "concurrent.futures",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "inspect",
    "logging",
    "multiprocessing",
    "numpy",
    "pickle",
    "re",
    "socket",
    "subprocess",
    "threading",
    "typing",
}


def imported_by(program: str) -> set[str]:
    """Returns the modules that a program imports, apart from those that the interpreter imports for itself."""
    report = "import sys; before = set(sys.modules)\n{}\nprint(*sorted(set(sys.modules) - before), sep='\\n')"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n" + report.format(program)]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "program",
    [
        "import millstream",
        "import millstream; list(millstream.command(['printf', 'a']))",
        "import millstream; millstream.Writer.memory().close()",
        "import millstream\ntry: millstream.open('/missing')\nexcept millstream.FileError: pass",
    ],
)
def test_no_heavy_module_is_imported(program: str) -> None:
    imported = imported_by(program)
    assert "millstream._native" in imported
    assert imported & HEAVY == set()


def test_the_test_sees_heavy_modules() -> None:
    assert {"dataclasses", "typing", "inspect"} <= imported_by("import millstream; millstream.pipe")


@pytest.mark.parametrize("name", millstream.__all__)
def test_every_name_can_be_imported_first(name: str) -> None:
    assert imported_by(f"from millstream import {name}") >= {"millstream"}
    assert name in dir(millstream)
    assert getattr(millstream, name) is getattr(millstream, name)


@pytest.mark.parametrize("name", ["aio", "bson"])
def test_modules_are_imported_when_they_are_used(name: str) -> None:
    assert f"millstream.{name}" in imported_by(f"import millstream; millstream.{name}.__name__")
    assert f"millstream.{name}" not in imported_by("import millstream")


def test_import_star_has_every_name() -> None:
    names: dict[str, Any] = {}
    exec("from millstream import *", names)
    assert set(millstream.__all__) <= set(names)


def test_type_checkers_see_the_same_modules() -> None:
    """The names that are imported when they are used are listed twice: for type checkers and for Python."""
    tree = ast.parse(Path(millstream.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen: dict[str | None, list[str]] = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        seen.setdefault(line.module, []).extend(name.name for name in line.names)
    late: Any = vars(millstream)["_LATE"]
    assert seen == late


def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"^module 'millstream' has no attribute 'comand'$") as caught:
        print(millstream.comand)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    assert (caught.value.name, caught.value.obj) == ("comand", millstream)
