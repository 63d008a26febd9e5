"""What a pipe has done."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._errors import CommandEnd
from .._native import WriterEnd


@dataclass
class StageStats:
    """What one stage has done."""

    name: str
    #: Items that came out.
    items: int = 0
    #: Seconds inside of it; of `parallel`, of all workers.
    time: float = 0.0


@dataclass
class Summary:
    """What a pipe has done."""

    #: Records that the source has delivered.
    records: int = 0
    #: Items that came out behind the last stage.
    items: int = 0
    #: Records that a stage raised for and that were passed over, as `on_error` allows.
    failed: int = 0
    #: Whether a stage such as `take` ended it before its source did.
    ended_early: bool = False
    #: Seconds in all, and of these waiting for the source.
    elapsed: float = 0.0
    source_waited: float = 0.0
    stages: list[StageStats] = field(default_factory=list)
    #: How the source's commands ended.
    commands: list[CommandEnd] = field(default_factory=list)
    #: How the writer ended, if that is the sink.
    writer: WriterEnd | None = None
