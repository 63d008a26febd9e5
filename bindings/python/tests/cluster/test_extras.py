"""Tests of the extras, all of which are installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from millstream import _engines


def test_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for extra, (distribution, first, beyond) in _engines.TESTED.items():
        pins = [pin for pin in extras[extra] if pin.partition(">")[0].partition("[")[0] == distribution]
        assert [pin.partition(">")[2] for pin in pins] == [f"={first},<{beyond}"]
        _engines.load(extra, distribution)
        monkeypatch.setitem(_engines.TESTED, extra, (distribution, "0.1", "0.2"))
        with pytest.warns(UserWarning, match=rf"{extra} runs with {distribution} .* tested with 0\.1"):
            _engines.load(extra, distribution)
    with pytest.raises(ModuleNotFoundError, match=r"millstream\.ray needs nothing: install millstream\[ray\]"):
        _engines.load("ray", "nothing")
