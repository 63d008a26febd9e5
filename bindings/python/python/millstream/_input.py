"""The standard input of a command."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import partial
from typing import Any

from ._native import Reader

_PIECE = 1 << 16


def input_of(stdin: Any) -> Any:
    """Returns the argument in the form that the native part accepts: a word, bytes, a file descriptor, or an iterator
    of bytes and text."""
    if isinstance(stdin, (str, bytes, bytearray, memoryview, int)) or stdin is None:
        return stdin
    if isinstance(stdin, Reader):
        return iter(partial(stdin.read, _PIECE), "") if stdin.mode == "r" else iter(stdin.read1, b"")
    if hasattr(stdin, "fileno"):
        try:
            return stdin.fileno()
        except io.UnsupportedOperation:
            # It is in memory, for example.
            pass
    if hasattr(stdin, "read"):
        return _pieces(stdin)
    return iter(stdin) if isinstance(stdin, Iterable) else stdin


def _pieces(file: Any) -> Any:
    while piece := file.read(_PIECE):
        yield piece
