"""Tests of JSON: the shared vectors, records as values, and the places of errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import millstream as ms
import pytest
from vectors import cases

LITERAL = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
ESCAPE = re.compile(r"\\x(..)|\\([\[\]])(\d+)\]|\\(.)|([^\\]+)", re.DOTALL)


def unescaped(text: str) -> bytes:
    out = b""
    for byte, bracket, count, letter, plain in ESCAPE.findall(text):
        if byte:
            out += bytes.fromhex(byte)
        elif bracket:
            out += bracket.encode() * int(count)
        else:
            out += LITERAL[letter] if letter else plain.encode()
    return out


def opened(framing: str, data: bytes, piece: int) -> ms.Reader[bytes]:
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))

    def read(_size: int) -> bytes:
        return next(pieces, b"")

    if framing.startswith("elements "):
        return ms.from_callback(read, json_elements=unescaped(framing[9:]).decode(), decode="off", capacity=16)
    return ms.from_callback(read, framer=ms.Framer.json_lines(check=framing == "checked"), decode="off", capacity=16)


@pytest.mark.parametrize(("name", "framing", "data", "records", "end"), cases("json.tsv"))
def test_shared_vectors(name: str, framing: str, data: str, records: str, end: str) -> None:
    expected = [] if records == "-" else [unescaped(record) for record in records.split(" / ")]
    for piece in (1, 2, 7, 1 << 20):
        reader, found, outcome = opened(framing, unescaped(data), piece), [], "end"
        try:
            # This gets the bytes of each record.
            for record in reader.json(loads=bytes):
                found.append(record)
        except ms.Error as error:
            outcome = f"{error.kind} at {error.offset}"
        # The mark that a line may begin with is a part of the record, but not of the value.
        assert (found, outcome) == ([record.removeprefix(b"\xef\xbb\xbf") for record in expected], end), name
        reader, found, outcome = opened(framing, unescaped(data), piece), [], "end"
        try:
            for record in reader:
                found.append(record)
        except ms.Error as error:
            outcome = f"{error.kind} at {error.offset}"
        if framing != "elements ":
            found = [record for record in found if record.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")]
        assert (found, outcome) == (expected, end), name


def test_values(tmp_path: Path) -> None:
    values = [{"id": 1, "name": "é\u2028"}, [2, None, True], "text", -1.5e300, 2**70]
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\ufeff" + "\r\n\n".join(json.dumps(value, ensure_ascii=False) for value in values), encoding="utf-8"
    )
    for check in (False, True):
        with ms.open(path, framer=ms.Framer.json_lines(check=check)) as reader:
            assert list(reader.json()) == values
    with ms.open(path, framer=ms.Framer.json_lines(), encoding="utf-8") as text:
        assert list(text.json(json.loads)) == values
    document = tmp_path / "a.json"
    document.write_text(json.dumps({"n": 0, "items": values}, indent=2), encoding="utf-8")
    with ms.open(document, json_elements="/items") as reader:
        assert list(reader.json()) == values
    with ms.open(document, json_elements="/items") as reader:
        assert [json.loads(element) for element in reader] == values
    assert list(ms.from_bytes(b"[]", json_elements="").json()) == []
    with pytest.raises(ms.CommandFailed):
        list(ms.shell("echo 1; exit 3", framer=ms.Framer.json_lines()).json())


def test_every_call_continues_after_the_last_value() -> None:
    reader = ms.from_bytes(b"1\n\n[2]\n3\n4\n", framer=ms.Framer.json_lines())
    for value in reader.json():
        assert value == 1
        break
    assert reader.tell() == 2
    assert next(reader) == b""
    assert next(iter(reader.json())) == [2]
    assert next(reader) == b"3"
    assert list(reader.json()) == [4]


def test_errors_name_the_place() -> None:
    reader = ms.from_bytes(b'1\n\n{"\xc3\xa9": tru}\n[2]\n"\xff"\n3', framer=ms.Framer.json_lines(), name="a.jsonl")
    values = reader.json()
    assert next(values) == 1
    with pytest.raises(ms.Error, match="json invalid: found Expecting value") as caught:
        next(values)
    error = caught.value
    assert (error.kind, error.record, error.line, error.column, error.offset) == ("json_invalid", 2, 3, 8, 10)
    assert isinstance(error.__cause__, json.JSONDecodeError)
    assert next(values) == [2]
    with pytest.raises(UnicodeDecodeError) as invalid:
        next(values)
    assert isinstance(invalid.value, ms.EncodingError)
    assert (invalid.value.record, invalid.value.line, invalid.value.column) == (4, 5, 2)
    assert list(values) == [3]
    # What is checked is reported by the reader.
    checked = ms.from_bytes(b"[1\n2", framer=ms.Framer.json_lines(check=True))
    with pytest.raises(ms.Error, match="end of the line inside an array") as caught:
        next(checked.json())
    assert (caught.value.line, caught.value.column) == (1, 3)
    assert checked.skip_record()
    assert list(checked.json()) == [2]
    # The offset of an element in its document is not known.
    elements = ms.from_bytes(b'[1, "\xff", 2]', json_elements="").json()
    assert next(elements) == 1
    with pytest.raises(ms.EncodingError) as invalid:
        next(elements)
    assert (invalid.value.record, invalid.value.offset) == (1, None)
    assert next(elements) == 2


def test_functions_that_fail() -> None:
    reader = ms.from_bytes(b"1\n2\n", framer=ms.Framer.json_lines())

    def refuse(_record: bytes) -> None:
        raise ValueError("no")

    with pytest.raises(ms.Error, match="found no, expected a value of JSON") as caught:
        next(reader.json(refuse))
    assert (caught.value.line, caught.value.offset) == (1, None)
    with pytest.raises(TypeError, match="expected a function"):
        reader.json("loads")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        next(reader.json(lambda record: record.missing))  # type: ignore[attr-defined]
    deep = ms.from_bytes(b"[" * 100000 + b"\n1", framer=ms.Framer.json_lines()).json()
    with pytest.raises(ms.Error) as caught:
        next(deep)
    assert caught.value.kind == "too_deep"
    assert next(deep) == 1


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ms.Error, match="not JSON"):
        ms.from_bytes(b"1").json()
    with pytest.raises(ms.Error, match="depth for lines that are not checked"):
        ms.Framer.json_lines(depth=3)
    assert ms.Framer.json_lines(check=True) == ms.Framer.json_lines(check=True, depth=128)


def test_splits(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(100)), encoding="utf-8")
    for framer in (ms.Framer.json_lines(), ms.Framer.json_lines(check=True)):
        plan = ms.Splits.plan(path, framer, size=100)
        assert plan[1].framer == framer
        assert [value["n"] for split in plan for value in ms.open_split(split).json()] == list(range(100))
    path.write_text("[[1]]\n[[[2]]]\n", encoding="utf-8")
    deep = ms.Framer.json_lines(check=True, depth=2)
    (split,) = ms.Splits.plan(path, deep)
    assert split.framer == deep
    reader = ms.open_split(ms.Split.from_json(split.to_json()))
    assert next(reader) == b"[[1]]"
    with pytest.raises(ms.Error, match="nested more than 2 deep") as caught:
        next(reader)
    assert caught.value.kind == "too_deep"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(100)), encoding="utf-8")
    document = tmp_path / "a.json"
    document.write_text(json.dumps({"n": 1, "items": list(range(100))}), encoding="utf-8")
    plan = ms.Splits.plan(document, json_elements="/items", size=50)
    assert len(plan) > 5
    parts = [ms.Split.from_json(split.to_json()) for split in plan]
    assert [value for split in parts for value in ms.open_split(split).json()] == list(range(100))
    assert [value for split in parts for value in ms.open_split(split)] == [b"%d" % n for n in range(100)]
    with pytest.raises(ms.Error, match="one of them"):
        ms.Splits.plan(document, ms.Framer.lines(), json_elements="")
    with pytest.raises(ms.Error, match="without json_elements"):
        ms.Splits.plan(document, json_depth=3)
