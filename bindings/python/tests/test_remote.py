"""Tests of objects of web servers and stores: a URL is accepted wherever a path is, with the same guarantees."""

from __future__ import annotations

import asyncio
import gzip
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import millstream
import pytest
from conftest import ROOT
from millstream import Framer, Remote, Splits, Writer, aio, bson
from millstream.bson import julia
from vectors import cases

# Its parts are sent in a few requests. It does not compress.
LARGE = b"".join(b"%d\n" % (number * 2654435761) for number in range(250_000))


class Store:
    """The store in memory, and its addresses."""

    def __init__(self, address: str) -> None:
        self.address = address

    def s3(self, key: str, **options: Any) -> Remote:
        return Remote(f"s3://bucket/{key}", endpoint=self.address, anonymous=True, **options)

    def web(self, key: str) -> str:
        return f"{self.address}/bucket/{key}"

    def put(self, key: str, data: bytes) -> None:
        with Writer.path(self.s3(key), encode="off") as out:
            out.write(data)

    def has(self, key: str) -> bool:
        try:
            millstream.open(self.web(key)).close()
        except millstream.FileError:
            return False
        return True


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    server = [sys.executable, str(ROOT / "tools/object-server")]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield Store(process.stdout.readline().strip())
        process.stdin.close()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy or an endpoint of the user's must not be used."""
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("AWS_"):
            monkeypatch.delenv(name)


def test_an_object_is_written_and_read(store: Store) -> None:
    remote = store.s3("folder/two words%.txt", headers=[("Content-Type", "text/plain")])
    with Writer.path(remote) as out:
        assert out.name == "s3://bucket/folder/two words%.txt"
        out.write("one\ntwo\n")
        out.put(3)
        assert not store.has("folder/two%20words%25.txt")
    assert list(millstream.open(remote)) == [b"one", b"two", b"3"]
    assert list(millstream.open(store.web("folder/two%20words%25.txt"), encoding="utf-8")) == ["one\n", "two\n", "3\n"]
    with Writer.path(remote, existing="replace") as out:
        out.write("four")
    with millstream.open(remote) as reader:
        assert (reader.read(), reader.name) == (b"four", "s3://bucket/folder/two words%.txt")


def test_compression_by_name(store: Store) -> None:
    with Writer.path(store.s3("lines.txt.gz")) as out:
        out.write(b"one\n" * 1000)
    raw = millstream.open(store.web("lines.txt.gz"), decode="off").read()
    assert gzip.decompress(raw) == b"one\n" * 1000
    assert millstream.open(store.web("lines.txt.gz?signature=1")).count() == 1000


def test_a_large_object(store: Store) -> None:
    store.put("large", LARGE)
    assert len(LARGE) > 3_000_000
    remote = store.s3("large", range_size=200_000, connections=3)
    assert millstream.open(remote).read() == LARGE
    # One description, several threads.
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(millstream.open(remote).read())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [LARGE] * 4
    with millstream.open(remote) as reader:
        assert next(reader) == b"0"
    assert reader.closed


def test_a_missing_object(store: Store) -> None:
    for missing in (store.s3("missing"), store.web("missing")):
        with pytest.raises(millstream.FileError, match="404") as caught:
            millstream.open(missing)
        assert (caught.value.kind, isinstance(caught.value, OSError)) == ("open_failed", True)
        name = missing.name if isinstance(missing, Remote) else missing
        assert caught.value.name == name
        assert name in str(caught.value)
    with pytest.raises(millstream.FileError) as refused:
        Writer.path(Remote("s3://other/key", endpoint=store.address, anonymous=True))
    assert refused.value.kind == "open_failed"


def test_a_body_that_is_cut_never_looks_like_the_end(store: Store) -> None:
    store.put("lines", b"0123456\n" * 100_000)
    taken: list[bytes] = []
    with pytest.raises(millstream.FileError) as caught:
        taken.extend(millstream.open(store.web("cut/lines")))
    assert taken == [b"0123456"] * 50_000
    assert (caught.value.kind, caught.value.name) == ("remote_failed", store.web("cut/lines"))
    assert caught.value.offset == 400_000
    with pytest.raises(millstream.FileError) as partial:
        millstream.open(store.web("cut/lines")).read()
    assert partial.value.partial == b"0123456\n" * 50_000


def test_headers_arrive_and_are_shown_nowhere(store: Store) -> None:
    secret = "s3cret"
    pairs = [("Authorization", f"Bearer {secret}"), ("X-Part", "one"), ("X-Part", "two")]
    forms: list[Any] = [pairs, iter(pairs), dict(pairs)]
    for headers in forms:
        remote = Remote(f"{store.web('headers')}?token={secret}", headers=headers)
        lines = list(millstream.open(remote, encoding="utf-8", keep_delimiter=False))
        assert f"authorization: Bearer {secret}" in lines
        assert "x-part: two" in lines
        assert ("x-part: one" in lines) == (headers is not forms[2])
        assert (repr(remote), remote.name) == (f'<millstream.Remote "{store.web("headers")}">', store.web("headers"))
    host = store.address.removeprefix("http://")
    missing = Remote(f"http://me:{secret}@{host}/bucket/no?token={secret}", headers=pairs)
    wrong = Remote(store.web("a"), headers={"Authorization": f"{secret}\n"})
    for bad in (missing, wrong):
        with pytest.raises(millstream.Error) as caught:
            millstream.open(bad)
        assert secret not in str(caught.value) + repr(caught.value) + repr(vars(caught.value)) + repr(bad)


def fail(out: Writer, data: bytes) -> None:
    out.write(data)
    raise KeyError


def test_a_writer_that_does_not_succeed_leaves_no_object(store: Store) -> None:
    with pytest.raises(KeyError), Writer.path(store.s3("failed")) as out:
        fail(out, b"one\n")
    out = Writer.path(store.s3("aborted"))
    out.write("one\n")
    out.abort()
    dropped = [Writer.path(store.s3("dropped"))]
    dropped[0].write("one\n")
    with pytest.warns(ResourceWarning, match="the writer to s3://bucket/dropped was not closed"):
        dropped.clear()
    with pytest.raises(millstream.StageFailed):
        millstream.pipe([1, 0], millstream.map(lambda number: 1 / number), Writer.path(store.s3("pipe")))
    assert [key for key in ("failed", "aborted", "dropped", "pipe") if store.has(key)] == []


def test_an_object_that_exists_is_not_replaced(store: Store) -> None:
    first, second = (Writer.path(store.s3("new"), existing="create_new") for _ in range(2))
    second.write("second")
    second.close()
    for late in (first.close, lambda: Writer.path(store.s3("new"), existing="create_new")):
        with pytest.raises(FileExistsError) as caught:
            late()
        assert isinstance(caught.value, millstream.FileError)
        assert (caught.value.kind, caught.value.name) == ("already_exists", "s3://bucket/new")
    first.abort()
    assert millstream.open(store.web("new")).read() == b"second"


def test_a_file_that_exists_is_the_same_error(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    with pytest.raises(FileExistsError) as caught:
        Writer.path(tmp_path / "new", existing="create_new")
    assert (caught.value.kind, caught.value.errno) == ("already_exists", None)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_unsupported_urls(scheme: str) -> None:
    with pytest.raises(millstream.Unsupported):
        Writer.path(f"{scheme}://127.0.0.1:1/key")


# A store that does not exist: nothing may be opened.
NOWHERE = "s3://bucket/key"

REFUSED: dict[str, Callable[[Any], object]] = {
    "no host": lambda _: millstream.open("http://"),
    "no bucket": lambda _: Writer.path("s3://"),
    "no key": lambda _: Writer.path("gs://bucket"),
    "no key of Azure": lambda _: millstream.open(Remote("AZ://container/")),
    "columns of no key": lambda _: bson.columns("gs://bucket"),
    "another scheme": lambda _: millstream.open(Remote("ftp://host/key")),
    "ranges of nothing": lambda _: millstream.open(Remote(NOWHERE, range_size=0)),
    "no connection": lambda _: millstream.open(Remote(NOWHERE, connections=0)),
    "no patience": lambda _: Writer.path(Remote(NOWHERE, idle_timeout=0)),
    "small parts": lambda _: Writer.path(Remote(NOWHERE, part_size=1)),
    "a header": lambda _: millstream.open(Remote(NOWHERE, headers={"a b": "c"})),
    "following": lambda url: millstream.open(url, follow="growing"),
    "a pinned file": lambda url: millstream.open(url, pin="identity"),
    "a mapped file": lambda url: cast("Any", millstream.open)(url, mapped=True),
    "appending": lambda url: Writer.path(url, existing="append"),
    "appending unchecked": lambda url: Writer.path(url, existing="append_unchecked"),
    "a kept part": lambda url: Writer.path(url, partial="keep"),
    "a durable close": lambda url: Writer.path(url, durability="all"),
    "a flush delay": lambda url: Writer.path(url, flush_delay=1),
    "lent pages": lambda url: Writer.path(url, lend_pages="consumer_copies"),
    "splits of nothing": lambda url: Splits.plan(url, size=0),
    "an index": lambda url: Splits.plan("missing", index=url),
    "a split": lambda url: Splits.plan(__file__)[0].with_path(url),
    "a mapped document": lambda url: bson.open(url),
    "a file of Julia's": lambda url: julia.load(url),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("url", [NOWHERE, Remote(NOWHERE)], ids=["text", "Remote"])
def test_what_an_object_cannot_be_used_for_is_refused_before_it_is_opened(case: str, url: Any) -> None:
    with pytest.raises(millstream.OptionError) as caught:
        REFUSED[case](url)
    assert caught.value.kind == "invalid_option"


@pytest.mark.parametrize(("text", "is_url"), cases("urls.tsv"))
def test_shared_vectors(text: str, is_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The option is refused for objects before anything is opened.
    calls: list[Callable[[Any], object]] = [
        lambda path: millstream.open(path, follow="growing"),
        bson.open,
    ]
    if "/" in text:  # other paths can be written
        calls.append(lambda path: Writer.path(path, existing="append"))
    for call in calls:
        with pytest.raises((FileNotFoundError, millstream.OptionError)) as caught:
            call(text)
        assert isinstance(caught.value, millstream.OptionError) == (is_url == "true"), caught.value
        # These are paths.
        for path in (text.encode(), Named(text), Path(text)):
            with pytest.raises(FileNotFoundError):
                call(path)
    assert os.listdir() == []


class Named(os.PathLike[str]):
    """A path that is not changed, as `pathlib.Path` changes two slashes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return self.name


def test_columns_of_records(store: Store) -> None:
    with Writer.path(store.s3("orders.csv.gz")) as out:
        out.write("item,price\nLamp,2.5\nChair,40\n")
    store.put("orders.jsonl", b'{"price": 2.5}\n{"price": 40}\n')
    store.put("orders.json", b'[{"price": 2.5}, {"price": 40}]')
    for source in (store.s3("orders.csv.gz"), store.web("orders.csv.gz"), store.web("orders.jsonl?a=b.csv")):
        assert millstream.columns(source)["price"].tolist() == [2.5, 40]
    for source in (store.s3("orders.json"), store.web("orders.json#fragment")):
        assert millstream.columns(source)["price"].tolist() == [2.5, 40]
    with pytest.raises(millstream.OptionError, match="does not tell its format"):
        millstream.columns(store.web("orders"))
    table = millstream.open(store.s3("orders.csv.gz")).columns(",", {"item": str, "price": str})
    assert table["item"].tolist() == ["item", "Lamp", "Chair"]
    store.put("cut.csv", b"price\n" + b"1\n" * 100_000)
    with pytest.raises(millstream.FileError) as caught:
        millstream.columns(store.web("cut/cut.csv"))["price"]
    assert caught.value.kind == "remote_failed"
    assert len(caught.value.partial) == 49_998


def test_types_from_all_records_of_an_object(store: Store) -> None:
    store.put("late.csv", b"n\n" + b"1\n" * 20_000 + b"2.5\n")
    for source in (store.s3("late.csv"), store.web("late.csv"), millstream.open(store.web("late.csv"))):
        assert millstream.columns(source, "csv", infer="all")["n"].tolist()[-1] == 2.5
    with pytest.raises(millstream.OptionError, match="an object without ranges or a strong ETag"):
        millstream.columns(store.web("once/late.csv"), infer="all")
    assert millstream.columns(store.web("once/late.csv"), infer=30_000)["n"].tolist()[-1] == 2.5


def test_rows_and_values(store: Store) -> None:
    store.put("rows.csv", b'id,name\n1,"Ann, B."\n')
    store.put("values.json", b'{"items": [1, [2]]}')
    rows = millstream.open(store.web("rows.csv"), framer=Framer.csv(), encoding="utf-8")
    assert list(rows.dicts()) == [{"id": "1", "name": "Ann, B."}]
    assert list(millstream.open(store.s3("values.json"), json_elements="/items").json()) == [1, [2]]


def test_columns_of_documents(store: Store) -> None:
    store.put("orders.bson", b"".join(bson.dumps({"price": price}) for price in (2.5, 40.0)))
    for source in (store.s3("orders.bson"), store.web("orders.bson")):
        assert bson.columns(source)["price"].tolist() == [2.5, 40]
        documents = millstream.open(source, framer=Framer.bson())
        assert [bson.loads(document)["price"] for document in documents] == [2.5, 40]


def test_pipes(store: Store) -> None:
    store.put("numbers", b"1\n2\n3\n")

    def square(line: bytes) -> int:
        return int(line) ** 2

    source, sink = millstream.open(store.s3("numbers")), Writer.path(store.s3("squares.zst"))
    summary = millstream.pipe(source, millstream.map(square), sink)
    assert summary.items == 3
    assert list(millstream.open(store.web("squares.zst"))) == [b"1", b"4", b"9"]
    command = millstream.command(["cat"], stdin=millstream.open(store.s3("squares.zst")))
    assert list(command) == [b"1", b"4", b"9"]


def test_asyncio(store: Store) -> None:
    async def fail() -> None:
        async with aio.Writer.path(store.s3("failed")) as out:
            await out.write("one\n")
            raise KeyError

    async def main() -> None:
        async with aio.Writer.path(store.s3("aio.gz")) as out:
            await out.write("one\ntwo\n")
        for source in (store.s3("aio.gz"), store.web("aio.gz")):
            assert [line async for line in aio.open(source)] == [b"one", b"two"]
        with pytest.raises(KeyError):
            await fail()
        with pytest.raises(millstream.FileError):
            await aio.open(store.web("failed"))

    asyncio.run(main())


class Slow(BaseHTTPRequestHandler):
    """A store whose answers take longer than the time between two checks for signals."""

    protocol_version = "HTTP/1.1"
    requests: list[str]
    objects: dict[str, bytes]

    def log_message(self, *_: Any, **__: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self.objects.get(self.path)
        self.answer(404 if body is None else 200, b"<Error><Code>NoSuchKey</Code></Error>" if body is None else body)

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        name, query = self.path.split("?")
        result = "InitiateMultipartUploadResult"
        if query != "uploads=":
            parts = [f"{name}?partNumber={number}&uploadId=1" for number in (1, 2)]
            self.objects[name] = b"".join(self.objects[part] for part in parts)
            result = "CompleteMultipartUploadResult"
        self.answer(200, f"<{result}><UploadId>1</UploadId></{result}>".encode())

    def do_DELETE(self) -> None:
        self.answer(204)

    def answer(self, status: int, body: bytes = b"") -> None:
        self.requests.append(f"{self.command} {self.path}")
        time.sleep(0.2)
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def slow() -> Iterator[tuple[Store, list[str]]]:
    handler = cast("type[Slow]", type("Handler", (Slow,), {"requests": [], "objects": {}}))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield Store(f"http://127.0.0.1:{server.server_port}"), handler.requests
        server.shutdown()


def test_slow_requests_are_not_made_again(slow: tuple[Store, list[str]]) -> None:
    """A check for signals must not interrupt a request, because it would start again."""
    store, requests = slow
    with Writer.path(store.s3("short")) as out:
        out.write("one\n")
    assert list(millstream.open(store.s3("short"))) == [b"one"]
    assert requests == ["GET /bucket/short", "PUT /bucket/short", "GET /bucket/short"]
    requests.clear()
    data = os.urandom(6 << 20)
    with Writer.path(store.s3("long", part_size=5 << 20)) as out:
        out.write(data)
    parts = [f"PUT /bucket/long?partNumber={number}&uploadId=1" for number in (1, 2)]
    assert requests[:2] == ["GET /bucket/long", "POST /bucket/long?uploads="]
    assert sorted(requests[2:4]) == parts
    assert requests[4:] == ["POST /bucket/long?uploadId=1"]
    assert millstream.open(store.s3("long")).read() == data


def test_an_unfinished_upload_is_removed(slow: tuple[Store, list[str]]) -> None:
    store, requests = slow
    with pytest.raises(KeyError), Writer.path(store.s3("long", part_size=5 << 20)) as out:
        fail(out, bytes(6 << 20))
    assert "DELETE /bucket/long?uploadId=1" in requests


def test_a_wait_can_be_cancelled_and_repeated(slow: tuple[Store, list[str]]) -> None:
    store, _ = slow
    out = Writer.path(store.s3("short"))
    out.write("one\n")
    # The next call is cancelled if none is waiting.
    out.cancel()
    with pytest.raises(millstream.Cancelled):
        out.close()
    end = out.close()
    assert end is not None
    assert end.bytes == 4
    assert list(millstream.open(store.s3("short"))) == [b"one"]


STUCK = """
import os, signal, socket, sys, threading, millstream
from millstream import Remote, Writer, bson
signal.signal(signal.SIGINT, signal.default_int_handler)
server = socket.create_server(("127.0.0.1", 0))
held = []

def serve():
    # The first requests are answered, the next ones never.
    for answer in ANSWERS:
        held.append(server.accept()[0])
        held[-1].recv(1 << 16)
        held[-1].sendall(answer)
    print("ready", flush=True)
    held.append(server.accept()[0])
    held[-1].recv(1 << 16)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=serve, daemon=True).start()
url = f"http://127.0.0.1:{server.getsockname()[1]}/bucket/key.csv"
store = Remote("s3://bucket/key", endpoint=url.removesuffix("/bucket/key.csv"), anonymous=True)
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""

MISSING = (
    b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 37\r\n\r\n<Error><Code>NoSuchKey</Code></Error>"
)
PART = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"1\n" * 3

WAITS = {
    "opening": ([], "millstream.open(url)"),
    "opening for writing": ([], "Writer.path(store)"),
    "columns": ([], "millstream.columns(url)"),
    "columns of documents": ([], "bson.columns(url)"),
    "closing": ([MISSING], "out = Writer.path(store); out.write('one'); out.close()"),
    "a list": (
        [],
        "os.environ.update(AWS_ENDPOINT_URL=url.removesuffix('/bucket/key.csv'), AWS_SKIP_SIGNATURE='true'); "
        "millstream._native.matching_objects('s3://bucket/*')",
    ),
    "a block": ([MISSING], "with Writer.path(store) as out: out.write('one')"),
}


@pytest.mark.parametrize("call", WAITS)
def test_ctrl_c_ends_waits_for_the_network(call: str) -> None:
    answers, program = WAITS[call]
    program = STUCK.replace("ANSWERS", repr(answers)).replace("CALL", program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stderr, done.stdout) == ("", "ready\ninterrupted\n")


def test_ctrl_c_ends_a_wait_for_bytes() -> None:
    program = STUCK.replace("ANSWERS", "[]").replace("CALL", "list(millstream.open(url))")
    program = program.replace("os.kill(", f"held[-1].sendall({PART!r}); os.kill(")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stderr, done.stdout) == ("", "ready\ninterrupted\n")


def test_an_object_is_divided_into_splits(store: Store) -> None:
    text = "id,name\n" + "".join(f'{number},"a\n{number}"\n' for number in range(500))
    store.put("table.csv", text.encode())
    places: list[str | Remote] = [store.s3("table.csv"), store.web("table.csv?secret")]
    for place in places:
        plan = Splits.plan(place, Framer.csv(), size=1000)
        assert (plan.file_size, plan.records, len(plan) > 3) == (len(text), 501, True)
        rows: list[list[bytes]] = []
        for split in pickle.loads(pickle.dumps(list(plan))):
            assert split.url == ("s3://bucket/table.csv" if isinstance(place, Remote) else place)
            assert split.path is None
            assert "secret" not in split.name + repr(split)
            opened = split.with_remote(place) if isinstance(place, Remote) else split
            with millstream.open_split(opened) as reader:
                assert reader.name == split.name
                rows += reader.rows()
        assert (len(rows), rows[-1]) == (501, [b"499", b"a\n499"])
    split = Splits.plan(store.s3("table.csv"))[0]
    store.put("table.csv", text.encode() + b" ")
    with pytest.raises(millstream.FileError, match=r"s3://bucket/table\.csv: .* the version with the ETag"):
        millstream.open_split(split).count()


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(store: Store) -> None:
    store.put("lines", b"one\n")
    program = f"""
import os, millstream
url = {store.web("lines")!r}
print(list(millstream.open(url)), flush=True)
if os.fork() == 0:
    try:
        millstream.open(url)
    except millstream.Unsupported as error:
        print(error.found, flush=True)
    os._exit(0)
os.wait()
print(list(millstream.open(url)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    expected = "[b'one']\na forked child of a process that has opened remote objects\n[b'one']\n"
    assert (done.stderr, done.stdout) == ("", expected)
