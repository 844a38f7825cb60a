"""What it costs to keep honest requests from being answered: attacks on one server of ours, over loopback.

Each attack goes on for some seconds against the connections of a server with its usual limits, but with room for fewer
of them, while one honest client at another address sends a request of 64 KB after another, each on a new connection.
What counts is the part of these that is answered, and the bytes and connections that the attacker has used. Run it on
two versions to compare them: `python -m research.benchmarks.server_attacks`.
"""

import json
import os
import platform
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import hazemap

RESULTS: Final = Path(__file__).parent / "results" / "server_attacks.json"
SECONDS: Final = 20.0
CONNECTIONS: Final = 500
HEAD: Final = b"POST /v1/x HTTP/1.1\r\nHost: maps\r\nContent-Length: %d\r\n\r\n"
SERVER: Final = """
import sys, uvicorn
from hazemap.server.metrics import Metrics
from hazemap.service.http_limits import HttpLimits, limited

async def application(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})

limits = HttpLimits(connections=int(sys.argv[2]))
uvicorn.run(application, port=int(sys.argv[1]), log_config=None, lifespan="off", http=limited(limits, Metrics()),
            loop="hazemap.service.http_limits:HandshakeLoop")
"""


class Attack:
    """Keeps connections open from several addresses, each with a head of this length and so much of its body."""

    def __init__(self, port: int, announced: int, sent: int, again: float) -> None:
        self.port, self.announced, self.sent, self.again = port, announced, sent, again
        self.bytes = self.connections = 0
        self.lines: list[socket.socket | None] = [None] * CONNECTIONS
        self.begun = [0.0] * CONNECTIONS

    def turn(self) -> None:
        """Open again what is closed, at most each `again` seconds."""
        now = time.monotonic()
        for at, line in enumerate(self.lines):
            if now - self.begun[at] < self.again:
                continue
            if line is not None and not _closed(line):
                continue
            self.begun[at] = now
            with suppress(OSError):
                new = socket.create_connection(("127.0.0.1", self.port), 5, (f"127.0.1.{at % 4 + 1}", 0))
                content = HEAD % self.announced + bytes(self.sent)
                new.sendall(content)
                new.setblocking(False)
                self.lines[at] = new
                self.bytes, self.connections = self.bytes + len(content), self.connections + 1


def _closed(line: socket.socket) -> bool:
    try:
        return line.recv(4_096) is not None
    except BlockingIOError:
        return False
    except OSError:
        return True


def _honest(port: int) -> bool:
    """Whether a request of 64 KB is answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5, ("127.0.2.1", 0)) as line:
            line.settimeout(5)
            line.sendall(HEAD % 65_536 + bytes(65_536))
            return line.recv(100).startswith(b"HTTP/1.1 204")
    except OSError:
        return False


def measured(announced: int, sent: int, again: float) -> dict[str, Any]:
    """One attack."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port), str(CONNECTIONS)])
    try:
        while not _honest(port):
            time.sleep(0.05)
        attack, answered, tried = Attack(port, announced, sent, again), 0, 0
        attack.turn()
        begun = time.monotonic()
        while time.monotonic() < begun + SECONDS:
            attack.turn()
            answered, tried = answered + _honest(port), tried + 1
            time.sleep(0.02)
        return {
            "announced": announced,
            "sent of each": sent,
            "attacker's bytes a minute": round(attack.bytes * 60 / SECONDS),
            "attacker's connections a minute": round(attack.connections * 60 / SECONDS),
            "honest answered": answered,
            "honest tried": tried,
        }
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Write what each attack cost."""
    found = [
        {"attack": "announces 64 MB and sends 100 bytes", **measured(64 << 20, 100, 0.5)},
        {"attack": "announces 64 MB, sends a byte, and comes again at once", **measured(64 << 20, 1, 0.0)},
        {"attack": "announces 8 MB and sends 60 KB", **measured(8 << 20, 60_000, 0.5)},
    ]
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    words = {"version": hazemap.__version__, "machine": platform.machine(), "processors": os.cpu_count()}
    place.write_text(json.dumps({**words, "connections": CONNECTIONS, "seconds": SECONDS, "attacks": found}, indent=2))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
