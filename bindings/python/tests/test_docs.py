"""Tests of the documentation that `help` shows."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import millstream
import pytest
from millstream import aio, bson
from millstream._options import RemoteSettings, WriterSettings
from millstream._reader_options import CommandOptions, ReaderOptions
from millstream.bson import julia

MODULES = [millstream, aio, bson, julia]
READERS = ["open", "open_split", "stdin", "from_fd", "from_bytes", "from_file", "from_callback", "tcp"]
COMMANDS = ["command", "pipeline", "shell"]


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names, with the methods and properties of classes."""
    for name in {*module.__all__, *READERS[:1]} & set(dir(module)):
        value = getattr(module, name)
        if inspect.isclass(value):
            fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
            for attribute, member in vars(value).items():
                is_member = (
                    inspect.isroutine(member) or inspect.isgetsetdescriptor(member) or isinstance(member, property)
                )
                if is_member and not attribute.startswith("_") and attribute not in fields:
                    yield f"{module.__name__}.{name}.{attribute}", member
        if inspect.isclass(value) or inspect.isroutine(value):
            yield f"{module.__name__}.{name}", value


NAMES = dict(pair for module in MODULES for pair in public(module))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_has_documentation(name: str) -> None:
    assert inspect.getdoc(NAMES[name])


def test_the_names_are_found() -> None:
    assert {"millstream.open", "millstream.Reader.read", "millstream.Reader.name", "millstream.aio.Writer.put"} <= set(
        NAMES
    )


def test_help_shows_every_option_of_a_remote() -> None:
    documentation = inspect.getdoc(millstream.Remote) or ""
    for option in RemoteSettings.__annotations__:
        assert f"\n    {option}: " in documentation, option
    assert "\n    anonymous: bool\n" in documentation


@pytest.mark.parametrize("module", [millstream, aio])
@pytest.mark.parametrize("name", [*READERS, *COMMANDS, "Writer"])
def test_help_shows_every_option(module: ModuleType, name: str) -> None:
    options: set[str] = set((ReaderOptions if name in READERS else CommandOptions).__annotations__)
    if name == "Writer":
        options = set(WriterSettings.__annotations__)
    documentation = inspect.getdoc(getattr(module, name)) or ""
    for option in options | ({"encoding"} if name != "Writer" else set()):
        assert f"\n    {option}: " in documentation, option
    assert max(map(len, documentation.splitlines())) <= 120
    assert '        "off": Never.' in documentation or name == "Writer"


def test_the_stub_has_the_same_documentation() -> None:
    """Type checkers and editors show the text of the stub, and `help` that of the native part."""
    stub = ast.parse(Path(millstream.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
    compared = 0
    for node in stub.body:
        if not isinstance(node, ast.ClassDef) or not hasattr(millstream, node.name):
            continue
        native = getattr(millstream, node.name)
        parts: list[ast.ClassDef | ast.FunctionDef] = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        for part in [node, *parts]:
            expected = ast.get_docstring(part)
            if expected and not part.name.startswith("__"):
                member = native if part is node else getattr(native, part.name)
                found = (inspect.getdoc(member) or "").split("\n\nOptions:")[0]
                assert " ".join(found.split()) == " ".join(expected.split()), f"{node.name}.{part.name}"
                compared += 1
    assert compared > 60
