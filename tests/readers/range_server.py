"""An HTTPS server with a certificate made for it, that serves ranges of bytes, honestly or not."""

import datetime
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class Reply:
    """What is about to be sent."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Served:
    """Files by their path, what is done to a reply (by the number of the request, from 0 on), and what was asked."""

    port: int
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    fault: Callable[[int, Reply], Reply | None] = lambda _number, reply: reply
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"https://localhost:{self.port}/{name}"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "certificate.pem", folder / "key.pem"


@contextmanager
def served(folder: Path) -> Iterator[tuple[Served, Path]]:
    """A server on this machine, until the end; and the certificate by which it is known."""
    public, secret = certificate(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            number = len(state.asked)
            state.asked.append((self.path, dict(self.headers)))
            reply = state.fault(number, self._honest())
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def _honest(self) -> Reply:
            if self.path not in state.files:
                return Reply(404, {}, b"secret words of a server")
            data, etag = state.files[self.path]
            if self.headers.get("If-Match", etag) != etag:
                return Reply(412, {}, b"")
            first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
            if first >= len(data):
                return Reply(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
            body = data[first : last + 1]
            return Reply(
                206, {"ETag": etag, "Content-Range": f"bytes {first}-{first + len(body) - 1}/{len(data)}"}, body
            )

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, secret)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    state = Served(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state, public
    finally:
        server.shutdown()
        server.server_close()
