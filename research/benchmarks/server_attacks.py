"""What it costs to keep honest requests from being answered: attacks on each of our servers, over loopback.

Each server is started as its operator starts it, with its usual limits but room for fewer connections. Three attacks go
on for some seconds each from four addresses, without any credential, while an honest client at a fifth sends a request
on a new connection again and again. What counts is the part of these that is answered, how long that takes, and the
bytes and connections that the attacker has used. `capacity` is what a server answers of the same requests without an
attack, from one client: the honest load of a minute. `python -m research.benchmarks.server_attacks`.
"""

import json
import os
import platform
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import hazemap

RESULTS: Final = Path(__file__).parent / "results" / "server_attacks.json"
SECONDS: Final = 8.0
CONNECTIONS: Final = 200
ADDRESSES: Final = 4
BEGIN: Final = (sys.executable, "-c", "from hazemap.cli.main import run; run()")


@dataclass(frozen=True)
class Server:
    """How a server is started, what an honest client asks it, and where a stranger may send a body."""

    name: str
    command: tuple[str, ...]
    asked: str
    body: str
    method: str = "POST"


SERVERS: Final = (
    Server("coordinator", ("server", "run", "--data", "{}"), "/v1/status", "/v1/enrol"),
    Server("coordinator, TLS", ("server", "run", "--data", "{}", "--certificate", "{}.pem", "--key", "{}.key"),
           "/v1/status", "/v1/enrol"),
    Server("leader", ("aggregator", "--role", "leader", "--data", "{}", "--take-tasks-at", "http://127.0.0.1/"),
           "/hpke_config", "/hazemap/tasks"),
    Server("helper", ("aggregator", "--role", "helper", "--data", "{}", "--take-tasks-at", "http://127.0.0.1/"),
           "/hpke_config", "/hazemap/tasks"),
    Server("shuffler", ("shuffler", "--data", "{}"), "/v1/shuffler", f"/v1/batches/{'0' * 64}/messages"),
    Server("studio", ("studio", "{}", "--no-browser"), "/", "/v1/session"),
)  # fmt: skip


class Line:
    """Connects to a server from an address, with TLS where it speaks it."""

    def __init__(self, port: int, certificate: Path | None) -> None:
        self.port = port
        self.context = None if certificate is None else ssl.create_default_context(cafile=certificate)

    def plain(self, address: str) -> socket.socket:
        """A connection, and nothing more."""
        return socket.create_connection(("127.0.0.1", self.port), 5, (address, 0))

    def open(self, address: str) -> socket.socket:
        """A connection on which a request may be sent."""
        line = self.plain(address)
        return line if self.context is None else self.context.wrap_socket(line, server_hostname="localhost")

    def request(self, path: str, method: str = "GET", more: str = "") -> bytes:
        """A request's head."""
        return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{more}\r\n".encode()

    def answered(self, path: str) -> float | None:
        """Seconds until an honest request is answered, or nothing where it is not."""
        begun = time.monotonic()
        try:
            with self.open("127.0.2.1") as line:
                line.settimeout(5)
                line.sendall(self.request(path, more="Connection: close\r\n"))
                good = line.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return None
        return time.monotonic() - begun if good else None


class Attack:
    """What an attacker holds open and sends, counted. `held` connections are opened again where they were closed."""

    def __init__(self, line: Line, content: bytes, shake: bool) -> None:
        self.line, self.content, self.shake = line, content, shake
        self.bytes = self.connections = 0
        self.lines: list[socket.socket | None] = [None] * (CONNECTIONS + 50)

    def turn(self) -> None:
        """Open again what is closed."""
        for at, held in enumerate(self.lines):
            if held is not None and not _closed(held):
                continue
            address = f"127.0.1.{at % ADDRESSES + 1}"
            with suppress(OSError):
                new = self.line.open(address) if self.shake else self.line.plain(address)
                new.sendall(self.content)
                new.setblocking(False)
                self.lines[at] = new
                self.bytes, self.connections = self.bytes + len(self.content), self.connections + 1

    def end(self) -> None:
        """Close all."""
        for each in self.lines:
            if each is not None:
                each.close()


class Flood:
    """Requests as fast as one connection after another takes them, which an honest client sends as well."""

    def __init__(self, line: Line, path: str) -> None:
        self.line, self.content = line, line.request(path)
        self.bytes = self.connections = self.answers = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._send, args=(at,), daemon=True) for at in range(ADDRESSES)]
        for each in self.threads:
            each.start()

    def _send(self, at: int) -> None:
        while not self.over.is_set():
            with suppress(OSError), self.line.open(f"127.0.1.{at + 1}") as line:
                line.settimeout(2)
                self.connections += 1
                while not self.over.is_set():
                    line.sendall(self.content)
                    self.bytes += len(self.content)
                    if not _whole(line):
                        break
                    self.answers += 1

    def turn(self) -> None:
        """It goes on by itself."""

    def end(self) -> None:
        """No more."""
        self.over.set()
        for each in self.threads:
            each.join()


def _whole(line: socket.socket) -> bool:
    """Whether an answer came, to its end."""
    found = b""
    while some := line.recv(1 << 20):
        found += some
        head, ended, rest = found.partition(b"\r\n\r\n")
        if ended and len(rest) >= int(head.lower().partition(b"content-length:")[2].split()[0]):
            return True
    return False


def _closed(line: socket.socket) -> bool:
    try:
        return line.recv(4_096) is not None
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def certified(place: Path) -> None:
    """A certificate of localhost and its key, in PEM."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    now, names = datetime.now(UTC), x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    signed = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    place.with_suffix(".pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    place.with_suffix(".key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))


@contextmanager
def begun(server: Server, folder: Path) -> Iterator[Line]:
    """A server that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = folder / server.name.partition(",")[0]
    place.mkdir(exist_ok=True)
    certified(place)
    limits = ("--port", str(port), "--connections", str(CONNECTIONS), "--per-address", str(CONNECTIONS // 2))
    command = [*BEGIN, *(each.replace("{}", str(place)) for each in server.command), *limits]
    environment = os.environ | {"HAZEMAP_HOME": str(folder)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        line = Line(port, place.with_suffix(".pem") if "--certificate" in server.command else None)
        until = time.monotonic() + 60
        while line.answered(server.asked) is None:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{server.name} does not answer")
            time.sleep(0.1)
        yield line
    finally:
        process.kill()
        process.wait()


def measured(server: Server, line: Line, attack: Any) -> dict[str, Any]:
    """One attack on a server."""
    times, tried, start = list[float](), 0, time.monotonic()
    while (now := time.monotonic()) < start + SECONDS:
        attack.turn()
        took = line.answered(server.asked)
        times, tried = [*times, *([] if took is None else [took])], tried + 1
        time.sleep(0.02)
    attack.end()
    minute = 60 / (now - start)
    return {
        "attacker's bytes a minute": round(attack.bytes * minute),
        "attacker's connections a minute": round(attack.connections * minute),
        "attacker's addresses": ADDRESSES,
        "attacker's credentials": 0,
        "honest answered": len(times),
        "honest tried": tried,
        "ms of an honest answer, of nine in ten": round(1_000 * quantiles(times, n=10)[-1]) if len(times) > 1 else None,
    }


def attacks(server: Server, line: Line) -> Iterator[tuple[str, Any]]:
    """Each attack, by what it does."""
    announced = line.request(server.body, server.method, "Content-Type: application/json\r\nContent-Length: 60000\r\n")
    if line.context is not None:
        yield "handshakes of TLS that never end", Attack(line, b"\x16\x03\x01\x02\x00\x01", shake=False)
    yield "heads that never end", Attack(line, announced[:40], shake=True)
    yield "bodies that never end", Attack(line, announced + bytes(30_000), shake=True)
    yield "honest requests, as fast as they are answered", Flood(line, server.asked)


def main() -> None:
    """Write what each attack on each server cost."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for server in SERVERS:
            with begun(server, Path(folder)) as line:
                alone = Flood(line, server.asked)
                time.sleep(3)
                alone.end()
                load = {"requests": round(alone.answers * 20), "bytes": round(alone.bytes * 20)}
                rows = [{"attack": name, **measured(server, line, attack)} for name, attack in attacks(server, line)]
                found.append({"server": server.name, "capacity a minute": load, "attacks": rows})
                sys.stdout.write(json.dumps(found[-1], indent=2) + "\n")
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    words = {"version": hazemap.__version__, "machine": platform.machine(), "processors": os.cpu_count()}
    place.write_text(json.dumps({**words, "connections": CONNECTIONS, "seconds": SECONDS, "servers": found}, indent=2))


if __name__ == "__main__":
    main()
