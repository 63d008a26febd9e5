"""Random files, with random splits: rows and errors are those of one machine."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millstream as ms
import pyarrow as pa
import pytest
from millstream import arrow

CASES = int(os.environ.get("MILLSTREAM_CASES", "100"))


def single(columns: Callable[[], Any]) -> Any:
    """The rows of one machine, or the error."""
    try:
        return pa.table(columns()).to_pylist()
    except (ms.Error, pa.ArrowInvalid):
        # pyarrow's own error lacks the details, so it is raised again.
        with pytest.raises(ms.Error) as caught:
            decode(columns)
        return details(caught.value)


def decode(columns: Callable[[], Any]) -> None:
    found = columns()
    found[(*found.names, "")[0]]


def split(plan: Callable[[], arrow.TablePlan]) -> Any:
    try:
        return [row for task in plan().tasks for batch in arrow.read_split(task) for row in batch.to_pylist()]
    except ms.Error as error:
        return details(error)


def details(error: ms.Error) -> Any:
    return error.kind, error.name, error.offset, error.path, error.found


def csv(draw: random.Random) -> bytes:
    cells = [b"1", b"2", b"x", b'"a\nb"', b'""', b"", b'"q""q"', b"0.5", b"007", b"z"]
    columns, end = draw.randint(1, 3), draw.choice([b"\n", b"\r\n", b"\r"])
    likely = [draw.choices(cells, k=2) for _ in range(columns)]
    rows = [b",".join(b"c%d" % number for number in range(columns))]
    for _ in range(draw.randint(0, 20)):
        row = [draw.choice(cells if draw.random() < 0.03 else of) for of in likely]
        if draw.random() < 0.02:
            row = [*row, b"9"] if draw.random() < 0.5 else row[:-1]
        rows.append(draw.choice([b"", b"#c", b'"x"y', b"\xff"]) if draw.random() < 0.05 else b",".join(row))
    mark = b"\xef\xbb\xbf" if draw.random() < 0.1 else b""
    return mark + draw.choice([b"", b"", end]) + end.join(rows) + draw.choice([b"", end, end])


def jsonl(draw: random.Random) -> bytes:
    values = ["1", "2.5", '"s"', "null", "true", "[1]", '{"x": 1}', "{}", "[]"]
    likely = {name: draw.choices(values, k=2) for name in "abc"}
    rows = []
    for _ in range(draw.randint(0, 20)):
        members = [f'"{name}": {draw.choice(of)}' for name, of in likely.items() if draw.random() < 0.9]
        rows.append(f"{{{', '.join(members)}}}")
    if rows and draw.random() < 0.3:
        bad = ["", "  ", '{"new": 1}', "{", '{"a": 1, "a": 2}', "7"]
        rows[draw.randrange(len(rows))] = draw.choice(bad)
    return "\n".join(rows).encode() + draw.choice([b"", b"\n", b"\r\n"])


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "a b é.csv"
    framer = ms.Framer.csv(comment="#")
    kinds = set()
    for seed in range(CASES):
        draw = random.Random(seed)
        path.write_bytes(csv(draw))
        options: dict[str, Any] = {
            "infer": draw.choice([1, 3, 10_000]),
            "header": draw.random() < 0.8,
            "nulls": draw.choice([[], [""]]),
        }
        size = draw.randint(1, 60)
        rows = single(lambda options=options: ms.columns(path, framer, threads=1, **options))  # type: ignore[misc]
        found = split(lambda options=options, size=size: arrow.plan_csv(path, comment="#", split_size=size, **options))  # type: ignore[misc]
        assert found == rows, seed
        kinds.add(type(rows))
    assert kinds == {list, tuple}  # rows and errors


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    kinds = set()
    for seed in range(CASES):
        draw = random.Random(seed)
        path.write_bytes(jsonl(draw))
        infer, size = draw.choice([1, 3, 10_000]), draw.randint(1, 60)
        rows = single(lambda infer=infer: ms.columns(path, infer=infer, threads=1))  # type: ignore[misc]
        found = split(lambda infer=infer, size=size: arrow.plan_jsonl(path, infer=infer, split_size=size))  # type: ignore[misc]
        assert found == rows, seed
        kinds.add(type(rows))
    assert kinds == {list, tuple}  # rows and errors
