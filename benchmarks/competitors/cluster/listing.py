"""A store that does nothing but list 100,000 objects of 100 MB: 10 TB. It prints its port, and ends with its parent."""

import http.server
import os
import threading
import time
import urllib.parse

OBJECTS, SIZE, PAGE = 100_000, 100_000_000, 1000
ENTRY = "<Contents><Key>data/{0:06}.log</Key><ETag>&quot;{0:032x}&quot;</ETag><Size>{1}</Size></Contents>"


class Listing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        begin = int(query.get("continuation-token", 0))
        end = min(begin + PAGE, OBJECTS)
        body = "".join(ENTRY.format(number, SIZE) for number in range(begin, end))
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < OBJECTS else ""
        body = f"<ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}{body}</ListBucketResult>"
        # Only lists exist: no object is read, and there is no unfinished job.
        self.send_response(200 if "list-type" in query else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listing)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.2)
