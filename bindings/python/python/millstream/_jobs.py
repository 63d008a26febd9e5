"""Tables as files of a job: each task writes a part, and all parts become visible together.

The engines (`millstream.ray`, `millstream.dask`, `millstream.spark`) are thin modules over `Output`, which is made on
the driver, pickled, and written by the tasks, and over `Writers`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _engines
from ._native import Job, option_error

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    import pyarrow as pa

    from ._native import Part, PartWriter

    _Table = TypeVar("_Table", "pa.RecordBatch", "pa.Table")

#: The formats of parts, whose names are also their extensions, except that of lines.
Format: TypeAlias = Literal["lines", "csv", "jsonl", "parquet"]

FORMATS: tuple[Format, ...] = ("lines", "csv", "jsonl", "parquet")


@dataclasses.dataclass(frozen=True)
class Output:
    """What the tasks of a job write. It can be pickled."""

    job: Job
    format: Format

    @classmethod
    def begin(cls, directory: str | os.PathLike[str], format: Format) -> Output:
        """Begins a job that writes to an empty directory."""
        return cls(Job.begin(directory), format)

    def write(self, task: int, tables: Iterable[pa.RecordBatch | pa.Table]) -> Part | None:
        """Writes the part of an attempt of a task. Without any columns, there is no part."""
        columns = _with_columns(tables)
        first = next(columns, None)
        if first is None:
            return None
        with self.job.part(task, ".txt" if self.format == "lines" else f".{self.format}") as part:
            _ENCODERS[self.format](part, first.schema, _counted(part, first, columns))
        return part.result

    def commit(self, parts: Iterable[Part | None]) -> None:
        """Makes the parts of all tasks visible."""
        try:
            self.job.commit([part for part in parts if part is not None])
        except BaseException as error:
            error.add_note(
                f"the job in {self.job.directory} is not complete: run `millstream commit resume` or "
                f"`millstream commit abort` with this directory"
            )
            raise


class Writers:
    """The functions of an engine, whose `write` runs the tasks and returns their parts.

    A directory is a path, or a URL: `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`."""

    def __init__(self, write: Callable[[Any, Output], Iterable[Part | None]]) -> None:
        self._write = write

    def lines(self, table: Any, directory: str | os.PathLike[str]) -> None:
        """Writes the only column of a table as lines, to an empty directory: all of it or nothing."""
        self._run(table, directory, "lines")

    def csv(self, table: Any, directory: str | os.PathLike[str]) -> None:
        """Writes CSV with a header to an empty directory: all of it or nothing."""
        self._run(table, directory, "csv")

    def jsonl(self, table: Any, directory: str | os.PathLike[str]) -> None:
        """Writes newline-delimited JSON to an empty directory: all of it or nothing."""
        self._run(table, directory, "jsonl")

    def parquet(self, table: Any, directory: str | os.PathLike[str]) -> None:
        """Writes Parquet to an empty directory: all of it or nothing."""
        self._run(table, directory, "parquet")

    def _run(self, table: Any, directory: str | os.PathLike[str], format: Format) -> None:
        output = Output.begin(directory, format)
        try:
            parts = list(self._write(table, output))
        except BaseException:
            output.job.abort()
            raise
        output.commit(parts)


def _with_columns(tables: Iterable[_Table]) -> Iterator[_Table]:
    """The tables without those of no columns, which must have no rows."""
    for table in tables:
        if table.schema.names:
            yield table
        elif table.num_rows:
            raise option_error(f"{table.num_rows} rows without columns", "at least one column")


def _counted(part: PartWriter, first: _Table, rest: Iterable[_Table]) -> Iterator[_Table]:
    """All tables, which must have one schema. Their rows are the records of the part."""
    yield first
    part.add_records(first.num_rows)
    for table in rest:
        if not table.schema.equals(first.schema):
            raise option_error(f"the columns\n{table.schema}", f"those of the rows before:\n{first.schema}")
        yield table
        part.add_records(table.num_rows)


def _encode_lines(part: PartWriter, schema: pa.Schema, tables: Iterable[Any]) -> None:
    arrow: Any = _engines.load("arrow", "pyarrow")
    text = (arrow.string(), arrow.large_string(), arrow.binary(), arrow.large_binary())
    if len(schema) != 1 or schema.types[0] not in text:
        raise option_error(f"the columns {schema}", "one column of strings or binary values")
    for table in tables:
        values = table.column(0).cast(arrow.large_binary()).to_pylist()
        for value in values:
            if value is None or b"\n" in value or value.endswith(b"\r"):
                raise option_error(f"the value {value!r}", "a line: no null, line feed, or carriage return at the end")
        part.write(b"".join(value + b"\n" for value in values))


def _encode_csv(part: PartWriter, schema: pa.Schema, tables: Iterable[Any]) -> None:
    csv: Any = _engines.load("arrow", "pyarrow", "pyarrow.csv")
    with csv.CSVWriter(part, schema) as writer:
        for table in tables:
            writer.write(table)


def _encode_parquet(part: PartWriter, schema: pa.Schema, tables: Iterable[Any]) -> None:
    arrow: Any = _engines.load("arrow", "pyarrow")
    parquet: Any = _engines.load("arrow", "pyarrow", "pyarrow.parquet")
    with parquet.ParquetWriter(part, schema) as writer:
        for table in tables:
            whole = arrow.Table.from_batches([table]) if isinstance(table, arrow.RecordBatch) else table
            writer.write_table(whole)


def _encode_jsonl(part: PartWriter, schema: pa.Schema, tables: Iterable[Any]) -> None:
    _check_json(schema)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    for table in tables:
        try:
            part.write("".join(encode(row) + "\n" for row in table.to_pylist()))
        except ValueError as error:
            raise option_error(f"a value that JSON does not have ({error})", "finite numbers") from None


def _check_json(fields: Iterable[Any]) -> None:
    """Checks that JSON has the types of these fields."""
    arrow: Any = _engines.load("arrow", "pyarrow")
    of = arrow.types
    names = set()
    for field in fields:
        if field.name in names:
            raise option_error(f"two columns with the name {field.name!r}", "different names")
        names.add(field.name)
        plain = field.type
        while of.is_list(plain) or of.is_large_list(plain) or of.is_dictionary(plain):
            plain = plain.value_type
        if of.is_struct(plain):
            _check_json(plain.field(position) for position in range(plain.num_fields))
        elif not (
            of.is_null(plain)
            or of.is_boolean(plain)
            or of.is_integer(plain)
            or of.is_floating(plain)
            or of.is_string(plain)
            or of.is_large_string(plain)
        ):
            raise option_error(
                f"the column {field.name!r} of the type {field.type}",
                "types that JSON has: booleans, numbers, strings, lists and structs; convert the column to a string",
            )


_ENCODERS: dict[Format, Callable[[PartWriter, pa.Schema, Iterable[Any]], None]] = {
    "lines": _encode_lines,
    "csv": _encode_csv,
    "jsonl": _encode_jsonl,
    "parquet": _encode_parquet,
}
