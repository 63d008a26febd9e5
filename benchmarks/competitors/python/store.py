"""Objects of a store in Python with obstore, s3fs or smart_open, at their defaults.

Usage: store.py LIBRARY cat KEY          writes the object s3://bucket/KEY to standard output
       store.py LIBRARY put KEY          writes standard input into the object
       store.py LIBRARY cat-all PREFIX N writes the objects PREFIX0000, PREFIX0001, … to standard output

The environment names the store: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION.
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

BLOCK = 1 << 20


class Obstore:
    def __init__(self):
        import obstore
        from obstore.store import S3Store

        self.obstore = obstore
        endpoint = os.environ["AWS_ENDPOINT_URL"]
        self.store = S3Store("bucket", endpoint=endpoint, client_options={"allow_http": True})

    def cat(self, key, out):
        for chunk in self.obstore.get(self.store, key).stream():
            out.write(chunk)

    def put(self, key, source):
        with self.obstore.open_writer(self.store, key) as out:
            while block := source.read(BLOCK):
                out.write(block)

    def read(self, key):
        return self.obstore.get(self.store, key).bytes()


class S3fs:
    def __init__(self):
        import s3fs

        self.files = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])

    def cat(self, key, out):
        with self.files.open(f"bucket/{key}", "rb") as source:
            shutil.copyfileobj(source, out, BLOCK)

    def put(self, key, source):
        with self.files.open(f"bucket/{key}", "wb") as out:
            shutil.copyfileobj(source, out, BLOCK)

    def read(self, key):
        return self.files.cat_file(f"bucket/{key}")


class SmartOpen:
    def __init__(self):
        import smart_open

        self.open = smart_open.open

    def cat(self, key, out):
        with self.open(f"s3://bucket/{key}", "rb", compression="disable") as source:
            shutil.copyfileobj(source, out, BLOCK)

    def put(self, key, source):
        with self.open(f"s3://bucket/{key}", "wb", compression="disable") as out:
            shutil.copyfileobj(source, out, BLOCK)

    def read(self, key):
        with self.open(f"s3://bucket/{key}", "rb", compression="disable") as source:
            return source.read()


def main():
    library, work, key = sys.argv[1:4]
    library = {"obstore": Obstore, "s3fs": S3fs, "smart_open": SmartOpen}[library]()
    if work == "cat":
        library.cat(key, sys.stdout.buffer)
    elif work == "put":
        library.put(key, sys.stdin.buffer)
    else:
        # Eight at a time, in order, which is what a program would do by hand.
        keys = [f"{key}{number:04}" for number in range(int(sys.argv[4]))]
        with ThreadPoolExecutor(8) as pool:
            for content in pool.map(library.read, keys):
                sys.stdout.buffer.write(content)


if __name__ == "__main__":
    main()
