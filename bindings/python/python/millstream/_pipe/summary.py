"""The statistics of a pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._errors import CommandEnd
from .._native import WriterEnd


@dataclass
class StageStats:
    """The statistics of one stage."""

    name: str
    #: Items that it produced.
    items: int = 0
    #: Seconds inside the stage; for `parallel`, the total of all workers.
    time: float = 0.0


@dataclass
class Summary:
    """The statistics of a pipe."""

    #: Records that the source has delivered.
    records: int = 0
    #: Items that the last stage produced.
    items: int = 0
    #: Records that a stage raised for and that were skipped, as `on_error` allows.
    failed: int = 0
    #: Whether a stage such as `take` ended it before its source did.
    ended_early: bool = False
    #: The total time in seconds, and the part of it spent waiting for the source.
    elapsed: float = 0.0
    source_waited: float = 0.0
    stages: list[StageStats] = field(default_factory=list)
    #: How the source's commands ended.
    commands: list[CommandEnd] = field(default_factory=list)
    #: How the writer ended, if that is the sink.
    writer: WriterEnd | None = None
