"""Tests of CSV: the shared vectors, and a comparison with Python's own `csv`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import millstream as ms
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vectors import cases

LITERAL = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}


def unescaped(text: str) -> bytes:
    parts = text.split("\\")
    out, rest = parts[0].encode(), iter(parts[1:])
    for part in rest:
        if part == "":
            out += b"\\" + next(rest).encode()
        elif part[0] == "x":
            out += bytes.fromhex(part[1:3]) + part[3:].encode()
        else:
            out += LITERAL[part[0]] + part[1:].encode()
    return out


def framer(words: str) -> ms.Framer:
    options: dict[str, object] = {}
    for word in words.split():
        match word.partition("="):
            case ("default", _, _):
                pass
            case ("delimiter" | "quote" | "escape" | "comment" as name, _, value):
                options[name] = None if value == "none" else bytes.fromhex(value)
            case ("doubled", _, "off"):
                options["doubled_quotes"] = False
            case ("stray", _, "literal"):
                options["literal_quotes"] = True
            case ("blank", _, "records"):
                options["blank_records"] = True
            case ("mark", _, "content"):
                options["detect_mark"] = False
            case ("ends", _, ends):
                options["line_end"] = ends
            case other:
                raise AssertionError(f"this test does not know {other}")
    return ms.Framer.csv(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "words", "data", "records", "end"), cases("csv.tsv"))
def test_shared_vectors(name: str, words: str, data: str, records: str, end: str) -> None:
    expected = []
    if records != "-":
        expected = [[unescaped(field) for field in record.split(" | ")] for record in records.split(" / ")]
    found, outcome = [], "end"
    try:
        for row in ms.from_bytes(unescaped(data), framer=framer(words), decode="off").rows():
            found.append(row)
    except ms.Error as error:
        outcome = f"{error.kind} at {error.offset}"
    assert (found, outcome) == (expected, end), name


FIELD = st.text(alphabet='ab,"\n\r é', max_size=6)


@given(rows=st.lists(st.lists(FIELD, min_size=1, max_size=4), max_size=20), end=st.sampled_from(["\n", "\r\n"]))
def test_what_python_writes_is_read_back(rows: list[list[str]], end: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    reader = ms.from_bytes(text.getvalue().encode(), framer=ms.Framer.csv(), encoding="utf-8", decode="off")
    assert list(reader.rows()) == rows


PIECE = st.sampled_from(["a", "b", ",", ",", ";", "\n", "\n", "\r\n", '"', '""', '"c"', '"d,\n"', "'", "\\e", " ", "é"])


@given(
    pieces=st.lists(PIECE, max_size=30),
    delimiter=st.sampled_from([",", ";"]),
    quote=st.sampled_from(['"', "'", None]),
    escape=st.sampled_from([None, "\\"]),
    doubled=st.booleans(),
)
def test_python_reads_the_same(
    pieces: list[str], delimiter: str, quote: str | None, escape: str | None, doubled: bool
) -> None:
    """Python's `csv` in its strict mode, in which quotes in the middle of a field are content."""
    text = "".join(pieces)
    expected, is_error = [], False
    try:
        for row in csv.reader(
            io.StringIO(text, newline=""),
            delimiter=delimiter,
            quotechar=quote,
            escapechar=escape,
            doublequote=doubled,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            strict=True,
        ):
            if row:
                expected.append(row)
    except csv.Error:
        is_error = True
    framer = ms.Framer.csv(delimiter, quote=quote, escape=escape, doubled_quotes=doubled, literal_quotes=True)
    found, kind = [], None
    try:
        for row in ms.from_bytes(text.encode(), framer=framer, encoding="utf-8", decode="off").rows():
            found.append(row)
    except ms.Error as error:
        kind = error.kind
    if kind and not doubled:
        return  # Python then accepts text after a closing quote
    assert (found, kind) == (expected, "csv_invalid" if is_error else None)


def test_rows_and_dicts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\nid,"the name"\n1,"a, b"\n\n2,"say ""hi"""\n', encoding="utf-8")
    with ms.open(path, framer=ms.Framer.csv(), encoding="utf-8") as reader:
        assert list(reader.rows()) == [["id", "the name"], ["1", "a, b"], ["2", 'say "hi"']]
    with ms.open(path, framer=ms.Framer.csv()) as binary:
        assert list(binary.dicts()) == [
            {b"id": b"1", b"the name": b"a, b"},
            {b"id": b"2", b"the name": b'say "hi"'},
        ]
    assert list(ms.from_bytes(b"", framer=ms.Framer.csv()).dicts()) == []
    with pytest.raises(ms.CommandFailed):
        list(ms.shell("echo a,b; exit 3", framer=ms.Framer.csv()).rows())


def test_the_header_belongs_to_the_reader() -> None:
    data = b"id,n\n\n1,a\n# x\n\n2,b\n3,c\n4,d\n5,e\n"
    reader = ms.from_bytes(data, framer=ms.Framer.csv(comment="#"), encoding="utf-8")
    for row in reader.dicts():
        assert row == {"id": "1", "n": "a"}
        break
    # Every call continues after the last record.
    assert reader.tell() == 10
    assert next(reader) == "# x"
    assert next(iter(reader.rows())) == ["2", "b"]
    assert next(iter(reader.dicts())) == {"id": "3", "n": "c"}
    assert next(reader) == "4,d"
    assert list(reader.dicts()) == [{"id": "5", "n": "e"}]


def test_missing_fields_are_empty_if_ragged_records_are_padded() -> None:
    reader = ms.from_bytes(b"a,b\n3\n4,5,6\n\n7\n8,9\n,\n", framer=ms.Framer.csv(), encoding="utf-8")
    dicts = reader.dicts(ragged="pad")
    assert next(dicts) == {"a": "3", "b": ""}
    with pytest.raises(ms.Error, match="found 3 fields, expected 2, as in the header") as caught:
        next(dicts)  # no data is dropped
    assert caught.value.kind == "field_count_mismatch"
    # The header belongs to the reader.
    assert next(reader.rows(ragged="pad")) == ["7", ""]
    assert next(reader.rows()) == ["8", "9"]
    assert list(dicts) == [{"a": "", "b": ""}]
    binary = ms.from_bytes(b"a,b\n1,2\n3\n", framer=ms.Framer.csv())
    next(binary.dicts())
    with pytest.raises(ms.Error, match="found 1 field, expected 2, as in the header"):
        next(binary.rows())
    assert list(ms.from_bytes(b"a,b\n1\n", framer=ms.Framer.csv()).rows(ragged="pad")) == [[b"a", b"b"], [b"1"]]
    with pytest.raises(ValueError, match='ragged="skip"'):
        reader.dicts(ragged="skip")  # type: ignore[call-overload]


def test_additional_fields_are_kept_if_ragged_records_are_collected() -> None:
    data = b"a,b\n1\n1,2,3,4\n5,6\n"
    reader = ms.from_bytes(data, framer=ms.Framer.csv(), encoding="utf-8")
    expected = list(csv.DictReader(io.StringIO(data.decode()), restval=""))
    assert list(reader.dicts(ragged="collect")) == expected
    assert expected[1] == {"a": "1", "b": "2", None: ["3", "4"]}
    reader = ms.from_bytes(data, framer=ms.Framer.csv(), encoding="utf-8")
    next(reader.dicts(ragged="pad"))
    assert list(reader.rows(ragged="collect")) == [["1", "2", "3", "4"], ["5", "6"]]


def test_errors_name_the_place() -> None:
    with pytest.raises(ms.Error, match="found 1 field, expected 2, as in the header") as caught:
        list(ms.from_bytes(b"a,b\n1,2\n3\n", framer=ms.Framer.csv()).dicts())
    assert (caught.value.kind, caught.value.record, caught.value.offset) == ("field_count_mismatch", 2, 8)
    rows = ms.from_bytes(b"a,b\n3\n4,5\n", framer=ms.Framer.csv()).dicts()
    with pytest.raises(ms.Error):
        next(rows)
    assert next(rows) == {b"a": b"4", b"b": b"5"}
    reader = ms.from_bytes(b'a,b\n"1\n2","x\xff"\n', framer=ms.Framer.csv(), encoding="utf-8").rows()
    assert next(reader) == ["a", "b"]
    with pytest.raises(UnicodeDecodeError) as invalid:
        next(reader)
    assert isinstance(invalid.value, ms.EncodingError)
    assert (invalid.value.record, invalid.value.offset, invalid.value.line, invalid.value.column) == (1, 12, 3, 6)
    assert "0xff at byte 8 of the record, expected UTF-8" in str(invalid.value)
    with pytest.raises(ms.Error, match="not CSV"):
        ms.from_bytes(b"").rows()
    with pytest.raises(ms.Error, match="delimiter of 2 bytes"):
        ms.Framer.csv(";;")
    with pytest.raises(ms.Error, match="as the delimiter and as the quote"):
        ms.Framer.csv('"')
    with pytest.raises(ms.Error, match='"crlf"'):
        ms.Framer.csv(line_end="lfcr")  # type: ignore[arg-type]
