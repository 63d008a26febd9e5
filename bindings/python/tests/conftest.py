"""Fixtures and settings that the tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Measured times are meaningless on a machine that is also running other programs.
settings.register_profile("usual", deadline=None, max_examples=100)
settings.register_profile("deep", deadline=None, max_examples=int(os.environ.get("MILLSTREAM_CASES", "5000")))
settings.load_profile("deep" if os.environ.get("MILLSTREAM_DEEP") else "usual")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def text(tmp_path: Path) -> Callable[[bytes], Path]:
    """Creates a file with these bytes."""

    def make(data: bytes) -> Path:
        path = tmp_path / "input"
        path.write_bytes(data)
        return path

    return make
