"""Tests of framing: the shared vectors, and a comparison of random input with Python's own `split`."""

from __future__ import annotations

import millstream
import pytest
from hypothesis import given
from hypothesis import strategies as st
from millstream import Framer
from vectors import cases


def framer(words: list[str]) -> Framer:
    keep = "untrimmed" in words
    match [word for word in words if word != "untrimmed"]:
        case ["lines"]:
            return Framer.lines(keep_delimiter=keep)
        case ["byte" | "bytes", delimiter]:
            return Framer.delimiter(bytes.fromhex(delimiter), keep_delimiter=keep)
        case ["char", point]:
            return Framer.delimiter(chr(int(point, 16)), keep_delimiter=keep)
        case ["any-of", *delimiters]:
            return Framer.any_of(bytes.fromhex("".join(delimiters)), keep_delimiter=keep)
        case ["fixed", length]:
            return Framer.fixed(int(length))
        case ["prefix", width, "little" | "big" as endian, "payload" | "itself" as counts]:
            return Framer.length_prefixed(int(width[1:]) // 8, endian=endian, counts=counts)
        case ["bson"]:
            return Framer.bson()
        case ["csv"] | ["rows"]:
            return Framer.csv()
        case other:
            raise AssertionError(f"this test does not know the framer {other}")


def pieces(data: bytes, size: int) -> millstream.Reader[bytes]:
    """A source that returns this many bytes at a time."""
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    rest = iter(cut)
    return millstream.from_callback(lambda _: next(rest, b""))


@pytest.mark.parametrize(("name", "words", "data", "records", "end"), cases("frames.tsv"))
def test_shared_vectors(name: str, words: str, data: str, records: str, end: str) -> None:
    expected = [] if records == "-" else [bytes.fromhex(record) for record in records.split(",")]
    given_bytes = bytes.fromhex(data)
    for size in (1, 2, 3, 1 << 20):
        for way in ("next", "batches"):
            rest = iter([given_bytes[at : at + size] for at in range(0, len(given_bytes), size)])
            reader = millstream.from_callback(lambda _, rest=rest: next(rest, b""), framer=framer(words.split()))  # type: ignore[misc]
            found: list[bytes] = []
            outcome = "end"
            try:
                if way == "next":
                    for record in reader:
                        found.append(record)
                else:
                    for batch in reader.batches():
                        found.extend(batch)
            except millstream.Error as error:
                outcome = error.kind
                # A length over the limit fails immediately. Skipping the record shows that the bytes are missing.
                if isinstance(error, millstream.RecordTooLong):
                    with pytest.raises(millstream.FrameError) as caught:
                        reader.skip_record()
                    outcome = caught.value.kind
            assert (found, outcome) == (expected, end), f"{name}: pieces of {size}, {way}"


def split(data: bytes, delimiter: bytes) -> list[bytes]:
    records = data.split(delimiter)
    return records if records[-1] else records[:-1]


@given(
    data=st.binary(max_size=300) | st.text(alphabet="ab\n\r,;", max_size=300).map(str.encode),
    delimiter=st.sampled_from([b"\n", b",", b";", b",;", b"ab", b"aab", b"\r\n"]) | st.binary(min_size=1, max_size=3),
    size=st.integers(1, 100),
)
def test_delimited_as_split(data: bytes, delimiter: bytes, size: int) -> None:
    expected = split(data, delimiter)
    rest = iter([data[at : at + size] for at in range(0, len(data), size)])
    assert list(millstream.from_callback(lambda _: next(rest, b""), delimiter=delimiter)) == expected
    assert list(millstream.from_bytes(data, delimiter=delimiter)) == expected
    reader = millstream.from_bytes(data, delimiter=delimiter, keep_delimiter=True)
    assert b"".join(reader) == data
    assert millstream.from_bytes(data, delimiter=delimiter).count() == len(expected)


@given(data=st.text(alphabet="ab\n\r", max_size=200).map(str.encode), turns=st.lists(st.integers(0, 5), max_size=40))
def test_every_call_goes_on_where_the_one_before_ended(data: bytes, turns: list[int]) -> None:
    reader = pieces(data, 7)
    taken = b""
    for turn in turns:
        at = len(taken)
        if turn == 0:
            new = reader.read(3)
        elif turn == 1:
            new = reader.readline()
        elif turn == 2:
            new = reader.readuntil("b")
        elif turn == 3:
            space = bytearray(4)
            new = bytes(space[: reader.readinto(space)])
        elif turn == 4:
            batch = reader.next_batch(2)
            new = bytes(batch.data) if batch else b""
        else:
            record = next(reader, None)
            new = b"" if record is None else data[at : reader.tell()]
            if record is not None:
                assert new.removesuffix(b"\n").removesuffix(b"\r") == record or new == record
        assert data[at : at + len(new)] == new
        taken += new
        assert reader.tell() == len(taken)
    assert taken + reader.read() == data
