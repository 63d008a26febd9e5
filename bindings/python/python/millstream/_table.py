"""A column of a table, as a numpy array."""

from __future__ import annotations

from typing import Any

from ._native import Memory


def column(kind: str, parts: list[Any]) -> Any:
    """Returns numbers without a copy, unless they come in several parts, and text as objects.

    For missing values, floating point numbers are NaN, dates are NaT, other numbers are masked, and objects are
    `None`."""
    import numpy as np

    if kind == "object":
        objects = np.empty(len(parts), dtype=object)
        objects[:] = parts
        return objects
    values = _joined([np.frombuffer(part, dtype=kind) for part, _ in parts])
    if all(valid is None for _, valid in parts):
        return values
    width = values.dtype.itemsize
    valid = _joined([_validity(valid, memoryview(part).nbytes // width) for part, valid in parts])
    if values.dtype.kind in "fM":
        values = values.copy()
        values[~valid] = "NaT" if values.dtype.kind == "M" else np.nan
        return values
    return np.ma.masked_array(values, mask=~valid)


def _validity(valid: Memory | None, rows: int) -> Any:
    import numpy as np

    return np.ones(rows, dtype=bool) if valid is None else np.frombuffer(memoryview(valid), dtype=bool)


def _joined(arrays: list[Any]) -> Any:
    import numpy as np

    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
