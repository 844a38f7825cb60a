"""A connection to PostgreSQL whose packets are dropped without a word: it ends on both sides, and the lock with it."""

import ctypes
import socket
import struct
import threading
from contextlib import suppress
from math import inf

import pytest
from tests.federated.server.postgres import cluster
from tests.ports import free_port

from hazemap.errors import StoreError
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service import databases
from hazemap.federated.service.databases import Postgres
from hazemap.federated.service.store import Write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SO_ATTACH_FILTER = 26
TAKE_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0), 8)
"""A filter of Linux: return 0, so that every packet is dropped before it is acknowledged."""


class Network:
    """Passes bytes on between `port` and another port, until all packets are lost."""

    def __init__(self, to: int) -> None:
        self._to, self._ends = to, []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, there = self._door.accept()[0], socket.create_connection(("127.0.0.1", self._to))
                self._ends += [here, there]
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(1 << 16):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)

    def lose_all(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        program = struct.pack("HL", 1, ctypes.addressof(TAKE_NOTHING))
        for end in self._ends:
            end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)

    def close(self) -> None:
        for each in (self._door, *self._ends):
            each.close()


def test_a_server_that_is_cut_off_is_replaced_and_can_acknowledge_nothing_more(monkeypatch):
    monkeypatch.setattr(databases, "SILENCE", 2)
    port = free_port()
    with cluster(port) as url:
        network, found = Network(port), []
        first = CampaignStore(f"postgresql://hazemap@127.0.0.1:{network.port}/postgres")
        waiting = threading.Thread(target=lambda: found.append(CampaignStore(Postgres(url, patience=inf))), daemon=True)
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
        network.lose_all()
        with pytest.raises(StoreError, match="nothing more is acknowledged"):
            first.write_now(Write("INSERT INTO facts VALUES (?, ?)", ("lost", "x")))
        with pytest.raises(StoreError, match="cannot be read"):
            first.read("SELECT value FROM facts")
        waiting.join(600)
        assert found, "PostgreSQL keeps the lock of a server that is cut off"
        assert found[0].read("SELECT count(*) FROM facts WHERE name = ?", "lost") == [(0,)]
        found[0].close()
        first.close()
        network.close()


def test_the_url_says_how_long_a_silence_may_be_and_postgresql_is_told():
    port = free_port()
    with cluster(port):
        store = CampaignStore(f"postgresql://hazemap@127.0.0.1:{port}/postgres?tcp_user_timeout=77000")
        owner = store._writer
        found = dict(owner.execute("SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_%'").fetchall())
        assert found["tcp_user_timeout"] == "77000"
        assert found["tcp_keepalives_idle"] == owner.info.get_parameters()["keepalives_idle"] == "5"
        store.close()
