"""Tests that invalid options and unknown names raise a TypeError or ValueError before anything is opened or started."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import millstream
import pytest
from millstream import Framer, Writer, bson
from millstream._options import CommandSettings, RemoteSettings, WriterSettings
from millstream._reader_options import ReaderOptions
from vectors import cases

NONSENSE: list[Any] = [
    True,
    False,
    -1,
    0,
    1,
    2**70,
    -(2**70),
    1.5,
    -0.5,
    math.nan,
    math.inf,
    "",
    "nonsense",
    b"nonsense",
    [],
    {},
    (),
    object(),
    lambda *_: None,
]


def is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int) and 0 < value < 2**32


def is_count(value: Any) -> bool:
    return is_number(value) or (value == 0 and type(value) is int)


def is_time(value: Any) -> bool:
    return is_number(value) or (isinstance(value, float) and 0 < value < 1e9)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def never(value: Any) -> bool:
    return False


def is_byte(value: Any) -> bool:
    return type(value) is int and 0 <= value < 256


Options = dict[str, Callable[[Any], bool]]

READER: Options = {
    "encoding": never,
    "errors": never,
    "framer": never,
    "delimiter": lambda value: is_byte(value) or value in ("nonsense", b"nonsense"),
    "keep_delimiter": is_bool,
    "record_limit": is_count,
    "capacity": is_number,
    "read_ahead": never,
    "read_ahead_capacity": never,
    "latency": never,
    "decode": never,
    "decode_limit": is_count,
    "decode_ratio": is_count,
    "stall_timeout": is_time,
    "name": is_text,
    "observer": callable,
    "observer_interval": never,
    "color": never,
}
COMMAND: Options = {
    **READER,
    "env": lambda value: value == {},
    "stdin": lambda value: (
        (type(value) is int and value in (0, 1)) or (isinstance(value, Iterable) and not isinstance(value, str))
    ),
    "stderr": never,
    "allow_failure": is_bool,
    "follow": never,
}
WRITER: Options = {
    "capacity": is_number,
    "flush_policy": never,
    "flush_delay": lambda value: is_time(value) or is_count(value),
    "encode": never,
    "stall_timeout": is_time,
    "name": is_text,
    "existing": never,
    "partial": never,
    "durability": never,
    "linger": never,
    "stdin": never,
    "color": never,
}
REMOTE: Options = {
    "headers": lambda value: value in ("", [], {}, ()),
    "endpoint": is_text,
    "idle_timeout": lambda value: is_time(value) or is_count(value),
    "retry_for": lambda value: is_time(value) or is_count(value),
    "allow_unknown_length": is_bool,
    "anonymous": is_bool,
    "range_size": is_count,
    "connections": is_count,
    "part_size": is_count,
    "color": never,
}
START = ["sh", "-c", "touch started"]

OPEN: dict[str, tuple[Callable[..., Any], Options]] = {
    "open": (
        lambda **o: millstream.open("input", **o),
        {**READER, "follow": never, "current_dir": never, "stdin": never},
    ),
    "command": (lambda **o: millstream.command(START, **o), COMMAND),
    "pipeline": (lambda **o: millstream.pipeline([START, ["cat"]], **o), COMMAND),
    "shell": (lambda **o: millstream.shell("touch started", **o), COMMAND),
    "stdin": (lambda **o: millstream.stdin(**o), READER),
    "from_fd": (lambda **o: millstream.from_fd(0, **o), READER),
    "from_bytes": (lambda **o: millstream.from_bytes(b"a\n", **o), READER),
    "from_callback": (
        lambda **o: millstream.from_callback(lambda _: b"", **o),
        {**READER, "decode_limit": never, "decode_ratio": never},
    ),
    "Writer.path": (lambda **o: Writer.path("output", **o), WRITER),
    "Writer.command": (lambda **o: Writer.command(START, **o), {**WRITER, "env": lambda v: v == {}, "stderr": never}),
    "Writer.stdout": (lambda **o: Writer.stdout(**o), WRITER),
    "Writer.fd": (lambda **o: Writer.fd(1, **o), WRITER),
    "Writer.memory": (lambda **o: Writer.memory(**o), WRITER),
    "Remote": (lambda **o: millstream.Remote("s3://bucket/key", **o), REMOTE),
}


def is_refused(call: Callable[..., Any], *args: Any, **options: Any) -> bool:
    try:
        opened = call(*args, **options)
    except (TypeError, ValueError) as error:
        # The options were rejected, and did not cause an error later.
        return not isinstance(error, millstream.Error) or isinstance(error, millstream.OptionError)
    if isinstance(opened, Writer):
        opened.abort()
    elif isinstance(opened, millstream.Reader):
        opened.close()
    return False


@pytest.mark.parametrize("name", OPEN)
def test_nonsense_is_refused_before_anything_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("input").write_bytes(b"a\n")
    call, options = OPEN[name]
    for option, is_right in options.items():
        for value in NONSENSE:
            if not is_right(value):
                assert is_refused(call, **{option: value}), (option, value)
    assert os.listdir() == ["input"]
    # Valid values are accepted, so the cases above were rejected for the intended reason.
    for option, is_right in options.items():
        for value in NONSENSE:
            if is_right(value):
                assert not is_refused(call, **{option: value}), (option, value)


def test_options_that_do_not_fit_together() -> None:
    wrong: list[dict[str, Any]] = [
        {"errors": "replace"},
        {"encoding": "utf-8", "errors": "no such"},
        {"encoding": "rot13"},
        {"encoding": "utf-16"},
        {"encoding": "cp037"},
        {"observer_interval": 1.0},
        {"framer": Framer.lines(), "keep_delimiter": True},
        {"framer": Framer.lines(), "delimiter": "x"},
    ]
    for options in wrong:
        with pytest.raises(millstream.OptionError):
            millstream.from_bytes(b"a\n", **options)
    assert list(millstream.from_bytes(b"a\0;\0b\0", encoding="utf-16-le", delimiter=b";\0")) == ["a", "b"]


@pytest.mark.parametrize(
    "call",
    [
        lambda reader, value: reader.next_batch(value),
        lambda reader, value: reader.batches(value),
        lambda reader, value: reader.columns("\t", [int], max_records=value),
        lambda reader, value: reader.columns("\t", [int], workers=value),
        lambda _, value: Framer.fixed(value),
        lambda _, value: Framer.length_prefixed(value),
    ],
)
def test_numbers_of_methods(call: Callable[[Any, Any], Any]) -> None:
    for value in NONSENSE:
        if not is_count(value):
            assert is_refused(call, millstream.from_bytes(b"1\n"), value), value


@pytest.mark.parametrize(
    "call",
    [
        lambda value: millstream.from_callback(value),
        lambda value: millstream.from_file(value),
        lambda value: Writer.callback(value),
        lambda value: millstream.map(value),
        lambda value: millstream.for_each(value),
        lambda value: millstream.fold(0, value),
        lambda value: millstream.command(value),
        lambda value: millstream.pipeline(value),
        lambda value: Writer.command(value),
        lambda value: Framer.any_of(value),
        lambda value: bson.loads(value),
        lambda value: bson.decode_all(b"", classes=value),
        lambda value: bson.loads(bson.dumps({}), dates=value),
        lambda value: bson.open("no such file", classes=value),
        lambda value: bson.dumps(value),
    ],
)
def test_nonsense_in_place_of_functions_words_and_bytes(call: Callable[[Any], Any]) -> None:
    for value in NONSENSE:
        if not (callable(value) or isinstance(value, (bytes, dict))):
            try:
                call(value)
            except (TypeError, ValueError):
                continue
            raise AssertionError(value)


def test_nothing_is_connected_before_options_are_checked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        port = server.getsockname()[1]
        for option, is_right in READER.items():
            for value in NONSENSE:
                if not is_right(value):
                    assert is_refused(millstream.tcp, "127.0.0.1", port, **{option: value}), (option, value)
        for timeout in (0, -1, math.nan, "nonsense"):
            assert is_refused(millstream.tcp, "127.0.0.1", port, timeout=timeout)
        with pytest.raises(TimeoutError):
            server.accept()
    for wrong in (0, -1, 2**16, True, "http", None, 1.5):
        assert is_refused(millstream.tcp, "127.0.0.1", wrong)


@pytest.mark.parametrize("of", ["reader", "writer", "command", "remote"])
def test_options_are_those_of_every_language(of: str) -> None:
    """Checks the existing options, and the words that each accepts, against `vectors/options.tsv`."""

    def call(**options: Any) -> object:
        if of == "command":
            return millstream.command(["true"], **options)
        if of == "remote":
            return millstream.Remote("s3://bucket/key", **options)
        return millstream.from_bytes(b"", **options) if of == "reader" else Writer.memory(**options)

    types = {
        "reader": ReaderOptions,
        "writer": WriterSettings,
        "command": CommandSettings,
        "remote": RemoteSettings,
    }
    typed = types[of].__annotations__
    names = set()
    for builder, name, takes, *otherwise in cases("options.tsv"):
        if builder != of:
            continue
        if any(why.startswith("python: ") for why in "".join(otherwise).split("; ")):
            with pytest.raises(TypeError, match=f"unknown option {name}"):
                call(**{name: object()})
            assert name not in typed
            continue
        names.add(name)
        assert name in typed, name
        if "|" in takes:
            with pytest.raises(millstream.OptionError) as caught:
                call(**{name: "nonsense"})
            assert caught.value.expected == " or ".join(f'"{word.rstrip("*")}"' for word in takes.split("|"))
        else:
            with pytest.raises((TypeError, ValueError)) as refused:
                call(**{name: object()})
            assert "unknown option" not in str(refused.value), name
    # There are no other options, except for Python's own.
    own = {"errors", "framer", "delimiter", "keep_delimiter", "observer_interval"} if of == "reader" else set()
    assert set(typed) - own == names


def test_names_are_those_of_every_language() -> None:
    """Checks the names in reports, and the words for streams and failures, against `vectors/names.tsv`."""
    reader = millstream.command(["true"])
    assert list(reader) == []
    with pytest.raises(millstream.OptionError) as stdin:
        millstream.command(["true"], stdin="nonsense")
    with pytest.raises(millstream.OptionError) as stderr:
        millstream.command(["true"], stderr="nonsense")  # type: ignore[call-overload]
    with pytest.raises(millstream.OptionError) as on_error:
        millstream.pipe([1], millstream.count(), on_error="nonsense")  # type: ignore[call-overload]
    reports = {
        "command_end": reader.ends[0],
        "writer_end": Writer.memory().close(),
        "summary": millstream.pipe([1], millstream.for_each(print)),
    }
    words = {"stdin": stdin, "stderr": stderr, "on_error": on_error}
    for name, *members in cases("names.tsv"):
        for member in members:
            if name in words:
                assert f'"{member}"' in str(words[name].value.expected), (name, member)
            else:
                assert hasattr(reports[name], member), (name, member)
