"""Records of CSV, lines and JSON as columns."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._native import Framer, Reader, Remote, location_name, option_error, record_columns
from ._open import from_bytes, open

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._native import Columns
    from ._options import Duplicates, OnBad
    from ._types import Buffer, Location

#: The type of a column: its name, such as "int64", a list of one type, or a dict of members.
DataType: TypeAlias = "str | list[Any] | dict[str, Any]"

#: The framers of formats; that of the elements of a JSON document is an option of the reader.
_FORMATS = {
    "csv": Framer.csv,
    "tsv": lambda: Framer.csv(delimiter=b"\t"),
    "lines": Framer.lines,
    "jsonl": Framer.json_lines,
    "json": None,
}

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "lines",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}

_COMPRESSIONS = (".gz", ".bgz", ".zst", ".xz")


def columns(
    source: Buffer | Location | Reader[Any],
    format: Framer | Literal["csv", "tsv", "lines", "jsonl", "json"] | None = None,
    *,
    header: bool = True,
    schema: Mapping[str, DataType] | str | None = None,
    infer: int | Literal["all", "off"] = 10_000,
    nulls: Iterable[str] = (),
    special_numbers: bool = False,
    decimals: bool = False,
    duplicates: Duplicates = "error",
    ragged: Literal["error", "pad"] = "error",
    on_bad: OnBad = "stop",
    threads: int | None = None,
) -> Columns:
    """Reads records of a file, an object, a reader or bytes into columns, which pyarrow, pandas and polars accept.

        pyarrow.table(ms.columns("orders.csv.gz"))
        pyarrow.table(ms.columns("s3://sales/orders.csv.gz"))
        polars.DataFrame(ms.columns(ms.command(["pg_dump", ...]), "csv"))
        ms.columns(data, ms.Framer.csv(delimiter=b";"), schema={"id": "int64", "price": "decimal128(12, 2)"})

    `format` is "csv", "tsv" (tabs as delimiters), "lines" (one column, `line`), "jsonl" (each line is an object),
    "json" (the elements of an array), or a framer with a dialect; by default it follows from the name of a file or
    object, or from the framer and `json_elements` of a reader. The first record of CSV is the header, or `header=False`
    names columns by numbers.

    Types are those of `schema`, by name ("int64!" for a column without nulls, `["string"]` for a list, a dict for a
    struct), or JSON as `millstream convert --print-schema` prints it. By default they are inferred from the first
    `infer` records, and every value prints back losslessly: `007` stays text. The rules are in docs/types.md. With
    `infer="all"`, this function reads all records, and the columns read the same version again: the source is a path,
    bytes, or an object with a strong ETag, and any other is refused. With "off", columns are text. `nulls`
    are texts that are null outside quotes, such as "NA" or "". `special_numbers` accepts NaN, inf and -inf, and
    `decimals` infers decimals instead of floating point numbers.

    A value that does not fit, and a record that is not valid, is an error with its place, after the batches before it;
    the consumer of the columns raises it as its own exception. `on_bad="skip"` leaves such records out: `rejected`
    counts them, and `rejects` has the first 1,000. `ragged="pad"` fills records that have too few fields with nulls.
    `duplicates` says which of equal keys in an object of JSON counts.

    `threads` turn records into columns: all processors by default. The reader cannot be used afterwards."""
    source, framer = _opened(source, format)
    return record_columns(
        source,
        framer,
        header=header,
        schema=schema if schema is None or isinstance(schema, str) else json.dumps({"fields": _fields(schema)}),
        infer=infer,
        nulls=list(nulls),
        special_numbers=special_numbers,
        decimals=decimals,
        duplicates=duplicates,
        ragged=ragged,
        on_bad=on_bad,
        threads=len(os.sched_getaffinity(0)) if threads is None else threads,
    )


def _opened(source: Any, format: Framer | str | None) -> tuple[Any, Framer | None]:
    """Returns the source and the framer of its records; without one, the reader knows."""
    if isinstance(format, Framer) or (format is None and isinstance(source, Reader)):
        return source, format
    is_named = isinstance(source, (str, os.PathLike, Remote))
    if format is None and is_named:
        name = location_name(source).lower()
        for compression in _COMPRESSIONS:
            name = name.removesuffix(compression)
        format = _ENDINGS.get(os.path.splitext(name)[1])
    words = '"csv", "tsv", "lines", "jsonl", "json" or a Framer'
    if format is None:
        raise option_error("a source whose name does not tell its format", f"format={words}")
    if format not in _FORMATS:
        raise option_error(f"format={format!r}", words)
    framer = _FORMATS[format]
    if framer is not None:
        return source, framer()
    if not isinstance(source, Reader):
        source = open(source, json_elements="") if is_named else from_bytes(source, json_elements="")
    return source, None


def _fields(schema: Mapping[str, DataType]) -> list[dict[str, Any]]:
    return [{"name": name, **_type(of)} for name, of in schema.items()]


def _type(of: DataType) -> dict[str, Any]:
    if isinstance(of, dict):
        return {"type": "struct", "fields": _fields(of)}
    if isinstance(of, list):
        if len(of) != 1:
            raise option_error(f"a list of {len(of)} types", "a list of one type")
        return {"type": "list", "item": _type(of[0])}
    name = of.removesuffix("!")
    return {"type": name} if name == of else {"type": name, "nullable": False}
