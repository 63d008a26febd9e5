"""How a command ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    argv: tuple[str, ...]
    #: As in `subprocess`: negative for a signal; `None` if the system does not report it.
    status: int | None
    #: The last 4 KiB of its standard error, if Millstream reads it.
    stderr_tail: bytes
