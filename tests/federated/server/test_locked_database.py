"""A server whose database another program has locked, for longer than it waits, and which a supervisor starts again."""

import sqlite3

import pytest
from tests.federated.server.processes import Parent, Server
from tests.ports import free_port

IMPATIENT = """
from hazemap.federated.service import databases, store
databases.BUSY, store.AGAIN, store.PATIENCE = 0.05, 0.05, 0.3
"""
CODES = b'{"number": 1, "days": 1}'


@pytest.mark.slow
def test_a_server_ends_whose_database_stays_locked_and_goes_on_at_the_next_start(tmp_path):
    """It had answered 503 to every write, and 200 to who asked how it is, until somebody looked."""
    with Parent(IMPATIENT) as parent:
        server = Server(parent, tmp_path / "server", free_port())
        server.start()
        assert server.answered("/v1/codes", CODES).status_code == 201
        assert server.answered("/v1/status").status_code == 200
        other = sqlite3.connect(server.folder / "server.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert server.answered("/v1/codes", CODES, seconds=60).status_code == 503
        assert server.child.wait() == 1, server.log.read_text()
        assert "nothing more is acknowledged" in server.log.read_text()
        assert server.answered("/v1/status", seconds=1) is None
        other.close()
        server.start()
        assert server.answered("/v1/status").status_code == 200
        assert server.answered("/v1/codes", CODES).status_code == 201
        server.kill()
