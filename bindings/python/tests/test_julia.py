"""Tests of files from Julia's packages, compared with Julia's description of them, and of files that Julia never
writes."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import re
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import millstream
import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from millstream import bson
from millstream.bson import julia
from test_threads import grows

CORPUS = ROOT / "vectors" / "julia-bson"
FILES = sorted(CORPUS.glob("*.bson"))


def sidecar(file: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    return said


class Same:
    """Returns whether an object matches a sidecar; see the README of the corpus."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}

    def check(self, said: Any, found: Any) -> bool:
        if isinstance(found, np.generic):
            found = found.item()
        if not isinstance(said, dict):
            return self._plain(said, found)
        word = next((key for key in said if key.startswith("$")), "")
        if not word:
            return isinstance(found, dict) and self._members(list(said.items()), list(found.items()))
        checker = getattr(self, "_" + word[1:])
        result = checker(said, found)
        assert isinstance(result, bool)
        return result

    def all(self, said: list[Any], found: Any) -> bool:
        found = list(found)
        return len(said) == len(found) and all(map(self.check, said, found))

    def _plain(self, said: Any, found: Any) -> bool:
        if type(said) is float and type(found) is float:
            # The fewest digits that represent this number in its own type.
            with np.errstate(over="ignore"):
                return found in (said, float(np.float32(said)), float(np.float16(said)))
        return type(found) is type(said) and bool(found == said)

    def _members(self, said: list[Any], found: list[Any]) -> bool:
        """Compares without an order. Each key occurs once, so that it is compared only with its own value."""
        left = list(found)
        for key, value in said:
            at = next((at for at, (other, _) in enumerate(left) if self.check(key, other)), None)
            if at is None or not self.check(value, left.pop(at)[1]):
                return False
        return not left

    def _id(self, said: Any, found: Any) -> bool:
        self._objects[said["$id"]] = found
        return self.check(said["$value"], found)

    def _sameas(self, said: Any, found: Any) -> bool:
        return self._objects[said["$sameas"]] is found

    def _int(self, said: Any, found: Any) -> bool:
        return type(found) is int and found == int(said["$int"])

    def _float(self, said: Any, found: Any) -> bool:
        if said["$float"] == "NaN":
            return type(found) is float and found != found
        return type(found) is float and struct.pack("<d", found) == struct.pack("<d", float(said["$float"]))

    def _char(self, said: Any, found: Any) -> bool:
        if said["$char"] is None:
            return isinstance(found, julia.Primitive) and found.type == "Char"
        return type(found) is julia.Char and found == said["$char"]

    def _symbol(self, said: Any, found: Any) -> bool:
        return type(found) is julia.Symbol and found == said["$symbol"]

    def _missing(self, said: Any, found: Any) -> bool:
        return found is julia.missing

    def _undef(self, said: Any, found: Any) -> bool:
        return found is julia.undef

    def _bytes_hex(self, said: Any, found: Any) -> bool:
        return type(found) is bytes and found.hex() == said["$bytes_hex"]

    def _dict(self, said: Any, found: Any) -> bool:
        if isinstance(found, julia.Struct):
            assert found.type == said["type"]
            return self._members(said["$dict"], list(zip(*found.fields, strict=True)))
        return isinstance(found, dict) and self._members(said["$dict"], list(found.items()))

    def _set(self, said: Any, found: Any) -> bool:
        elements = found.fields if isinstance(found, julia.Struct) else found
        return isinstance(found, (set, julia.Struct)) and self._members(
            [[each, None] for each in said["$set"]], [(each, None) for each in elements]
        )

    def _tuple(self, said: Any, found: Any) -> bool:
        return type(found) is tuple and self.all(said["$tuple"], found)

    def _namedtuple(self, said: Any, found: Any) -> bool:
        names = [name for name, _ in said["$namedtuple"]]
        assert isinstance(found, julia.NamedTuple)
        assert all(found[name] is found[at] for at, name in enumerate(names))
        return list(found.names) == names and self.all([value for _, value in said["$namedtuple"]], found)

    def _pair(self, said: Any, found: Any) -> bool:
        return isinstance(found, julia.Pair) and self.all(said["$pair"], found)

    def _complex(self, said: Any, found: Any) -> bool:
        parts = [found.real, found.imag] if isinstance(found, complex) else found.fields
        return isinstance(found, (complex, julia.Struct)) and self.all(said["$complex"], parts)

    def _rational(self, said: Any, found: Any) -> bool:
        if isinstance(found, julia.Struct):
            return self.all(said["$rational"], found.fields)
        return isinstance(found, Fraction) and self.all(said["$rational"], [found.numerator, found.denominator])

    def _range(self, said: Any, found: Any) -> bool:
        return isinstance(found, range) and self.all(said["$range"], [found.start, found.stop - 1])

    def _array(self, said: Any, found: Any) -> bool:
        if isinstance(found, list):
            return len(said["size"]) == 1 and self.all(said["$array"], found)
        assert isinstance(found, np.ndarray)
        assert list(found.shape) == said["size"]
        assert found.flags.f_contiguous or found.size == 0
        return self.all(said["$array"], found.ravel(order="F"))

    def _bitarray(self, said: Any, found: Any) -> bool:
        assert list(found.shape) == said["size"]
        return bool(found.dtype == bool) and self.all(said["$bitarray"], found.ravel(order="F"))

    def _ref(self, said: Any, found: Any) -> bool:
        assert isinstance(found, julia.Struct)
        return found.type == said["type"] and self.all([said["$ref"]], found.fields)

    def _struct(self, said: Any, found: Any) -> bool:
        if isinstance(found, julia.Primitive):
            # In an array, for which the file does not describe the fields.
            return bool(found.type == said["$struct"])
        assert isinstance(found, julia.Struct)
        return found.type == said["$struct"] and self.all([value for _, value in said["fields"]], found.fields)

    def _primitive(self, said: Any, found: Any) -> bool:
        return bool(found == julia.Primitive(said["$primitive"], bytes.fromhex(said["bytes_hex"])))

    def _type(self, said: Any, found: Any) -> bool:
        # Old versions of Julia also write a bound of the variable.
        expected = re.sub(r"<:\w+(?=[,}])", "", said["$type"])
        return type(found) is julia.Type and str(found) == expected

    def _module(self, said: Any, found: Any) -> bool:
        return type(found) is julia.Module and found == said["$module"]

    def _function(self, said: Any, found: Any) -> bool:
        return type(found) is julia.Function and found == said["$function"]

    def _anonymous(self, said: Any, found: Any) -> bool:
        return found.type == "Function" and self.all([value for _, value in said["captures"]], found.fields)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_corpus(file: Path) -> None:
    said = sidecar(file)
    for root in (julia.load(file), julia.loads(file.read_bytes())):
        found = root["value"] if said["root_keys"] == ["value"] else root
        assert Same().check(said["value"], found), repr(found)


def test_arrays_lie_in_the_file() -> None:
    matrix = julia.load(CORPUS / "18-matrix-f64.bson")["value"]
    assert (matrix.dtype, matrix.flags.owndata, matrix.flags.writeable) == (np.float64, False, False)
    expected = sidecar(CORPUS / "18-matrix-f64.bson")["value"]
    gc.collect()
    assert matrix.tolist() == np.array(expected["$array"]).reshape(expected["size"], order="F").tolist()


def test_shared_and_cyclic_objects() -> None:
    shared = julia.load(CORPUS / "32-shared-refs.bson")["value"]
    assert shared[0] is shared[1] is shared[2][0]
    assert shared[3] is shared[4] is shared[5][0]
    assert isinstance(shared[3], julia.Struct)
    assert shared[3].fields == [5, None]
    ring = julia.load(CORPUS / "34-cycle-ring.bson")["ring"]
    assert "..." in repr(ring)


def test_structs() -> None:
    line = julia.load(CORPUS / "28-struct-nested.bson")["value"]
    assert (line.type, line[0].type, line[0].fields, line[2], len(line)) == (
        "Main.Corpus.Line",
        "Main.Corpus.Point",
        [0.0, 1.0],
        "diagonal",
        3,
    )
    assert repr(line[0]) == "Main.Corpus.Point(0.0, 1.0)"
    file = CORPUS / "31-vec-struct-bits.bson"
    described = julia.load(file, types={"Main.Corpus.Point": ["Float64", "Float64"]})["bits"]
    values = [[value for _, value in each["fields"]] for each in sidecar(file)["value"]["bits"]["$array"]]
    assert [each.fields for each in described] == values
    with pytest.raises(millstream.OptionError):
        julia.load(file, types={"Main.Corpus.Point": ["String"]})


def document(members: dict[str, Any]) -> bytes:
    return bson.dumps(members)


def test_dictionaries_that_are_none_in_python() -> None:
    def dictionary(keys: list[Any], values: list[Any]) -> Any:
        of = {"tag": "datatype", "name": ["Base", "Dict"], "params": [ANY, ANY]}
        return {"tag": "struct", "type": of, "data": [keys, values]}

    root = julia.loads(document({"a": dictionary([[1], [2]], ["x", "y"]), "b": dictionary([1, 2.5], [3, 4])}))
    assert root["b"] == {1: 3, 2.5: 4}
    assert isinstance(root["a"], julia.Struct)
    assert root["a"].fields == [[[1], [2]], ["x", "y"]]


ANY = {"tag": "datatype", "name": ["Core", "Any"], "params": []}


def test_depth_is_no_danger() -> None:
    """A chain of references that is much deeper than Python's recursion limit."""
    count = 100_000
    links = [{"tag": "tuple", "data": [{"tag": "backref", "ref": n + 2}]} for n in range(count)]
    data = document({"_backrefs": [*links, {"tag": "tuple", "data": []}], "value": {"tag": "backref", "ref": 1}})
    value, depth = julia.loads(data)["value"], 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == count


def test_what_cannot_contain_itself() -> None:
    itself = {"tag": "tuple", "data": [{"tag": "backref", "ref": 1}]}
    with pytest.raises(millstream.DocumentError) as caught:
        julia.loads(document({"_backrefs": [itself], "value": {"tag": "backref", "ref": 1}}))
    assert caught.value.kind == "julia_invalid"
    listed = julia.loads(
        document({"_backrefs": [[{"tag": "backref", "ref": 1}]], "value": {"tag": "backref", "ref": 1}})
    )
    assert listed["value"][0] is listed["value"]


def test_memory_is_limited(tmp_path: Path) -> None:
    with pytest.raises(millstream.TooMuchMemory):
        julia.loads(document({"value": [list(range(1000))] * 1000}), memory=1 << 20)
    path = tmp_path / "broken.bson"
    path.write_bytes(b"12345")
    with pytest.raises(millstream.DocumentError) as caught:
        julia.load(path)
    assert caught.value.name == str(path)
    with pytest.raises(FileNotFoundError):
        julia.load(tmp_path / "missing")


@given(st.data())
def test_damage_is_an_error_or_another_file(data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from(FILES)).read_bytes()[:5000])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(millstream.DocumentError, millstream.TooMuchMemory):
        julia.loads(damaged, memory=1 << 24)


def test_files_leave_nothing_behind() -> None:
    load = functools.partial(julia.load, CORPUS / "33-cycle-self.bson")
    matrices = functools.partial(julia.load, CORPUS / "48-matrices-each-type.bson")

    def work() -> None:
        for number in range(2000):
            load()
            matrices()
            if number % 100 == 0:
                gc.collect()

    assert grows(work) == 0
