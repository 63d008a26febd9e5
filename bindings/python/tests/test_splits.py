"""Tests of plans and splits."""

from __future__ import annotations

import copy
import csv
import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import millstream
import pytest
from millstream import Framer, Split, Splits, aio
from vectors import cases

PEOPLE = b'name,age\n"Ann\nLee",41\nBob,17\n"C,D",5\n'


def framer(words: str) -> Framer:
    match words.split(" "):
        case ["lines"]:
            return Framer.lines()
        case ["bytes", delimiter]:
            return Framer.delimiter(bytes.fromhex(delimiter))
        case ["fixed", length]:
            return Framer.fixed(int(length))
        case ["prefix", prefix]:
            form, _, itself = prefix.partition(",")
            return Framer.length_prefixed(
                int(form[1:].rstrip("lbe")) // 8,
                endian="big" if form.endswith("be") else "little",
                counts="itself" if itself else "payload",
            )
        case ["bson"]:
            return Framer.bson()
        case ["csv"]:
            return Framer.csv()
        case other:
            raise AssertionError(f"this test does not know the framing {other}")


@pytest.mark.parametrize(("name", "framing", "size", "given", "splits", "end"), cases("splits.tsv"))
def test_shared_vectors(
    name: str, framing: str, size: str, given: str, splits: str, end: str, text: Callable[[bytes], Path]
) -> None:
    plan = Splits.plan(text(bytes.fromhex(given)), framer(framing), size=int(size), decode="off")
    found, outcome = [], "end"
    for split in Splits.from_json(plan.to_json()):
        records: list[str] = []
        try:
            with millstream.open_split(split) as reader:
                records.extend(record.hex() for record in reader)
        except millstream.Error as error:
            outcome = error.kind
        number = "?" if split.first_record is None else split.first_record
        found.append(f"{split.begin}-{split.end}#{number}:{','.join(records) if records else '-'}")
        assert split.framer == framer(framing)
    assert (" ".join(found), outcome) == (splits, end), name


def test_lines_are_numbered_by_option(text: Callable[[bytes], Path]) -> None:
    path = text(b"".join(b"%d\n" % number for number in range(100)))
    plan = Splits.plan(path, size=100, number=True)
    assert [split.first_record for split in plan] == [0, 37, 70]
    assert (plan.records, Splits.plan(path, size=100).records) == (100, None)
    with pytest.raises(millstream.Error) as caught:
        next(millstream.open_split(plan[2], record_limit=1))
    assert (caught.value.record, caught.value.line) == (70, 71)


def test_a_plan_is_a_sequence_of_splits(text: Callable[[bytes], Path]) -> None:
    path = text(PEOPLE)
    plan = Splits.plan(path, Framer.csv(), size=12)
    assert [(split.begin, split.end, split.first_record) for split in plan] == [(0, 22, 0), (22, 29, 2), (29, 37, 3)]
    assert (len(plan), plan.records, plan.file_size, plan.note) == (3, 4, 37, None)
    assert (plan[0], plan[-1], plan[1:]) == (next(iter(plan)), list(plan)[2], list(plan)[1:])
    assert isinstance(plan, Sequence)
    assert (plan.index(plan[1]), plan.count(plan[1]), plan[2] in plan) == (1, 1, True)
    assert (plan[0].path, plan[0].framer) == (os.fspath(path), Framer.csv())
    with pytest.raises(IndexError):
        plan[3]
    with pytest.raises(TypeError):
        plan[True]


def test_the_splits_are_the_file(text: Callable[[bytes], Path]) -> None:
    path = text(PEOPLE)
    plan = Splits.plan(path, Framer.csv(), size=1)
    rows = [row for split in plan for row in millstream.open_split(split, encoding="utf-8").rows()]
    assert rows == list(csv.reader(PEOPLE.decode().splitlines(keepends=True)))
    assert b"".join(millstream.open_split(split).read() for split in plan) == PEOPLE
    # Another framer applies to the bytes of the same records.
    assert list(millstream.open_split(plan[0], framer=Framer.lines())) == [b"name,age"]
    lines = [line for split in plan for line in millstream.open_split(split, delimiter="\n")]
    assert lines == PEOPLE.split(b"\n")[:-1]


def test_lines_of_splits_are_those_of_open(text: Callable[[bytes], Path]) -> None:
    plan = Splits.plan(text(b"one\r\ntwo\nthree"), size=1)
    options: dict[str, Any]
    for options in ({}, {"encoding": "utf-8"}, {"keep_delimiter": True}, {"framer": None, "delimiter": None}):
        expected = list(millstream.open(plan[0].path or "", **options))
        assert [line for split in plan for line in millstream.open_split(split, **options)] == expected
    keys = Splits.plan(plan[0].path or "", Framer.delimiter(b"e"), size=1)
    kept = [record for split in keys for record in millstream.open_split(split, keep_delimiter=True)]
    assert kept == [b"one", b"\r\ntwo\nthre", b"e"]


def test_offsets_and_records_count_from_the_start_of_the_file(text: Callable[[bytes], Path]) -> None:
    plan = Splits.plan(text(b"\x01a\x02b"), Framer.length_prefixed(1), size=2)
    reader = millstream.open_split(plan[1])
    assert reader.position == (2, 1)
    with pytest.raises(millstream.FrameError) as caught:
        next(reader)
    assert (caught.value.offset, caught.value.record) == (2, 1)


def test_a_split_can_be_stored_compared_and_pickled(text: Callable[[bytes], Path]) -> None:
    plan = Splits.plan(text(PEOPLE), Framer.csv(";", quote=None), size=8, pin="full")
    assert all("\n" not in split.to_json() for split in plan)
    assert json.loads(plan.to_json())["splits"] == [json.loads(split.to_json()) for split in plan]
    for copied in (Splits.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert (copied == plan, list(copied) == list(plan)) == (True, True)
    for split in plan:
        for same in (Split.from_json(split.to_json()), pickle.loads(pickle.dumps(split)), copy.deepcopy(split)):
            assert (same, hash(same), repr(same)) == (split, hash(split), repr(split))
    assert len({*plan, *Splits.from_json(plan.to_json())}) == len(plan) > 1
    assert plan[0] != plan[1]
    assert plan != list(plan)
    assert repr(plan[0]) == f'<millstream.Split from 0 to {plan[0].end} of "{plan[0].path}">'
    assert repr(plan) == f"<millstream.Splits, {len(plan)} of {len(PEOPLE)} bytes>"


def test_a_shard_is_every_nth_split_in_a_random_order(text: Callable[[bytes], Path]) -> None:
    plan = Splits.plan(text(bytes(80)), Framer.fixed(8), size=8)
    shards = [plan.shard(i, 3, 5) for i in range(3)]
    assert sorted(map(len, shards)) == [3, 3, 4]
    assert sorted(split.begin for shard in shards for split in shard) == [split.begin for split in plan]
    assert plan.shard(0, 1, 5) != plan.shard(0, 1, 6)
    with pytest.raises(millstream.OptionError, match="worker 2 of 2"):
        plan.shard(2, 2, 0)


def count(split: Split) -> int:
    with millstream.open_split(split) as reader:
        return reader.count()


def test_other_processes_read_splits(text: Callable[[bytes], Path]) -> None:
    plan = Splits.plan(text(b"line\n" * 1000), size=500)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        assert sum(workers.map(count, plan)) == 1000


def test_the_command_line_tool_and_this_package_read_each_others_plans(text: Callable[[bytes], Path]) -> None:
    path = text(PEOPLE)
    tool = [sys.executable, "-m", "millstream"]
    plan = Splits.plan(path, Framer.csv(), size=10)
    printed = subprocess.run([*tool, "split", "--csv", "--size", "10", path], check=True, capture_output=True).stdout
    assert Splits.from_json(printed.decode()) == plan
    moved = [
        subprocess.run([*tool, "run", "--split", split.to_json()], check=True, capture_output=True) for split in plan
    ]
    assert b"".join(done.stdout for done in moved) == PEOPLE
    elements = [json.dumps(element) for element in json.loads(printed)["splits"]]
    assert b"".join(millstream.open_split(element).read() for element in elements) == PEOPLE


def test_asyncio_reads_splits(text: Callable[[bytes], Path]) -> None:
    import asyncio

    async def records(split: Split) -> list[bytes]:
        async with aio.open_split(split) as reader:
            return [record async for record in reader]

    plan = Splits.plan(text(PEOPLE), Framer.csv(), size=1)
    assert asyncio.run(records(plan[1])) == [b'"Ann\nLee",41']


def test_a_changed_file_is_an_error(text: Callable[[bytes], Path], tmp_path: Path) -> None:
    path = text(b"one\ntwo\n")
    plan = Splits.plan(path, size=4, pin="ends")
    moved = tmp_path / "moved"
    path.rename(moved)
    with pytest.raises(FileNotFoundError):
        millstream.open_split(plan[0])
    assert list(millstream.open_split(plan[0].with_path(moved))) == [b"one"]
    assert plan[0].with_path(moved).path == os.fspath(moved)
    moved.write_bytes(b"one\nsix\n")
    with pytest.raises(millstream.FileError) as caught:
        millstream.open_split(plan[0].with_path(moved))
    assert (caught.value.kind, caught.value.name) == ("source_changed", os.fspath(moved))


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    data = b"".join(b"%d\n" % n for n in range(100_000))
    path.write_bytes(gzip.compress(data))
    plan = Splits.plan(path, size=1000)
    assert (len(plan), plan[0].end, plan.note is not None) == (1, None, True)
    assert "from 0 to the end of" in repr(plan[0])
    assert millstream.open_split(plan[0]).read() == data
    assert Splits.plan(path, size=1000, decode="off").note is None
    index = tmp_path / "index"
    tool = [sys.executable, "-m", "millstream", "index", "--spacing", "100K", "-o", str(index), str(path)]
    subprocess.run(tool, check=True)
    plan = Splits.plan(path, size=1000, index=index)
    assert len(plan) > 1
    assert b"".join(millstream.open_split(split).read() for split in plan) == data


def test_a_framer_that_cannot_be_stored_is_refused(text: Callable[[bytes], Path]) -> None:
    path = text(b"one\n")
    with pytest.raises(
        millstream.OptionError, match=r"found Framer\.any_of for a plan, expected Framer\.lines, delimiter"
    ):
        Splits.plan(path, Framer.any_of(b",;"))
    for kept in (Framer.lines(keep_delimiter=True), Framer.delimiter(b",", keep_delimiter=True)):
        with pytest.raises(millstream.OptionError, match=r"open_split\(split, keep_delimiter=True\)"):
            Splits.plan(path, kept)


def test_wrong_arguments_are_refused(text: Callable[[bytes], Path], tmp_path: Path) -> None:
    path = text(b"one\n")
    wrong: list[dict[str, Any]] = [{"size": 0}, {"size": -1}, {"pin": "size"}, {"decode": "on"}, {"index": path}]
    for options in wrong:
        with pytest.raises(millstream.OptionError):
            Splits.plan(path, **options)
    with pytest.raises(TypeError):
        Splits.plan(path, b",")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError):
        Splits.plan(tmp_path / "missing")
    with pytest.raises(millstream.Unsupported):
        Splits.plan(tmp_path)
    for parse in (Splits.from_json, Split.from_json, millstream.open_split):
        with pytest.raises(millstream.OptionError, match="not valid"):
            parse('{"version":1}')
        with pytest.raises(millstream.Unsupported, match="version 99"):
            parse('{"version":99}')
    split = Splits.plan(path)[0]
    with pytest.raises(TypeError, match="unknown option"):
        millstream.open_split(split, colour="red")  # type: ignore[call-overload] # pyright: ignore
    with pytest.raises(TypeError):
        millstream.open_split(7)  # type: ignore[call-overload] # pyright: ignore
    with pytest.raises(millstream.OptionError, match="following a split"):
        millstream.open_split(split, follow="growing")


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_planning_and_opening_let_other_threads_run(tmp_path: Path) -> None:
    path = sparse(tmp_path / "sparse", 1 << 30)
    turns: list[int] = []

    def plan() -> None:
        Splits.plan(path, Framer.delimiter(b"aa"))
        turns.append(-1)

    thread = threading.Thread(target=plan)
    thread.start()
    while thread.is_alive():
        turns.append(1)
        time.sleep(0.001)
    assert turns.index(-1) > 5


def test_a_search_for_the_first_record_continues_after_a_signal(tmp_path: Path) -> None:
    """It takes longer than the time after which signals are handled."""
    path = sparse(tmp_path / "sparse", 1 << 30)
    with path.open("r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"\na")
    split = Splits.plan(path, size=1 << 29)[1]
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        assert list(millstream.open_split(split)) == [b"a"]
        timer.join()
        time.sleep(0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
