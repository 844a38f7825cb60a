"""Two servers of one database behind a proxy: whichever serves is killed, and nothing is lost."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

import httpx
import numpy as np
import pytest
from tests.federated.server.postgres import cluster
from tests.federated.server.processes import Parent, Server
from tests.federated.server.test_kill import PEOPLE, Scene, campaign, fits, people
from tests.ports import free_port

from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@contextmanager
def proxy(port: int, behind: list[int]) -> Iterator[None]:
    """Passes each connection on to the first of those behind that takes it, and waits a while for one that does."""

    async def copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # a server was killed, or the test is over
            while some := await source.read(1 << 16):
                target.write(some)
                await target.drain()
        target.close()

    async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while True:
            for each in behind:
                with suppress(OSError):
                    return await asyncio.open_connection("127.0.0.1", each)
            await asyncio.sleep(0.01)

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # the test is over
            there = await connected()
            await asyncio.gather(copied(reader, there[1]), copied(there[0], writer))

    async def serve() -> None:
        async with await asyncio.start_server(passed, "127.0.0.1", port):
            ready.set()
            await asyncio.to_thread(over.wait)

    ready, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass
class Pair(Server):
    """Both servers as one: `port` is the proxy's. Whichever is killed stands by as soon as it is started again."""

    both: list[Server] = field(default_factory=list)

    def serving(self) -> Server:
        until = time.monotonic() + 600
        while time.monotonic() < until:
            for each in self.both:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", each.port)) == 0:
                        return each
            time.sleep(0.005)
        raise AssertionError(f"nobody serves: {[each.log.read_text()[-2_000:] for each in self.both]}")

    def start(self) -> None:
        for each in self.both:
            if each.child is None or each.child.ended is not None:
                each.start()

    def kill(self) -> None:
        self.serving().kill()


@dataclass
class TwoServers(Scene):
    """As `Scene`, with two servers behind a proxy."""

    more: dict = field(default_factory=dict)

    def __enter__(self) -> "TwoServers":
        super().__enter__()
        both = [Server(self.parent, self.server.folder, free_port(), more={"standby": True} | self.more) for _ in "ab"]
        pair = Pair(self.parent, self.server.folder, self.server.port, both=both)
        self.server = pair
        for devices in self.crowds.values():
            devices.server = pair
        self.proxy = proxy(pair.port, [each.port for each in both])
        self.proxy.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.__exit__(None, None, None)
        for process in (*self.crowds.values(), *self.server.both):
            if process.child:
                process.child.kill()


def test_whoever_serves_is_killed_and_campaigns_end_as_if_nothing_had_been(tmp_path):
    chance, ends, kills = Random(13), [], 0
    with Parent() as parent, TwoServers(parent, tmp_path) as scene:
        scene.rise()
        begun = time.monotonic()
        scene.order(campaign("unkilled"))
        ends.append(scene.end(campaign("unkilled")))
        alone = time.monotonic() - begun
        while kills < 8 or len(ends) < 5:  # a machine that has less to do by now ends campaigns before they are hit
            scene.order(ordered := campaign(f"killed{len(ends)}"))
            for _ in range(4):
                if scene.how_far(ordered.name, chance.uniform(0, alone / 2)) == "done":
                    break
                scene.server.kill()
                scene.server.start()
                kills += 1
            ends.append(scene.end(ordered))
    for each in ends:
        each.is_right()
        each.is_as_if_nothing_had_been()
    assert fits(np.concatenate([each.ranks(*people(), np.random.default_rng(1)) for each in ends]))


def test_one_that_loses_postgresql_ends_and_the_other_goes_on(tmp_path):
    import psycopg

    with cluster() as url, Parent() as parent, TwoServers(parent, tmp_path, more={"database": url}) as scene:
        scene.rise()
        first = scene.server.serving()
        scene.order(campaign("town"))
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert first.child.wait() == 1
        assert "nothing more is acknowledged" in first.log.read_text()
        assert scene.server.serving() is not first
        until = time.monotonic() + 600
        while scene.how_far("town", 10) != "done":
            assert time.monotonic() < until
    made = Release.open(scene.server.folder / "releases" / "town.parquet")
    total = made.total(1 - 1e-9)
    assert total.low <= PEOPLE <= total.high
    assert len(Ledger(scene.server.folder / "ledger.sqlite").history("town town")) == 1
    with pytest.raises(httpx.TransportError):
        httpx.get(scene.server.url)
