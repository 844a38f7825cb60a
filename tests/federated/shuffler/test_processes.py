"""The shuffler as a process, by the command that an operator uses; killed again and again."""

import asyncio
import os
import signal
import time
from collections import Counter
from math import inf
from unittest.mock import Mock

import httpx
import pytest
from tests.federated.server.postgres import cluster
from tests.federated.server.processes import Parent
from tests.federated.shuffler.batches import ISSUER, SECRET
from tests.ports import free_port

from hazemap.errors import Unreachable
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.submission import issued, submitted
from hazemap.federated.service.served_address import ServedAddress
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.shuffler.analyser_client import AnalyserClient
from hazemap.federated.shuffler.shuffler_process import ShufflerProcess


class Process:
    """A shuffler that can be killed and started again."""

    def __init__(self, parent, folder, *options):
        self.parent, self.folder, self.options, self.port = parent, folder, options, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        words = ("--data", str(self.folder), "--port", str(self.port), "--least", "5", *self.options)
        self.log = self.folder.with_name("shuffler.log")
        self.running = self.parent.fork(self.log, "hazemap", "shuffler", *words)
        until = time.monotonic() + 600
        while True:
            try:
                self.key = bytes.fromhex(httpx.get(f"{self.url}/v1/shuffler").json()["key"])
                return
            except httpx.HTTPError:
                assert time.monotonic() < until, self.log.read_text()
                time.sleep(0.02)

    def kill(self, how=signal.SIGKILL):
        self.running.kill(how)


@pytest.fixture
def process(tmp_path):
    made = []
    with Parent() as parent:

        def make(*options):
            made.append(Process(parent, tmp_path / "shuffler", *options))
            return made[-1]

        yield make
        for each in made:
            each.kill()


def a_batch(process, people):
    """Terms of a batch, and what each person sends."""
    terms = BatchTerms(
        1, os.urandom(16), ISSUER.public, bytes(32), bytes(32), 20, 200, people, people, int(time.time()) + 600
    )
    requests, every = [], Counter()
    for person in range(people):
        own = [b"%d:%d".ljust(200, b".") % (person, number) for number in range(20)]
        own = [each.ljust(200, b".")[:200] for each in own]
        every.update(own)
        credential = issued(ISSUER, SECRET, terms.digest, b"%d" % person)
        requests.append(submitted(terms, process.key, credential, own, os.urandom(32)))
    return terms, requests, every


async def sent(process, terms, request, acknowledged):
    """As a device sends: the same bytes until they are taken."""
    async with httpx.AsyncClient(base_url=process.url, timeout=300) as http:
        while True:
            try:
                reply = await http.post(f"/v1/batches/{terms.digest.hex()}/messages", content=request)
                if reply.status_code == 204:
                    acknowledged.append(request)
                    return
                assert reply.status_code >= 500, reply.text
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.05)


async def campaign(process, kills):
    """A batch of forty people whose shuffler is killed now and then; every order that the analyser was handed."""
    terms, requests, every = a_batch(process, 40)
    http = httpx.AsyncClient(base_url=process.url, timeout=300)
    client = AnalyserClient(http, (process.folder / "analyser.token").read_text().strip())
    orders, acknowledged = [], []
    killed = asyncio.create_task(_killing(process, kills))
    await _until(client.announce, terms)
    await asyncio.gather(*(sent(process, terms, each, acknowledged) for each in requests))
    for _ in range(3):
        orders.append(await _until(client.collected, terms))
        if not killed.done():
            await asyncio.sleep(0.05)
    await killed
    orders.append(await _until(client.collected, terms))
    await _until(client.forget, terms.digest)
    await http.aclose()
    assert len(acknowledged) == 40
    return orders, every


async def _until(work, *arguments):
    while True:
        try:
            return await work(*arguments)
        except Unreachable:
            await asyncio.sleep(0.02)


async def _killing(process, kills):
    for wait in kills:
        await asyncio.sleep(wait)
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.start)


@pytest.mark.parametrize(
    ("host", "proxy", "trusted", "guesses"),
    [
        ("0.0.0.0", False, False, 30),
        ("0.0.0.0", True, False, inf),
        ("0.0.0.0", True, True, 30),
        ("127.0.0.1", True, True, 30),
        ("::1", False, False, inf),
    ],
)
def test_strangers_guess_slowly_but_neither_a_proxy_nor_this_machine_is_kept_waiting(
    tmp_path, monkeypatch, host, proxy, trusted, guesses
):
    """Guesses were never limited; and behind a proxy one who guesses would have kept everybody waiting."""
    seen = []
    monkeypatch.setattr(ServedAddress, "serve", lambda *arguments: seen.append(arguments[2]))
    monkeypatch.setattr(
        "hazemap.federated.shuffler.shuffler_process.ShufflerRoutes",
        lambda *arguments, **_: seen.append(arguments[2]) or Mock(),
    )
    own = [tmp_path / name for name in ("own.pem", "own.key")] if not proxy and host == "0.0.0.0" else [None, None]
    for file in filter(None, own):
        file.touch()
    ShufflerProcess(StateFolder(tmp_path), ServedAddress(host, 8473, *own, proxy, ("10.0.0.1",) * trusted)).run()
    assert [each.guesses for each in seen] == [guesses, guesses]


def test_settings_that_would_send_messages_unprotected_are_refused(tmp_path):
    from hazemap.cli.main import main

    assert main(["shuffler", "--data", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert main(["shuffler", "--data", str(tmp_path), "--certificate", "only.pem"]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_shuffler_that_is_killed_again_and_again_hands_on_one_order_and_loses_nobody(process):
    shuffler = process()
    for kills in ((0.0, 0.1), (0.15,)):
        orders, every = asyncio.run(campaign(shuffler, kills))
        assert all(order == orders[0] for order in orders), "two orders left"
        assert Counter(orders[0]) == every
    shuffler.kill(signal.SIGTERM)
    left = b"".join(path.read_bytes() for path in shuffler.folder.iterdir())
    assert b"39:19......" not in left and b"..........." not in left, "forgotten on the disk"


@pytest.mark.slow
def test_the_same_on_postgresql(process):
    with cluster() as url:
        shuffler = process("--database", url)
        orders, every = asyncio.run(campaign(shuffler, (0.05,)))
        assert all(order == orders[0] for order in orders) and Counter(orders[0]) == every
        shuffler.kill()
