"""BSON in Python: the `bson` package of pymongo with its C extension.

Usage: pymongo_bson.py WORK FILE [GETS] [--gc] [--once]
       pymongo_bson.py --version

The tasks and their answers are those of benchmarks/runners/src/bin/bson. The first pass is not timed; the median of the
others is reported. The cyclic garbage collector is disabled unless --gc is given. The time does not include dropping
the result.
"""

import datetime
import gc
import importlib.metadata
import math
import sys
import time

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

assert bson.has_c(), "this pymongo lacks its C extension"

EPOCH = datetime.datetime(1970, 1, 1)


def milliseconds(date):
    return (date - EPOCH) // datetime.timedelta(milliseconds=1)


def print_answer(answer, times):
    words = [f"{key}={value % 2**64}" for key, value in answer.items()]
    if times:
        words.append(f"ns={sorted(times)[len(times) // 2]}")
    print(*words)


def timed(work, once):
    times = []
    while not once and (len(times) < 3 or (len(times) < 15 and sum(times) < 400_000_000)):
        start = time.perf_counter_ns()
        result = work()
        times.append(time.perf_counter_ns() - start)
        del result
    return times


def records(documents):
    return {
        "count": len(documents),
        "ids": sum(document["id"] for document in documents),
        "text": sum(
            len(text.encode()) for document in documents for text in (document["name"], *document["tags"])
        ),
        "scores": int(64 * math.fsum(document["score"] for document in documents)),
        "tags": sum(len(document["tags"]) for document in documents),
        "active": sum(document["active"] for document in documents),
        "created": sum(milliseconds(document["created"]) for document in documents),
    }


def orders(documents):
    items = [item for document in documents for item in document["items"]]
    customers = [document["customer"] for document in documents]
    text = [customer["name"] for customer in customers]
    text += [text for customer in customers for text in customer["address"].values()]
    text += [text for item in items for text in (item["sku"], *item["options"])]
    return {
        "count": len(items),
        "orders": sum(document["order"] for document in documents),
        "quantity": sum(item["quantity"] for item in items),
        "prices": int(64 * math.fsum(item["price"] for item in items)),
        "options": sum(len(item["options"]) for item in items),
        "text": sum(len(text.encode()) for text in text),
    }


def untyped(documents):
    values = text = 0
    left = list(documents)
    while left:
        value = left.pop()
        inner = value.values() if isinstance(value, dict) else value
        for value in inner:
            values += 1
            if isinstance(value, str):
                text += len(value.encode())
            elif isinstance(value, (dict, list)):
                left.append(value)
    return {"count": len(documents), "values": values, "text": text}


def main(arguments):
    if arguments == ["--version"]:
        print("pymongo", importlib.metadata.version("pymongo"), "on Python", sys.version.split()[0])
        return
    flags = {word for word in arguments if word.startswith("--")}
    work, path, *gets = (word for word in arguments if word not in flags)
    once = "--once" in flags
    if "--gc" not in flags:
        gc.disable()
    if work == "weights":

        def load():
            with open(path, "rb") as file:
                return bson.decode(file.read())

        arrays = load()["weights"]
        floats = [memoryview(array["data"]).cast("f") for array in arrays]
        answer = {"count": len(arrays), "floats": sum(map(len, floats))}
        del arrays, floats
        print_answer(answer, timed(load, once))
        return

    with open(path, "rb") as file:
        data = file.read()
    if work == "wide":

        def get():
            for _ in range(int(gets[0])):
                value = bson.decode(data)["field_0988"]
            return value

        print_answer({"value": get()}, timed(get, once))
        return
    if work == "encode":
        # Dates have no time zone, as after decoding, and numbers keep their types.
        documents = bson.decode_all(data)

        def encode():
            return [bson.encode(document) for document in documents]

        assert b"".join(encode()) == data
        print_answer({"count": len(documents), "bytes": len(data)}, timed(encode, once))
        return
    # Dates of the irregular documents may be outside the range of `datetime`.
    options = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO)

    def decode():
        return bson.decode_all(data, options)

    look = {"records": records, "orders": orders, "untyped": untyped}[work]
    print_answer(look(decode()), timed(decode, once))


main(sys.argv[1:])
