"""The progress of a reader, for tqdm and for functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._native import option_error
from ._types import Progress


def hook(progress: Progress) -> Callable[[int, int | None, int], object]:
    """Returns a function for the core to call with bytes read, total bytes, and records."""
    bar: Any = progress
    if not hasattr(bar, "update") or isinstance(bar, (dict, set)):
        if not callable(bar):
            raise option_error(f"observer={bar!r}", "a bar with update(), or a function")
        told: Callable[[int, int | None, int], object] = bar
        return told
    shown = 0

    def update(source_bytes: int, source_size: int | None, records: int) -> None:
        nonlocal shown
        if source_size is not None and getattr(bar, "total", 0) is None:
            bar.total = source_size
        bar.update(source_bytes - shown)
        shown = source_bytes

    return update
