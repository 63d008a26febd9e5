"""Tests of passes over CSV that several processes make together: the plan is that of one process."""

from __future__ import annotations

import concurrent.futures
import gzip
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import data
import millstream as ms
import pytest
from millstream import _cluster, arrow


@pytest.fixture(scope="module")
def pool() -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "_PART_SIZE", 200_000)


def test_the_plan_is_that_of_one_process(tmp_path: Path, pool: concurrent.futures.ProcessPoolExecutor) -> None:
    first = data.csv(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b"id,text,price\n")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(first.read_bytes()))
    data.csv(tmp_path / "d.csv", 5000)
    parts: list[str] = []

    def by_pool(function: Callable[[str], str], values: Sequence[str]) -> Iterator[str]:
        parts.extend(values)
        return pool.map(function, values)

    for options in ({}, {"decode": "off", "columns": ["id"]}, {"pin": "ends"}):
        paths = [first, tmp_path / "d.csv"] if "decode" in options else str(tmp_path / "*.csv*")
        chosen: dict[str, Any] = {"split_size": data.SIZE, **options}
        parts.clear()
        assert arrow.plan_csv(paths, map=by_pool, **chosen) == arrow.plan_csv(paths, **chosen)
        assert len(parts) > 5
    # These need a pass of another kind, or have none that could be shared.
    for pin in ("none", "full"):
        parts.clear()
        whole = arrow.plan_csv(first, pin=pin, split_size=data.SIZE)
        assert arrow.plan_csv(first, pin=pin, split_size=data.SIZE, map=by_pool) == whole
        assert parts == []


def test_delimited_text(tmp_path: Path, pool: concurrent.futures.ProcessPoolExecutor) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"id;text\n" + b"1;'a;\nb'\n" * 100_000)
    plan = arrow.plan_delimited(path, ";", quote="'", map=pool.map, split_size=data.SIZE)
    assert plan == arrow.plan_delimited(path, ";", quote="'", split_size=data.SIZE)
    assert plan.tasks[1].rows


def test_a_file_that_changes_is_an_error(tmp_path: Path, pool: concurrent.futures.ProcessPoolExecutor) -> None:
    path = data.csv(tmp_path / "a.csv", 5000)

    def changing(function: Callable[[str], str], values: Sequence[str]) -> Iterator[str]:
        path.write_bytes(path.read_bytes() + b"1,a,1\n")
        return pool.map(function, values)

    with pytest.raises(ms.Error) as raised:
        arrow.plan_csv(path, map=changing)
    assert (raised.value.kind, raised.value.name) == ("source_changed", str(path))


def test_results_that_are_missing_or_of_another_pass(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    plan = arrow.plan_csv(path, map=lambda _, __: [], split_size=data.SIZE)
    assert plan == arrow.plan_csv(path, split_size=data.SIZE)
    results: list[str] = []

    def keep(function: Callable[[str], str], values: Sequence[str]) -> list[str]:
        results.extend(map(function, values))
        return results

    arrow.plan_csv(data.csv(tmp_path / "b.csv", 5000), map=keep)
    with pytest.raises(ms.Error, match="the result of another pass"):
        arrow.plan_csv(path, map=lambda _, __: results)


def test_errors_that_may_pass_are_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "_PAUSE", 0)
    calls: list[str] = []

    def follow(part: str) -> str:
        calls.append(part)
        if len(calls) < 3:
            raise ConnectionResetError(104, "reset")
        return "result"

    monkeypatch.setattr(_cluster, "follow_part", follow)
    assert _cluster._follow("part") == "result"
    assert len(calls) == 3
