"""The statistics of a pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._command import CommandEnd
from .._native import WriterEnd


@dataclass
class StageStats:
    """The statistics of one stage."""

    name: str
    #: The number of items that it produced.
    items: int = 0
    #: The time inside the stage, in seconds; for `parallel`, the total of all workers.
    time: float = 0.0


@dataclass
class Summary:
    """The statistics of a pipe."""

    #: The number of records that the source has delivered.
    records: int = 0
    #: The number of items that the last stage produced.
    items: int = 0
    #: The number of records for which a stage raised an exception and that were skipped, as `on_error` allows.
    failed: int = 0
    #: Whether a stage such as `take` ended the pipe before its source ended.
    ended_early: bool = False
    #: The total time in seconds, and the part of it that was spent waiting for the source.
    elapsed: float = 0.0
    source_waited: float = 0.0
    stages: list[StageStats] = field(default_factory=list)
    #: How the source's commands ended.
    commands: list[CommandEnd] = field(default_factory=list)
    #: How the writer ended, if the sink is a writer.
    writer: WriterEnd | None = None
