"""Reads the examples of behaviour that all languages share: `vectors/*.tsv`."""

from __future__ import annotations

from pathlib import Path

VECTORS = Path(__file__).resolve().parents[3] / "vectors"


def cases(name: str) -> list[list[str]]:
    """Returns the columns of each case; the first is its name."""
    lines = (VECTORS / name).read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]
