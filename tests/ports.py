"""Ports for the servers of tests, which are started, killed and started again at the same one."""

import os
import re
import socket
from collections.abc import Iterator

FIRST, EACH, WORKERS = 16_384, 1_024, 16
"""Of so many workers each has so many ports of its own. The system gives none of them to anybody who asks for any
port, nor to a connection (these are from 32,768 on): so none is taken between two lives of its server."""


def _ports() -> Iterator[int]:
    found = re.search(r"\d+$", os.environ.get("PYTEST_XDIST_WORKER", ""))
    first = FIRST + EACH * (int(found[0]) % WORKERS if found else WORKERS - 1)
    number = os.getpid()  # other runs on this machine begin elsewhere
    while True:
        number += 1
        yield first + number % EACH


_PORTS = _ports()


def free_port() -> int:
    """A port at which nobody listens, and which no other test is given for a long while."""
    for port in _PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("there is always another port")
