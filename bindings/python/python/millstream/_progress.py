"""How a reader gets on, for tqdm and for functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._types import Progress


def hook(progress: Progress) -> Callable[[int, int | None, int], object]:
    """A function for the core to call: of bytes read, bytes in all, and records."""
    bar: Any = progress
    if not hasattr(bar, "update"):
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
