"""Tests of the shared vectors: detection of compression, limits, and the defaults of options."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millstream
import pytest
from millstream import Framer, Writer
from test_frames import framer, pieces
from vectors import cases

ZIPPED = gzip.compress(b"1\n")


def written(path: Path, data: bytes) -> bytes:
    with Writer.path(path) as writer:
        writer.write(data)
    return path.read_bytes()


@pytest.mark.parametrize(("name", "way", "file", "given", "output", "end"), cases("sniff.tsv"))
def test_sniff(name: str, way: str, file: str, given: str, output: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / file
    data = bytes.fromhex(given)
    found, outcome = "-", "end"
    try:
        if way == "read":
            path.write_bytes(data)
            with millstream.open(path) as reader:
                found = reader.read().hex()
        else:
            found = written(path, data)[: len(output) // 2].hex()
    except millstream.Error as error:
        outcome = error.kind
    assert (found, outcome) == (output, end), name


@pytest.mark.parametrize(("name", "words", "limit", "given", "records", "end"), cases("limits.tsv"))
def test_limits(name: str, words: str, limit: str, given: str, records: str, end: str) -> None:
    data = bytes.fromhex(given)
    expected = [] if records == "-" else [bytes.fromhex(record) for record in records.split(",")]
    for size in range(1, len(data) + 1):
        rest = iter([data[at : at + size] for at in range(0, len(data), size)])
        reader = millstream.from_callback(
            lambda _, rest=rest: next(rest, b""),  # type: ignore[misc]
            framer=framer(words.split(" ")),
            record_limit=int(limit),
        )
        found: list[bytes] = []
        outcome = "end"
        try:
            for record in reader:
                found.append(record)
        except millstream.Error as error:
            outcome = error.kind
        assert (found, outcome) == (expected, end), f"{name}: pieces of {size}"


@pytest.mark.parametrize(
    ("name", "way", "limit", "given", "kind", "place"),
    [
        (*case[:5], case[5:])
        for case in cases("places.tsv")
        if not case[1].startswith("scan")  # Python has no `scan`
    ],
)
def test_places(name: str, way: str, limit: str, given: str, kind: str, place: list[str]) -> None:
    reader = millstream.from_bytes(bytes.fromhex(given), framer=framer(way.split(" ")), record_limit=int(limit))
    with pytest.raises(millstream.Error) as caught:
        for _ in reader.dicts() if way == "rows" else reader:
            pass
    error = caught.value
    found = [error.offset, error.record, error.line, error.column]
    assert (error.kind, ["-" if number is None else str(number) for number in found]) == (kind, list(place)), name


def is_decoded(reader: Any) -> str:
    with reader:
        return "yes" if next(reader) == b"1" else "no"


def failure(call: Callable[[], object]) -> bool:
    try:
        call()
    except millstream.Error:
        return True
    return False


def default_of(option: str, directory: Path) -> str:
    """Returns the default of an option, as determined from behaviour."""
    path = directory / "file.gz"
    match option:
        case "record_limit":
            limit = 64 << 20
            within = not failure(lambda: next(millstream.from_bytes(bytes(limit))))
            over = failure(lambda: next(millstream.from_bytes(bytes(limit + 1))))
            return str(limit) if within and over else "another"
        case "keep_delimiter":
            return "no" if next(millstream.from_bytes(b"1\n")) == b"1" else "yes"
        case "prefix_order":
            read = millstream.from_bytes(b"\x01\0\0\0a", framer=Framer.length_prefixed(4))
            return "little" if not failure(lambda: next(read)) else "big"
        case "prefix_counts":
            read = millstream.from_bytes(b"\x02ab", framer=Framer.length_prefixed(1))
            return "payload" if next(read) == b"ab" else "itself"
        case "decode_file":
            path.write_bytes(ZIPPED)
            return is_decoded(millstream.open(path))
        case "decode_memory":
            return is_decoded(millstream.from_bytes(ZIPPED))
        case "decode_command":
            return is_decoded(millstream.command(["sh", "-c", "echo 1 | gzip"]))
        case "decode_callback":
            return is_decoded(pieces(ZIPPED, 100))
        case "command_failure":
            return "error" if failure(lambda: list(millstream.command(["false"]))) else "allowed"
        case "command_stdin":
            return "something" if list(millstream.command(["cat"])) else "nothing"
        case "encode_file":
            return "by name" if written(path, b"1\n").startswith(b"\x1f\x8b") else "no"
        case "encode_memory":
            writer = Writer.memory()
            writer.write(b"1\n")
            end = writer.close()
            return "no" if end is not None and end.memory == b"1\n" else "yes"
        case "existing_file":
            written(directory / "a", b"before")
            return "replaced" if written(directory / "a", b"after") == b"after" else "appended"
        case "unfinished_file":
            writer = Writer.path(directory / "unfinished")
            writer.write(b"1")
            writer.abort()
            return "kept" if (directory / "unfinished").exists() else "removed"
        case "on_error":
            source = millstream.from_bytes(b"1\nx\n")
            stages = millstream.pipe(source, millstream.map(int))
            return "stop" if failure(lambda: list(stages)) else "skip"
        case other:
            raise AssertionError(f"there is no test for the option {other}")


@pytest.mark.parametrize(("option", "default"), cases("defaults.tsv"))
def test_defaults(option: str, default: str, tmp_path: Path) -> None:
    assert default_of(option, tmp_path) == default
