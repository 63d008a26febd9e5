"""Filters of Spark, applied to batches of Arrow with the same result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _engines

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_arrow: Any = _engines.load("arrow", "pyarrow")
_compute: Any = _engines.load("arrow", "pyarrow", "pyarrow.compute")

_COMPARISONS = {
    "EqualTo": _compute.equal,
    "EqualNullSafe": _compute.equal,
    "GreaterThan": _compute.greater,
    "GreaterThanOrEqual": _compute.greater_equal,
    "LessThan": _compute.less,
    "LessThanOrEqual": _compute.less_equal,
}
_TEXT = {
    "StringStartsWith": _compute.starts_with,
    "StringEndsWith": _compute.ends_with,
    "StringContains": _compute.match_substring,
}


def is_supported(of: Any, schema: pa.Schema) -> bool:
    """Whether a filter has the same result on Arrow as in Spark: it compares a column of integers, floats, strings,
    booleans or dates with values, or any column with null."""
    while hasattr(of, "child"):
        of = of.child
    if len(of.attribute) > 1 or of.attribute[0] not in schema.names:
        return False
    column = schema.field(of.attribute[0]).type
    name, types = type(of).__name__, _arrow.types
    if name in ("IsNull", "IsNotNull"):
        return True
    if name in _TEXT:
        return bool(types.is_string(column))
    values = of.value if name == "In" else [of.value]
    if types.is_floating(column):
        # Columns have no NaN, which is the greatest value in Spark. For `is_in` of Arrow, -0.0 is not 0.0.
        comparable = name != "In" and of.value == of.value
    else:
        comparable = (
            types.is_integer(column)
            or types.is_string(column)
            or types.is_date32(column)
            or (types.is_boolean(column) and name in ("EqualTo", "EqualNullSafe", "In"))
        )
    return comparable and name in (*_COMPARISONS, "In") and None not in values and _fits(values, column)


def _fits(values: Any, column: Any) -> bool:
    """Whether the type of a column has these values."""
    try:
        return bool(_arrow.array(values, column).to_pylist() == list(values))
    except (_arrow.ArrowException, OverflowError, TypeError):
        return False


def apply(filters: Iterable[Any], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which all of these filters are true."""
    for of in filters:
        batch = batch.filter(_mask(of, batch))
    return batch


def _mask(of: Any, batch: pa.RecordBatch) -> Any:
    """For each row: true, false, or null."""
    name = type(of).__name__
    if name == "Not":
        return _compute.invert(_mask(of.child, batch))
    column = batch.column(of.attribute[0])
    if name in ("IsNull", "IsNotNull"):
        return column.is_null() if name == "IsNull" else column.is_valid()
    if name in _TEXT:
        return _TEXT[name](column, of.value)
    if name == "In":
        found = _compute.is_in(column, value_set=_arrow.array(of.value, column.type))
        return _compute.if_else(column.is_valid(), found, None)
    found = _COMPARISONS[name](column, _arrow.scalar(of.value, column.type))
    return found.fill_null(False) if name == "EqualNullSafe" else found
