"""A wire that is listened to: every byte that one client sends to a server, and what would betray a place in them."""

import base64
import re
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass


class Recorder:
    """A port of this machine behind which a server stands; all that goes up is kept."""

    def __init__(self, port: int) -> None:
        self._goal = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._connections: list[bytearray] = []
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def sent(self) -> list[bytes]:
        """What went up, for each connection."""
        return [bytes(each) for each in self._connections]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._goal))
                except OSError:
                    client.close()
                    continue
                self._sockets += [client, server]
                self._connections.append(kept := bytearray())
                for source, goal, record in ((client, server, kept), (server, client, None)):
                    threading.Thread(target=_pump, args=(source, goal, record), daemon=True).start()

    def close(self) -> None:
        for each in (self._listening, *self._sockets):
            with suppress(OSError):
                each.close()


def _pump(source: socket.socket, goal: socket.socket, record: bytearray | None) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            if record is not None:
                record += part
            goal.sendall(part)
    for each in (source, goal):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def recording(port: int, number: int):
    """So many recorders before one server."""
    recorders = [Recorder(port) for _ in range(number)]
    try:
        yield recorders
    finally:
        for each in recorders:
            each.close()


@dataclass(frozen=True)
class Request:
    """One request as it went over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def requests(stream: bytes) -> list[Request]:
    """The requests of one connection (HTTP/1.1); one that was cut off is left out."""
    found = []
    while (end := stream.find(b"\r\n\r\n")) >= 0:
        first, *lines = stream[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        if len(stream) < end + 4 + size:
            break
        method, path, _ = first.split(" ")
        found.append(Request(method, path, headers, stream[end + 4 : end + 4 + size]))
        stream = stream[end + 4 + size :]
    return found


def traces(places: list[tuple[float, float]], cells: list[int]) -> set[bytes]:
    """What would betray these places or their cells, in decimal digits, doubles, integers, hexadecimal and base64.

    Each has 7 bytes or more, so that random bytes do not hold it by chance: 2^−56 for each position and trace.
    """
    plain: set[bytes] = set()
    for lon, lat in places:
        for number in (lon, lat):
            digits = f"{number:.7f}"
            plain |= {digits[:8].encode(), str(round(number * 10**7)).encode()[:8]}
            plain |= {struct.pack(order + "d", number) for order in "<>"}
        plain |= {struct.pack(order + "ff", *pair) for order in "<>" for pair in ((lon, lat), (lat, lon))}
    for cell in cells:
        plain |= {struct.pack(order + "Q", cell) for order in "<>"} | {b'"%d"' % cell, b"[%d]" % cell}
    plain = {each for each in plain if len(each) >= 7}
    written = {each.hex().encode() for each in plain}
    for each in plain:
        for shift in range(3):
            text = base64.b64encode(bytes(shift) + each)
            written.add(re.sub(rb"=.*", b"", text)[(8 * shift + 5) // 6 : -1])
    return {each for each in plain | written if len(each) >= 7}


def betrayed(streams: list[bytes], wanted: set[bytes]) -> list[bytes]:
    """The traces that are in what was sent."""
    return [each for each in wanted if any(each in stream for stream in streams)]
