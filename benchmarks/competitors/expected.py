"""Computes the expected output of the programs that print and read numbers, for the hashes in the definitions.

Usage: expected.py print counter|random COUNT | sha256sum
       expected.py larger < INPUT | sha256sum
       expected.py records|orders|untyped|wide|weights INPUT
       expected.py lines INPUT
       expected.py table INPUT

It shares no code with the runners and is simple rather than fast. (All forms except `print` need the input: `make
bench` leaves it in the directory given by `--inputs`.) The last forms print answers: sums over the content of
documents, the answer of runners that pass on lines, and the sums over the fields of CSV. A table can have any size.
"""

import array
import csv
import hashlib
import struct
import sys


def random_numbers(state=3):
    """The numbers of print/random.h, implemented from their description: splitmix64, then a length, then a number."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        digits, left = divmod(z * 10, 2**64)
        least = 10**digits if digits > 0 else 0
        yield least + (left * (10 ** (digits + 1) - least) >> 64)


def documents(data):
    """Yields each document of a file as pairs of key and value, as specified in https://bsonspec.org/spec.html."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<i", data, at)
        yield members(data, at)
        at += length


def members(data, at):
    """Yields the members of the document at `at`. Supports only the types that occur in the inputs."""

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def raw(length):
        nonlocal at
        value = data[at : at + length]
        at += length
        return value

    def cstring():
        return raw(data.index(b"\0", at) + 1 - at)[:-1].decode()

    def inner():
        (length,) = struct.unpack_from("<i", data, at)
        found = members(data, at)
        raw(length)
        return found

    def binary():
        length = number("i")
        raw(1)
        return raw(length)

    read = {
        0x01: lambda: number("d"),
        0x02: lambda: raw(number("i"))[:-1].decode(),
        0x03: inner,
        0x04: inner,
        0x05: binary,
        0x07: lambda: raw(12),
        0x08: lambda: number("?"),
        0x09: lambda: number("q"),
        0x0A: lambda: None,
        0x0B: lambda: (cstring(), cstring()),
        0x10: lambda: number("i"),
        0x11: lambda: raw(8),
        0x12: lambda: number("q"),
    }
    number("i")
    pairs = []
    while kind := number("B"):
        key = cstring()
        pairs.append((key, read[kind]()))
    return pairs


def everything(pairs):
    """Yields every pair on every level."""
    for key, value in pairs:
        yield key, value
        if isinstance(value, list):
            yield from everything(value)


def answer(work, data):
    """Returns the sums by name, as in the definitions."""
    if work == "weights":
        floats = [array.array("f", dict(one)["data"]) for _, one in dict(members(data, 0))["weights"]]
        total = sum(sum(one) for one in floats)
        return {"count": len(floats), "floats": sum(map(len, floats)), "sum": int(total * 256), "bytes": len(data)}
    found = list(documents(data))
    pairs = [pair for document in found for pair in everything(document)]
    text = sum(len(value.encode()) for _, value in pairs if isinstance(value, str))

    def total(name):
        return sum(value for key, value in pairs if key == name)

    def lists(name):
        return sum(len(value) for key, value in pairs if key == name)

    def of_type(kind):
        return [value for _, value in pairs if type(value) is kind]

    if work == "records":
        return {
            "count": len(found),
            "ids": total("id"),
            "text": text,
            "scores": int(total("score") * 64),
            "tags": lists("tags"),
            "active": total("active"),
            "created": total("created"),
            "values": len(pairs),
            "bytes": len(data),
        }
    if work == "orders":
        return {
            "count": lists("items"),
            "orders": total("order"),
            "text": text,
            "quantity": total("quantity"),
            "prices": int(total("price") * 64),
            "options": lists("options"),
        }
    if work == "wide":
        return {
            "value": dict(pairs)["field_0988"],
            "ints": sum(of_type(int)),
            "doubles": int(sum(of_type(float)) * 64),
            "text": text,
            "bytes": sum(map(len, of_type(bytes))),
        }
    return {"count": len(found), "values": len(pairs), "text": text}


def lines(data):
    """Returns the expected answer for a text, with lengths in UTF-16 units."""
    units, mix = 0, 0
    found = data.decode().split("\n")[:-1]
    for line in found:
        encoded = line.encode("utf-16-le")
        units += len(encoded) // 2
        mix = (mix * 31 + len(encoded) // 2) % 2**32 ^ int.from_bytes(encoded[:2], "little")
    hashed = int(hashlib.sha256(data).hexdigest()[:12], 16)
    expected = {"count": len(found), "units": units, "mix": mix, "sum": units, "bytes": len(data), "hash": hashed}
    return expected | {"(without line feeds)": len(data) - len(found)}


def table(file):
    """Returns the expected answer for CSV, with the sum of the second column and the number of lines."""
    count = fields = length = total = 0
    reader = csv.reader(file, strict=True)
    for record in reader:
        count += 1
        fields += len(record)
        length += sum(map(len, record))
        total += int(record[1])
    return {"count": count, "fields": fields, "length": length, "sum": total, "(lines)": reader.line_num}


def main(arguments):
    if arguments[0] == "table":
        # Without a translation of line ends, and with one character for each byte.
        with open(arguments[1], newline="", encoding="latin-1") as file:
            print(", ".join(f"{key} = {value:_}" for key, value in table(file).items()))
        return
    if arguments[0] not in ["print", "larger"]:
        work, path = arguments
        with open(path, "rb") as file:
            expected = lines(file.read()) if work == "lines" else answer(work, file.read())
            print(", ".join(f"{key} = {value:_}" for key, value in expected.items()))
        return
    if arguments == ["larger"]:
        next(sys.stdin)
        for line in sys.stdin:
            print(max(int(word) for word in line.split()))
        return
    _, kind, count = arguments
    numbers = range(int(count)) if kind == "counter" else random_numbers()
    for _, number in zip(range(int(count)), numbers):
        sys.stdout.write(f"Hello, {number}\t")


main(sys.argv[1:])
