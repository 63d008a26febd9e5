"""Tests of tables that are written as the parts of a job, without an engine."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import millstream as ms
import millstream.arrow as source
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from millstream._jobs import Format, Output, Writers

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "text": ['a "b",\nc', "", "é"],
        "tags": [["x"], [], None],
        "at": [{"x": 0.5}, {"x": 1.0}, None],
    }
)


def write(directory: Path, format: Format, *tables: pa.Table) -> list[str]:
    """Writes a part of each table, and returns their paths."""
    output = Output.begin(directory, format)
    output.commit(output.write(task, [table]) for task, table in enumerate(tables))
    return ms.Job.parts(directory) or []


def read(batches: Any) -> pa.Table:
    return pa.Table.from_batches(batches, schema=batches.schema).combine_chunks()


def test_our_readers_read_what_was_written(tmp_path: Path) -> None:
    flat = TABLE.select(["id", "text"])
    write(tmp_path / "csv", "csv", flat, flat.slice(1))
    # A null is an empty field.
    assert read(source.read_csv(tmp_path / "csv", nulls=[""]))["id"].to_pylist() == [1, 2, None, 2, None]
    assert read(source.read_csv(tmp_path / "csv"))["text"].to_pylist() == [*flat["text"].to_pylist(), "", "é"]
    write(tmp_path / "jsonl", "jsonl", TABLE, TABLE)
    assert read(source.read_jsonl(tmp_path / "jsonl")).to_pylist() == TABLE.to_pylist() * 2
    lines = pa.table({"line": ["", "é", "a\rb"]})
    write(tmp_path / "lines", "lines", lines, lines.cast(pa.schema({"line": pa.binary()})))
    assert read(source.read_lines(tmp_path / "lines"))["line"].to_pylist() == ["", "é", "a\rb"] * 2
    paths = write(tmp_path / "parquet", "parquet", TABLE, TABLE.slice(2))
    assert [pq.read_table(path) for path in paths] == [TABLE, TABLE.slice(2)]
    assert '"records":3' in (tmp_path / "parquet" / "_millstream.json").read_text()


def test_directories_of_jobs(tmp_path: Path) -> None:
    """A complete job is exactly its parts, and an unfinished one is an error."""
    out = tmp_path / "out"
    output = Output.begin(out, "lines")
    part = output.write(0, [pa.table({"line": ["a"]})])
    (out / "part-x.txt").write_text("of another program\n")
    for paths in (out, str(out), str(out / "*.txt"), [str(out / "part*")]):
        with pytest.raises(ms.Error, match="unfinished job"):
            source.read_lines(paths)
    output.commit([part])
    assert read(source.read_lines(out))["line"].to_pylist() == ["a"]
    assert read(source.read_lines(str(out / "*.txt"))).num_rows == 2
    with pytest.raises(ms.Unsupported, match="not a regular file"):
        source.read_lines(tmp_path)
    empty = tmp_path / "empty"
    Output.begin(empty, "csv").commit([None])
    with pytest.raises(ms.OptionError, match="wrote no parts"):
        source.read_csv(empty)


def test_what_the_formats_cannot_have(tmp_path: Path) -> None:
    wrong: list[tuple[Format, pa.Table, str]] = [
        ("lines", TABLE, "one column of strings"),
        ("lines", pa.table({"n": [1]}), "one column of strings"),
        ("lines", pa.table({"line": ["a\nb"]}), r"found the value b'a\\nb', expected a line"),
        ("lines", pa.table({"line": ["a\r"]}), "expected a line"),
        ("lines", pa.table({"line": pa.array([None], pa.string())}), "the value None"),
        ("jsonl", pa.table({"n": [float("nan")]}), "finite numbers"),
        ("jsonl", pa.table({"at": [datetime.datetime(2000, 1, 1)]}), "the column 'at' of the type timestamp"),
        ("jsonl", pa.table([[1], [2]], names=["a", "a"]), "two columns with the name 'a'"),
        ("csv", TABLE, "list"),
    ]
    for number, (format, table, expected) in enumerate(wrong):
        output = Output.begin(tmp_path / str(number), format)
        with pytest.raises(Exception, match=expected):
            output.write(0, [table])
        with pytest.raises(ms.OptionError, match="expected those of the rows before"):
            output.write(0, [pa.table({"line": ["a"]}), pa.table({"line": pa.array([b"a"])})])
        output.job.abort()
        assert list((tmp_path / str(number)).iterdir()) == []


def test_a_job_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(table: pa.Table, output: Output) -> Any:
        yield output.write(0, [table])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Writers(fail).parquet(TABLE, tmp_path)
    assert list(tmp_path.iterdir()) == []

    def lose(table: pa.Table, output: Output) -> Any:
        yield output.write(0, [table])
        for staged in tmp_path.glob(".millstream-job-*/*"):
            staged.unlink()

    with pytest.raises(ms.Error, match="found no file of the part of task 0") as caught:
        Writers(lose).csv(TABLE.select(["id"]), tmp_path)
    assert "run `millstream commit resume`" in caught.value.__notes__[0]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == []
