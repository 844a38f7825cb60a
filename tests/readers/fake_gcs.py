"""As much of Google Cloud Storage's interface as reading needs: lists, metadata, and media by ranges.

It runs as a process of its own, `python -m tests.readers.fake_gcs FOLDER`: pyarrow waits for some answers with Python's
lock held.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


@contextmanager
def fake_gcs(folder: Path) -> Iterator[str]:
    """The address of a server on this machine that has the files below a folder as a bucket of its name."""
    command = [sys.executable, "-m", "tests.readers.fake_gcs", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(folder: Path) -> None:
    """Serve until the process ends; the first line that is printed is the address."""
    bucket = folder.name

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            objects = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
            asked = urlsplit(self.path)
            query = parse_qs(asked.query)
            path = unquote(asked.path)
            media = re.fullmatch(
                rf"(?:/download/storage/v1/b/{bucket}/o/|/storage/v1/b/{bucket}/o/|/{bucket}/)(.*)", path
            )
            if path == f"/storage/v1/b/{bucket}/o":
                start = query.get("prefix", [""])[0]
                found = [described(name, file) for name, file in sorted(objects.items()) if name.startswith(start)]
                self._send(200, json.dumps({"kind": "storage#objects", "items": found}).encode(), {})
            elif path == f"/storage/v1/b/{bucket}":
                self._send(200, json.dumps({"kind": "storage#bucket", "id": bucket, "name": bucket}).encode(), {})
            elif media is None or media[1] not in objects:
                self._send(404, b'{"error": {"code": 404, "message": "none"}}', {})
            elif path.startswith("/storage") and query.get("alt") != ["media"]:
                self._send(200, json.dumps(described(media[1], objects[media[1]])).encode(), {})
            else:
                self._media(objects[media[1]].read_bytes())

        def _media(self, data: bytes) -> None:
            named = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            first, last = (int(named[1]), int(named[2] or len(data) - 1)) if named else (0, len(data) - 1)
            body = data[first : last + 1]
            told = {"Content-Range": f"bytes {first}-{first + len(body) - 1}/{len(data)}"} if named else {}
            self._send(206 if named else 200, body, {**told, "x-goog-generation": "1"})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    def described(name: str, file: Path) -> dict[str, str]:
        size, moment = str(file.stat().st_size), "2026-01-02T03:04:05.678Z"
        about = {"kind": "storage#object", "bucket": bucket, "name": name, "size": size, "generation": "1"}
        return about | {"updated": moment, "timeCreated": moment, "metageneration": "1", "etag": "one"}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
