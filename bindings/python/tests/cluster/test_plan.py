"""Tests of plans and of reading their splits: the result is that of one machine."""

from __future__ import annotations

import errno
import gzip
import http.server
import json
import os
import pickle
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import data
import millstream as ms
import pyarrow as pa
import pytest
from millstream import _cluster, arrow, bson
from millstream._cluster import version_of, with_version
from millstream._errors import from_native


def read(plan: arrow.TablePlan) -> pa.Table:
    return arrow.read_plan(plan).read_all().combine_chunks()


def failure(plan: arrow.TablePlan) -> tuple[int, ms.Error]:
    """The number of the first split that fails, and its error."""
    for task in plan.tasks:
        try:
            for _ in arrow.read_split(task):
                pass
        except ms.Error as error:
            return task.number, error
    raise AssertionError("no error")


def test_csv_with_line_feeds_in_quotes(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv")
    plan = arrow.plan_csv(path, split_size=data.SIZE)
    assert len(plan.tasks) > 10
    assert read(plan) == data.single(path)
    assert plan.size == path.stat().st_size
    assert max(task.size for task in plan.tasks) > 100_000  # there are records that are longer than a split


def test_json_lines_and_lines(tmp_path: Path) -> None:
    path = data.jsonl(tmp_path / "a.jsonl")
    assert read(arrow.plan_jsonl(path, split_size=data.SIZE)) == data.single(path)
    path = data.lines(tmp_path / "a.txt")
    plan = arrow.plan_lines(path, split_size=data.SIZE)
    assert len(plan.tasks) > 5
    assert read(plan) == data.single(path)
    assert read(plan)["line"][0].as_py() == "line 0\r of many"


def test_a_split_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'# a comment\n\n# another\nid,text\n1,"a\nb"\n\n2,c\n# c\n3,"d"\n')
    options: dict[str, Any] = {"comment": "#"}
    whole = data.plain(ms.columns(path, ms.Framer.csv(comment="#")))
    assert whole["id"].to_pylist() == [1, 2, 3]
    lines = data.plain(ms.columns(path, "lines"))
    for size in range(1, path.stat().st_size + 2):
        assert read(arrow.plan_csv(path, split_size=size, **options)) == whole
        assert read(arrow.plan_lines(path, split_size=size)) == lines
    rows = [
        sum(batch.num_rows for batch in arrow.read_split(task)) for task in arrow.plan_lines(path, split_size=1).tasks
    ]
    assert set(rows) == {0, 1}


CSV_TYPES = (
    b"b,i,u,d,f,day,t,tn,s,sn,z,zn,zo,text,none,bin\n"
    b"true,-1,18446744073709551615,99999999999999999999,1e5,2024-02-29,23:59:59,00:00:00.123456789,"
    b"2024-02-29T23:59:59.5,2024-02-29 23:59:59.123456789,2024-02-29T23:59:59Z,2024-02-29T23:59:59.000000001Z,"
    b"2024-02-29T23:59:59+02:00,007,,\xff\n"
)
JSON_TYPES = (
    b'{"b": true, "i": -1, "u": 18446744073709551615, "d": 99999999999999999999, "f": 0.1, "s": "2024-02-29", '
    b'"n": null, "e": {}, "l": [[1], []], "ln": [], "lo": [{"a": {"b": ["x"]}}], "m": [1, "x"], "q\\"\\n\xc3\xa9": 1}\n'
)


def test_all_inferred_types(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV_TYPES * 1 + CSV_TYPES.split(b"\n")[1] + b"\n")
    whole = data.single(path)
    assert len(set(whole.schema.types)) == 15
    assert read(arrow.plan_csv(path, split_size=100)) == whole
    path.write_bytes(b"a,b\n0.125,5\n0.5,7\n")
    whole = data.single(path, decimals=True)
    assert whole.schema.field("a").type == pa.decimal128(38, 3)
    assert read(arrow.plan_csv(path, split_size=9, decimals=True)) == whole
    path = tmp_path / "a.jsonl"
    path.write_bytes(JSON_TYPES * 3)
    table = read(arrow.plan_jsonl(path, split_size=100))
    assert table.to_pylist() == pa.table(ms.columns(path)).to_pylist()
    assert table["e"].to_pylist() == ["{}"] * 3
    assert table["m"].to_pylist() == [["1", '"x"']] * 3


def test_inferred_types_are_as_strict_as_on_one_machine(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,n\n" + b"1,2\n" * 30 + b"1,007\n")
    with pytest.raises(ms.Error) as caught:
        ms.columns(path, infer=10)["n"]
    single = caught.value
    number, error = failure(arrow.plan_csv(path, infer=10, split_size=32))
    assert number == 3
    assert (error.kind, error.record, error.offset, error.path) == (single.kind, 31, single.offset, "n")
    assert (error.name, error.found) == (str(path), single.found)
    assert "the type was inferred (increase infer, pass a schema, or set rejects)" in str(error)
    assert ", in n, at " in str(error)
    assert error.__notes__[-1] == f"in split 3 of the plan: bytes 97 to 131 of {path}"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.offset, again.__notes__) == (
        type(error),
        str(error),
        error.offset,
        error.__notes__,
    )
    path = tmp_path / "a.jsonl"
    for member in (b'"new": 1', b'"id": "1"', b'"id": 1, "id": 1'):
        path.write_bytes(b'{"id": 1}\n' * 30 + b"{" + member + b"}\n")
        with pytest.raises(ms.Error) as caught:
            ms.columns(path, infer=10)["id"]
        number, error = failure(arrow.plan_jsonl(path, infer=10, split_size=100))
        assert number == 3
        assert (error.kind, error.offset) == (caught.value.kind, caught.value.offset)


#: Files whose types differ, and what all of them have together.
DIFFERENT: list[tuple[str, list[bytes], dict[str, Any], list[dict[str, Any]]]] = [
    (
        "csv",
        [b"a,b,c\n1,2024-02-29,1\n", b"c,a,b\n2,2.5,NA\n", b"b,c,a\nx,007,3\n"],
        {"nulls": ["NA"]},
        [{"a": 1.0, "b": "2024-02-29", "c": "1"}, {"a": 2.5, "b": None, "c": "2"}, {"a": 3.0, "b": "x", "c": "007"}],
    ),
    ("csv", [b"1\n", b"2.5\n"], {"header": False, "decimals": True}, [{"0": Decimal("1.0")}, {"0": Decimal("2.5")}]),
    (
        "jsonl",
        [b"", b'{"a": 1}\n', b'{"a": 0.5, "b": [1]}\n', b'{"b": [], "c": {"d": true}}\n'],
        {},
        [
            {"a": 1.0, "b": None, "c": None},
            {"a": 0.5, "b": [1], "c": None},
            {"a": None, "b": [], "c": {"d": True}},
        ],
    ),
    ("jsonl", [b'{"a": 1, "a": 2}\n', b'{"a": "x", "a": 3}\n'], {"duplicates": "last"}, [{"a": 2}, {"a": 3}]),
]


@pytest.mark.parametrize(("format", "contents", "options", "rows"), DIFFERENT)
def test_types_of_all_files(
    tmp_path: Path, format: str, contents: list[bytes], options: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.{format}").write_bytes(content)
    plan: Any = getattr(arrow, f"plan_{format}")
    pattern = f"{tmp_path}/*.{format}"
    for size in (1, data.SIZE):
        planned = plan(pattern, infer="all", split_size=size, **options)
        assert read(planned).to_pylist() == rows
    # They are those of the command line.
    words = {
        "nulls": "--null=NA",
        "header": "--no-header",
        "decimals": "--decimals",
        "duplicates": "--json-duplicates=last",
    }
    files = [str(tmp_path / f"{number}.{format}") for number in range(len(contents))]
    command = [sys.executable, "-m", "millstream", "convert", "--infer=all", "--print-schema"]
    ended = subprocess.run([*command, *(words[name] for name in options), *files], capture_output=True, check=True)
    types = [json.loads(task.types)["fields"] for task in planned.tasks]
    assert types == [json.loads(ended.stdout)["fields"]] * len(types)
    # Otherwise they are those of the first file, in which others do not fit.
    if options != {"duplicates": "last"}:
        number, error = failure(plan(pattern, infer=10_000, **options))
        assert error.kind == "shape_mismatch"
        assert error.name != files[0]


def test_bad_records_have_no_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "b.csv").write_bytes(b"a,b\nx\n2.5,3\n")
    pattern = f"{tmp_path}/*.csv"
    plan = arrow.plan_csv(pattern, infer="all", rejects=tmp_path / "bad")
    assert read(plan).to_pydict() == {"a": [1.0, 2.5], "b": [2, 3]}
    assert arrow.count_rejects(tmp_path / "bad") == 1
    number, error = failure(arrow.plan_csv(pattern, infer="all"))
    assert (number, error.kind, error.record) == (1, "field_count_mismatch", 1)
    # Another file lacks a column.
    (tmp_path / "b.csv").write_bytes(b"a,c\n1,2\n")
    with pytest.raises(ms.Error, match=r"b\.csv: key missing"):
        arrow.plan_csv(pattern, infer="all")
    # A wrong word is refused before they are read: they are not JSON.
    misspelled: Any = "frist"
    with pytest.raises(ms.OptionError, match='duplicates="frist"'):
        arrow.plan_jsonl(pattern, infer="all", duplicates=misspelled)


@pytest.mark.parametrize("bad", [b"1\n", b"1,2,3\n"])
def test_a_wrong_number_of_fields_anywhere(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"\n".join([b"1,2"] * 3) + b"\n\n" + bad + b"1,2\n" * 3)
    with pytest.raises(ms.Error) as caught:
        ms.columns(path)["a"]
    single = caught.value
    places = set()
    for size in range(1, 40):
        number, error = failure(arrow.plan_csv(path, split_size=size))
        places.add(number)
        for name in ("kind", "code", "name", "offset", "record", "found", "expected"):
            assert getattr(error, name) == getattr(single, name), name
        rows = sum(
            batch.num_rows
            for task in arrow.plan_csv(path, split_size=size).tasks[:number]
            for batch in arrow.read_split(task)
        )
        assert rows <= 3
    assert len(places) > 3


def test_invalid_records(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 100 + b"bad \xff\n")
    number, error = failure(arrow.plan_lines(path, split_size=128))
    assert (number, error.kind, error.name, error.offset) == (3, "utf8_invalid", str(path), 500)
    assert read(arrow.plan_lines(path, split_size=128, schema={"line": "binary"}))["line"][100].as_py() == b"bad \xff"
    path.write_bytes(b'a,b\n1,2\n1,"2"x\n')
    number, error = failure(arrow.plan_csv(path, split_size=8, infer=1))
    assert (number, error.kind, error.record) == (1, "csv_invalid", 2)


def test_a_changed_file_is_an_error(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", 100)
    for pin in ("identity", "ends"):
        plan = arrow.plan_csv(path, split_size=512, pin=pin)
        text = path.read_bytes()
        path.write_bytes(text[:-5] + b"99.0\n")
        number, error = failure(plan)
        assert (number, error.kind, error.name) == (0, "source_changed", str(path))
        path.write_bytes(text)


def test_schemas_and_columns(tmp_path: Path) -> None:
    path = data.csv(tmp_path / "a.csv", 1000)
    schema = {"price": "decimal128(12, 2)", "id": "int32!"}
    plan = arrow.plan_csv(path, split_size=1000, schema=schema)
    assert (plan.schema.names, plan.schema.field("id").nullable) == (["price", "id"], False)
    assert read(plan) == data.single(path, schema=schema)
    plan = arrow.plan_csv(path, split_size=1000, columns=["price", "id"])
    assert read(plan) == data.single(path).select(["price", "id"])
    path = data.jsonl(tmp_path / "a.jsonl", 1000)
    assert read(arrow.plan_jsonl(path, split_size=1000, schema={"at": {"x": "float64"}})) == data.single(
        path, schema={"at": {"x": "float64"}}
    )
    with pytest.raises(ms.OptionError, match="the column 'b'"):
        arrow.plan_csv(tmp_path / "a.csv", columns=["b"])
    with pytest.raises(ms.Error, match="key missing"):
        arrow.plan_csv(tmp_path / "a.csv", schema={"b": "string"})


def test_dialects(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'1\tNA\t"x\n2\t5\ty"\n3\tNA\tz\n')
    plan = arrow.plan_delimited(path, "\t", header=False, nulls=["NA"], split_size=3)
    rows = [{"0": 1, "1": None, "2": '"x'}, {"0": 2, "1": 5, "2": 'y"'}, {"0": 3, "1": None, "2": "z"}]
    assert len(plan.tasks) == 3
    assert read(plan).to_pylist() == rows
    path.write_bytes(b"a;b\n'1;\n2';0\n")
    assert read(arrow.plan_csv(path, delimiter=";", quote="'", split_size=1)).to_pylist() == [{"a": "1;\n2", "b": 0}]


def test_files(tmp_path: Path) -> None:
    for name, text in [("b.csv", "x,y\n3,c\n"), ("a.csv", "x,y\n1,a\n2,b\n"), ("c.csv", "y,x\nd,4\n")]:
        (tmp_path / name).write_text(text)
    (tmp_path / "d.csv").mkdir()
    plan = arrow.plan_csv(f"{tmp_path}/*.csv", split_size=4)
    assert read(plan).to_pydict() == {"x": [1, 2, 3, 4], "y": ["a", "b", "c", "d"]}
    assert plan == arrow.plan_csv(f"{tmp_path}/*.csv", split_size=4)
    assert pickle.loads(pickle.dumps(plan)) == plan
    files = [tmp_path / "b.csv", tmp_path / "a.csv"]
    assert read(arrow.plan_csv(files))["x"].to_pylist() == [3, 1, 2]
    with pytest.raises(FileNotFoundError, match="no file matches the pattern"):
        arrow.plan_csv(f"{tmp_path}/*.tsv")
    with pytest.raises(FileNotFoundError):
        arrow.plan_csv(tmp_path / "*.csv")
    with pytest.raises(ms.OptionError, match="twice"):
        arrow.plan_csv([f"{tmp_path}/*.csv", tmp_path / "a.csv"])
    with pytest.raises(ms.OptionError, match="no path"):
        arrow.plan_csv([])
    (tmp_path / "c.csv").write_text("x,z\n4,d\n")
    with pytest.raises(ms.Error, match=r"c\.csv"):
        arrow.plan_csv(f"{tmp_path}/*.csv")
    (tmp_path / "a[1].csv").write_text("x,y\n9,a\n")
    assert read(arrow.plan_csv(f"{tmp_path}/a[1].csv"))["x"].to_pylist() == [9]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a store in memory, which `s3://` leads to."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    server = [sys.executable, str(Path(__file__).parents[4] / "tools/object-server")]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().strip()
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        yield address
        process.stdin.close()


def put(key: str, content: bytes) -> None:
    with ms.Writer.path(f"s3://bucket/{key}", encode="off") as out:
        out.write(content)


def test_objects(store: str, tmp_path: Path) -> None:
    csv = data.csv(tmp_path / "a.csv", 3000)
    for key in ("tables/a.csv", "tables/deep/b c.csv"):
        put(key, csv.read_bytes())
    plan = arrow.plan_csv("s3://bucket/tables/**/*.csv", split_size=20_000)
    assert len(plan.tasks) > 5
    single = data.single(csv)
    assert read(plan) == pa.concat_tables([single, single])
    assert read(arrow.plan_csv(f"{store}/bucket/tables/a.csv", split_size=20_000)) == single
    # As in another process.
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan.tasks]
    assert sum(batch.num_rows for task in tasks for batch in arrow.read_split(task)) == 2 * single.num_rows
    put("lines/empty", b"")
    put("lines/some", b"one\ntwo")
    assert read(arrow.plan_lines("s3://bucket/lines/*"))["line"].to_pylist() == ["one", "two"]
    put("lines.jsonl", b'{"a": 1}\n{"a": 2}\n')
    assert read(arrow.plan_jsonl("s3://bucket/lines.jsonl", split_size=1))["a"].to_pylist() == [1, 2]
    put("all/1.jsonl", b'{"a": 1}\n')
    put("all/2.jsonl", b'{"a": 2.5}\n')
    assert read(arrow.plan_jsonl("s3://bucket/all/*", infer="all"))["a"].to_pylist() == [1.0, 2.5]
    with pytest.raises(FileNotFoundError, match="no object matches the pattern"):
        arrow.plan_csv("s3://bucket/none/*.csv")
    with pytest.raises(ms.OptionError, match=r"http://127.0.0.1:\d+/bucket/lines/some twice") as caught:
        arrow.plan_lines([f"{store}/bucket/lines/some?secret"] * 2)
    assert "secret" not in str(caught.value)
    # Another version since it was planned.
    put("tables/a.csv", csv.read_bytes() + b"\n")
    with pytest.raises(ms.FileError, match=r"s3://bucket/tables/a\.csv: .* the version with the ETag"):
        read(plan)


@pytest.mark.parametrize("lines", [50, 200])
@pytest.mark.usefixtures("store")
def test_objects_of_which_another_version_was_divided(lines: int) -> None:
    """A stream divides the current version, and requires that of its offset."""
    url = "s3://bucket/a.txt"
    put("a.txt", b"a line\n" * 100)
    versions = {url: version_of(url)}
    tasks = [with_version(task, versions) for task in arrow.plan_lines(url, split_size=64).tasks]
    assert sum(batch.num_rows for task in tasks for batch in arrow.read_split(task)) == 100
    put("a.txt", b"a line\n" * lines)
    for task in arrow.plan_lines(url, split_size=64).tasks:
        with pytest.raises(ms.FileError, match="source changed"):
            list(arrow.read_split(with_version(task, versions)))


def test_compressed_files(tmp_path: Path) -> None:
    text = data.csv(tmp_path / "a.csv", 2000).read_bytes()
    with ms.Writer.path(tmp_path / "a.csv.gz") as writer:
        writer.write(text)
    assert read(arrow.plan_csv(tmp_path / "a.csv.gz", split_size=1000)) == data.single(tmp_path / "a.csv")


def test_gzip_with_and_without_an_index(tmp_path: Path) -> None:
    names = {"csv": data.csv, "jsonl": data.jsonl, "lines": data.lines}
    wholes = {name: data.single(write(tmp_path / name), format=name) for name, write in names.items()}
    for name in names:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))

    def plan(name: str) -> arrow.TablePlan:
        function: Any = getattr(arrow, f"plan_{name}")
        made: arrow.TablePlan = function(f"{tmp_path}/{name}*.gz", split_size=data.SIZE)
        assert read(made) == wholes[name]
        return made

    assert [len(plan(name).tasks) for name in names] == [1, 1, 1]
    for name in names:
        index = [sys.executable, "-m", "millstream", "index", "--spacing", "100K", str(tmp_path / f"{name}.gz")]
        subprocess.run(index, check=True, capture_output=True)
    # The records of CSV are found while it is decoded.
    assert len(plan("csv").tasks) == 1
    assert min(len(plan(name).tasks) for name in ("jsonl", "lines")) > 1
    planned = plan("lines")
    (tmp_path / "lines.gz.gzidx").unlink()
    with pytest.raises(FileNotFoundError, match=r"lines\.gz\.gzidx"):
        read(planned)


#: Two records whose column `n` is not a number, and the types that they are read with.
MISFITS: list[tuple[str, bytes, dict[str, Any]]] = [
    ("csv", b"n,id\nx,1\ny,2\n", {"n": "int64", "id": "int64"}),
    ("jsonl", b'{"n": "x", "id": 1}\n{"n": "y", "id": 2}\n', {"n": "int64", "id": "int64"}),
    ("bson", bson.dumps({"n": "x", "id": 1}) + bson.dumps({"n": "y", "id": 2}), {"n": "int", "id": "int"}),
]


@pytest.mark.parametrize(("format", "content", "schema"), MISFITS, ids=[format for format, _, _ in MISFITS])
def test_columns_that_are_not_selected(tmp_path: Path, format: str, content: bytes, schema: dict[str, Any]) -> None:
    """Those of given types are not parsed."""
    path = tmp_path / f"a.{format}"
    path.write_bytes(content)
    function: Any = getattr(arrow, f"plan_{format}")
    plan = function(path, schema=schema, split_size=10)
    assert read(plan.select(["id"])) == read(function(path, schema=schema, columns=["id"]))
    assert read(plan.select(["id"]))["id"].to_pylist() == [1, 2]
    assert read(plan.select([])).num_rows == 2
    for names in (["n"], ["id", "n"]):
        _, error = failure(plan.select(names))
        assert error.path == "n"
    with pytest.raises(ms.OptionError, match="the column 'b'"):
        plan.select(["b"])
    if format == "bson":
        return
    # Bad records are the same ones, whatever is selected.
    rejecting = function(path, schema=schema, rejects=tmp_path / "bad")
    assert read(rejecting.select(["id"])).num_rows == 0
    assert arrow.count_rejects(tmp_path / "bad") == 2
    # Inferred types must fit.
    path.write_bytes(content.replace(b'"x"', b"5").replace(b"x", b"5"))
    _, error = failure(function(path, infer=1).select(["id"]))
    assert error.path == "n"


def test_bson(tmp_path: Path) -> None:
    path = tmp_path / "a.bson"
    schema = {"n": "int"}
    document = b"\x10n\x00%c\x00\x00\x00\x00"
    path.write_bytes(b"".join((len(document) + 3).to_bytes(4, "little") + document % n for n in range(100)))
    plan = arrow.plan_bson(path, schema=schema, split_size=100)
    assert len(plan.tasks) > 5
    assert read(plan)["n"].to_pylist() == list(range(100))
    for task in plan.tasks:
        assert task.rows == sum(batch.num_rows for batch in arrow.read_split(task))
    with pytest.raises(ms.OptionError, match="schema"):
        arrow.plan_bson(path)


def failing(times: int, number: int) -> tuple[list[int], Any]:
    """Counts the calls of `open_split`, the first of which fail with this error of the system."""
    calls: list[int] = []

    def open_split(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            raise from_native({"message": "failed", "kind": "io", "errno": number, "name": "a.txt"})
        return ms.open_split(*arguments, **options)

    return calls, open_split


def test_errors_that_may_pass_are_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n")
    plan = arrow.plan_lines(path)
    monkeypatch.setattr(_cluster, "_PAUSE", 0)
    cases = [(2, errno.EIO, None), (9, errno.ESTALE, errno.ESTALE), (1, errno.EACCES, errno.EACCES)]
    for times, number, expected in cases:
        calls, function = failing(times, number)
        monkeypatch.setattr(_cluster, "open_split", function)
        if expected is None:
            assert read(plan)["line"].to_pylist() == ["a", "b"]
            assert len(calls) == 3
        else:
            with pytest.raises(ms.FileError) as caught:
                read(plan)
            assert caught.value.errno == expected
            assert len(calls) == (4 if number == errno.ESTALE else 1)


def test_no_retry_after_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n")
    [task] = arrow.plan_lines(path).tasks
    monkeypatch.setattr(_cluster, "_PAUSE", 0)

    def batches(*_: Any) -> Any:
        yield 1
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(_cluster, "_batches", batches)
    reading = arrow.read_split(task)
    assert next(reading) == 1  # pyright: ignore
    with pytest.raises(OSError, match="broken"):
        next(reading)


class Lists(http.server.BaseHTTPRequestHandler):
    """A store that lists 2500 objects in pages, and nothing else."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        self.asked.append(self.path)
        begin = int(query.get("continuation-token", 0))
        end = min(begin + 1000, 2500)
        entry = "<Contents><Key>a/{0:04}</Key><ETag>&quot;{0}&quot;</ETag><Size>1000</Size></Contents>"
        body = "".join(entry.format(number) for number in range(begin, end))
        body += f"<NextContinuationToken>{end}</NextContinuationToken>" if end < 2500 else ""
        self.send_response(200 if "list-type" in query else 403)
        self.end_headers()
        body = f"<ListBucketResult><IsTruncated>{str(end < 2500).lower()}</IsTruncated>{body}</ListBucketResult>"
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_listed_objects_are_planned_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {"ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    plan = arrow.plan_lines("s3://bucket/a/*", split_size=400, decode="off")
    assert len(Lists.asked) == 3
    assert len(plan.tasks) == 7500
    urls = [ms.Split.from_json(task.split).url for task in plan.tasks[::3]]
    assert urls == [f"s3://bucket/a/{number:04}" for number in range(2500)]
    assert sum(task.size for task in plan.tasks) == 2_500_000
    # Whether it is compressed must be asked of each object. The first error counts.
    with pytest.raises(ms.Error, match="a/0000: remote failed: found the answer 403"):
        arrow.plan_lines("s3://bucket/a/*")
    server.shutdown()


COUNTED = [
    b"",
    b"\n\n",
    b"a,b\n",
    b"a,b",
    b"\xef\xbb\xbfa,b\n1,2\n",
    b'a,b\n1,"x\n\n#\n"\n\n# a comment\n\r\n2,"""\n"\n3,#\n',
    b"\n# first\n\na,b\r\n1,2\r\n\r\n# last",
    b"# " + b"long " * 100_000 + b"\na,b\n1,2\n" + b"#" * 300_000 + b'\n2,"' + b"\n" * 300_000 + b'"\n\n3,4',
]


@pytest.mark.parametrize("header", [True, False])
def test_the_number_of_rows_of_csv_is_planned(tmp_path: Path, header: bool) -> None:
    path = tmp_path / "a.csv"
    for text in COUNTED:
        path.write_bytes(text)
        sizes = range(1, 40) if len(text) < 1_000 else (1_000, 100_000, 10_000_000)
        for size in sizes:
            plan = arrow.plan_csv(path, split_size=size, comment="#", header=header, schema={} if not text else None)
            rows = [sum(batch.num_rows for batch in arrow.read_split(task)) for task in plan.tasks]
            assert [task.rows for task in plan.tasks] == rows


def test_the_number_of_rows_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,2\n3,4\n5,"6\n7,8\n')
    rows = [task.rows for task in arrow.plan_csv(path, split_size=6, schema={"a": "string"}).tasks]
    assert (rows[:2], rows[-1]) == ([1, 1], None)
    assert [task.rows for task in arrow.plan_csv(path, rejects=tmp_path / "bad").tasks] == [None]
    assert [task.rows for task in arrow.plan_jsonl(data.jsonl(tmp_path / "a.jsonl", 3)).tasks] == [None]


BAD = {
    "csv": b'a,b\n1,x\n2\n3,"y\n"\n4,x"y\nz,5\n6,z,7\n\n8,w\n9,"u"u\n10,\xff\n11,v\n',
    "jsonl": b'{"a": 1, "b": "x"}\n{"a": }\n{"a": 3, "b": "y"}\n[]\n{"a": "z", "b": "5"}\n\n{"a": 6, "b": "w"}\n',
    "lines": b"one\n\xff\n\ntwo\xfe\nthree",
}


def converted(path: Path, place: Path, schema: dict[str, str] | None) -> list[dict[str, Any]]:
    """The rejects of the command line."""
    options = ["-o", str(place / "out.parquet"), "--rejects", str(place / "rejects.jsonl")]
    if schema is not None:
        fields = [{"name": name, "type": of} for name, of in schema.items()]
        (place / "types.json").write_text(json.dumps({"fields": fields}))
        options += ["--schema", str(place / "types.json")]
    command = [sys.executable, "-m", "millstream", "convert", str(path), *options]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(line) for line in (place / "rejects.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("format", BAD)
def test_rejects(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{'txt' if format == 'lines' else format}"
    path.write_bytes(BAD[format])
    schema = None if format == "lines" else {"a": "int64", "b": "string"}
    planned: Any = getattr(arrow, f"plan_{format}")
    whole = data.plain(ms.columns(path, format, schema=schema, on_bad="skip"))  # type: ignore[arg-type]
    single = converted(path, tmp_path, schema)
    assert len(single) > 1
    for size in range(1, len(BAD[format]) + 1):
        bad = tmp_path / f"bad {size}"
        plan = planned(path, split_size=size, schema=schema, rejects=bad)
        assert plan == planned(path, split_size=size, schema=schema, rejects=bad, on_bad="skip")
        with pytest.raises(FileNotFoundError):
            arrow.count_rejects(bad)
        assert read(plan) == whole
        assert arrow.count_rejects(bad) == len(single)
        first = {file.name: file.read_bytes() for file in bad.iterdir()}
        assert len(first) == len(plan.tasks)
        found = [json.loads(line) for name in sorted(first) for line in first[name].splitlines()]
        # Numbers of records and lines count from the start of a split if the plan has not counted.
        exact = ("source", "byte", "kind", "raw")
        assert [[line[name] for name in exact] for line in found] == [[line[name] for name in exact] for line in single]
        if len(plan.tasks) == 1:
            assert found == single
        # A task that is run again replaces its file.
        assert read(plan) == whole
        assert {file.name: file.read_bytes() for file in bad.iterdir()} == first


def test_rejects_of_csv_without_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n3\n4,5\n6,7,8\n9,0\n")
    for size in range(1, 22):
        plan = arrow.plan_csv(path, header=False, split_size=size, rejects=tmp_path / str(size))
        assert read(plan).to_pydict() == {"0": [1, 4, 9], "1": [2, 5, 0]}
        assert arrow.count_rejects(tmp_path / str(size)) == 2


def test_more_rejects_than_a_batch_keeps(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1\n" * 5_000 + b"1,2\n")
    assert read(arrow.plan_csv(path, rejects=tmp_path / "bad")).num_rows == 1
    assert arrow.count_rejects(tmp_path / "bad") == 5_000


def test_rejects_of_splits_that_were_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n\xff\n" * 1_000)
    bad = tmp_path / "bad"
    plan = arrow.plan_lines(path, split_size=1_000, rejects=bad)
    for task in plan.tasks[1:]:
        list(arrow.read_split(task))
    reading = arrow.read_split(plan.tasks[0])
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # pyright: ignore
    with pytest.raises(ms.OptionError, match="the rejects of 6 of 7 splits"):
        arrow.count_rejects(bad)
    list(arrow.read_split(plan.tasks[0]))
    assert arrow.count_rejects(bad) == 1_000
    read(arrow.plan_lines(path, split_size=2_000, rejects=bad))
    with pytest.raises(ms.OptionError, match=r"the rejects of 2 reads .*, expected a directory for each read"):
        arrow.count_rejects(bad)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.jsonl").write_text("{}\n")
    with pytest.raises(ms.OptionError, match=r"a\.jsonl, expected files of rejects only"):
        arrow.count_rejects(tmp_path / "other")


def test_options_of_rejects(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n1\n")
    with pytest.raises(ms.OptionError, match="without rejects, expected rejects=DIRECTORY"):
        arrow.plan_csv(path, on_bad="skip")
    with pytest.raises(ms.OptionError, match='rejects with on_bad="stop"'):
        arrow.plan_csv(path, on_bad="stop", rejects=tmp_path)
    with pytest.raises(ms.OptionError, match="on_bad='no'"):
        arrow.plan_csv(path, on_bad="no")  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(ms.OptionError, match="rejects for BSON"):
        arrow.plan_bson(path, schema={"n": "int"}, rejects=tmp_path)  # type: ignore[call-arg]  # pyright: ignore


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [
        ("**/*.jsonl", "bad"),
        ("**", "bad"),
        ("*/[0-9]*", "bad"),
        ("*.jsonl", "."),
        ("a*", "./x/.."),
        ("b*/**/*.jsonl", "bad/of/../worse"),
    ],
)
def test_rejects_that_the_input_matches(tmp_path: Path, pattern: str, directory: str) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    for plan in (arrow.plan_lines, arrow.plan_jsonl, arrow.plan_csv):
        with pytest.raises(ms.OptionError, match=r"whose files the pattern .* matches, expected a directory that it"):
            plan([str(tmp_path / "a.jsonl"), f"{tmp_path}/{pattern}"], rejects=f"{tmp_path}/{directory}")  # pyright: ignore
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    # Objects are not even listed.
    match = r"whose files the pattern 's3://bucket/.*' matches"
    with pytest.raises(ms.OptionError, match=match):
        arrow.plan_lines("s3://bucket/a/{x,bad}/*", rejects="s3://bucket/a/bad/")


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [("*.jsonl", "bad"), ("**/*.csv", "bad"), ("**/*.jsonl", ".bad"), ("a.jsonl", "."), ("[a]/*.jsonl", "bad")],
)
def test_rejects_that_the_input_does_not_match(tmp_path: Path, pattern: str, directory: str) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a.jsonl", "a.csv", "a/a.jsonl"):
        (tmp_path / name).write_text("{}\n")
    read(arrow.plan_lines(f"{tmp_path}/{pattern}", rejects=tmp_path / directory))
    read(arrow.plan_lines(f"{tmp_path}/{pattern}", rejects=tmp_path / directory))
    if directory != ".":
        assert arrow.count_rejects(tmp_path / directory) == 0


def test_rejects_in_a_store(store: str) -> None:
    put("bad.csv", BAD["csv"])
    plan = arrow.plan_csv("s3://bucket/bad.csv", split_size=5, schema={"a": "int64"}, rejects="s3://bucket/bad/")
    assert read(plan)["a"].to_pylist() == [1, 3, 8, 10, 11]
    assert arrow.count_rejects("s3://bucket/bad") == 5
