"""Names for the types in signatures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, Union


class Readable(Protocol):
    """A file-like object in binary mode."""

    def read(self, size: int, /) -> bytes | None: ...


class Writable(Protocol):
    """A file-like object in binary mode."""

    def write(self, data: bytes, /) -> int | None: ...


class Bar(Protocol):
    """A progress bar, such as tqdm's."""

    def update(self, n: float | None = ..., /) -> bool | None: ...


if TYPE_CHECKING:
    # An object that supports the buffer protocol: bytes, a memoryview, an array, a mapped file.
    from typing_extensions import Buffer as Buffer

    from ._native import Remote
else:
    Buffer = bytes | bytearray | memoryview
#: Where a source or sink is: a path, or a URL if it is text or a `Remote`.
Location: TypeAlias = Union[str, bytes, "os.PathLike[str]", "Remote"]
Argument: TypeAlias = Union[str, bytes, "os.PathLike[str]"]
Progress: TypeAlias = Bar | Callable[[int, int | None, int], object]
