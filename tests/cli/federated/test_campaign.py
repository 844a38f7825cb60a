"""`hazemap campaign`, against a real server and devices that are made up."""

import asyncio
import io
import threading
import time

import httpx
import numpy as np
import pytest
from tests.cli.serving import Process
from tests.federated.server.fleet import crowd

from hazemap.cells import Leaves
from hazemap.cli.federated.campaign_display import densities, drawn, typed, watched
from hazemap.codec import to_json
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
BOX = "--box=13.2,52.4,13.6,52.6"
ORDER = ("--name", "berlin", "--purpose", "a test", "--epsilon", "10", "--stage", "600", "--wait", "600")


class Devices(threading.Thread):
    """Made-up devices that ask again and again until they are told to stop."""

    def __init__(self, process, number):
        super().__init__(daemon=True)
        self.process, self.devices, self.enough = process, crowd(number), threading.Event()

    def run(self):
        async def live():
            async with httpx.AsyncClient(base_url=self.process.url, timeout=300) as http:
                for device in self.devices:
                    assert (await device.enrol(http, self.process.token)).status_code == 201
                while not self.enough.is_set():
                    for device in self.devices:
                        await device.step(http)

        asyncio.run(live())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.join(600)


def started(folder):
    process = Process(folder).start()
    yield process
    process.end()


@pytest.fixture
def process(tmp_path):
    yield from started(tmp_path)


@pytest.fixture(scope="module")
def deserted(tmp_path_factory):
    """A server where nobody enrols."""
    yield from started(tmp_path_factory.mktemp("deserted"))


@pytest.mark.slow
def test_a_campaign_is_begun_watched_fetched_and_listed(process, hazemap, tmp_path):
    with Devices(process, 12):
        people = ("--people", "12", "--dropout", "0.25", "--corrupt", "0")
        begun = hazemap("campaign", "start", *ORDER, *people, BOX, *process.operator)
        assert begun.code == 0, begun.err
        assert "12 people a round, in 1 shard\n" in begun.out
        assert "devices refuse a secure sum over fewer than 100 people" in " ".join(begun.err.split())
        watched = hazemap("campaign", "watch", "berlin", *process.operator)
        assert watched.code == 0, watched.err
        status = hazemap("campaign", "watch", "berlin", "--json", *process.operator).json
    assert "done" in watched.out
    assert "@" in watched.out
    assert (status["state"], status["rounds"][0]["people"]) == ("done", 12)
    assert len(status["rounds"]) == 5
    fetched = hazemap("campaign", "release", "berlin", "-o", "map.parquet", "--picture", "map.png", *process.operator)
    assert fetched.code == 0, fetched.err
    assert "by secure aggregation among devices" in fetched.out
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert hazemap("inspect", "map.parquet", "--replay").code == 0
    again = hazemap("campaign", "release", "berlin", "-o", "map.parquet", *process.operator)
    assert (again.code, "choose another name" in again.err) == (2, True)
    listed = hazemap("campaign", "list", *process.operator)
    assert "berlin" in listed.out
    assert "12 devices are enrolled" in listed.out


def test_a_campaign_is_stopped(deserted, hazemap):
    begun = hazemap("campaign", "start", *ORDER, "--people", "1000", BOX, *deserted.operator)
    assert begun.code == 0, begun.err
    assert "hazemap campaign watch berlin --token-file" in begun.out and "fewer than 100" not in begun.err
    for _ in range(1_000):  # the server's first round begins in a moment
        once = hazemap("campaign", "watch", "berlin", "--once", *deserted.operator)
        if "waiting for 1,000 more devices" in once.out:
            break
        time.sleep(0.2)
    assert "waiting for 1,000 more devices" in once.out
    assert hazemap("campaign", "stop", "berlin", *deserted.operator).code == 0
    watched = hazemap("campaign", "watch", "berlin", *deserted.operator)
    assert "stopped" in watched.out
    release = hazemap("campaign", "release", "berlin", "-o", "map.parquet", *deserted.operator)
    assert (release.code, "has no release" in release.err) == (2, True)
    for order, why in (("resume", "only one that failed"), ("release-partial", "no answered round")):
        refused = hazemap("campaign", order, "berlin", *deserted.operator)
        assert (refused.code, why in refused.err) == (2, True), refused.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--people", "10", "--sampling", "some"), "--sampling is one"),
        (("--people", "10", "--mode", "evil"), "--mode is semi-honest or malicious"),
        (("--people", "10", "--dropout", "1"), "fraction from 0"),
        (("--people", "10", "--bounding", "rows are people"), "a device is a person"),
        (("--people", "10", "--method", "magic"), "a method is one of"),
        (("--people", "10", "--spec", "table.toml"), "a campaign asks devices"),
        (("--people", "10", "--spec", "outside.toml"), "people outside the map are not counted"),
        (("--people", "10", "--spec", "flat.toml", "--method", "magic"), "a method is one of"),
        (("--people", "10", "--spec", "flat.toml"), "did not answer"),
    ],
)
def test_mistakes_are_said_before_anybody_is_asked(hazemap, tmp_path, wrong, words):
    (tmp_path / "table.toml").write_text('source = "visits.csv"\n')
    (tmp_path / "outside.toml").write_text('outside = "people"\n')
    (tmp_path / "flat.toml").write_text('method = "flat:3"\nbounding = "rows:3"\nepsilon = "1"\n')
    (tmp_path / "operator.token").write_text("a token of no server")
    where = ("--token-file", "operator.token", "--server", "http://127.0.0.1:9")
    done = hazemap("campaign", "start", *ORDER, BOX, *wrong, *where)
    assert (done.code, done.out) == (1 if words == "did not answer" else 2, "")
    assert words in " ".join(done.err.split())


def test_a_server_that_is_not_there_and_a_token_that_is_wrong_are_said(deserted, hazemap, tmp_path):
    (tmp_path / "wrong.token").write_text("not the operator's token")
    nobody = hazemap("campaign", "list", "--token-file", "wrong.token", "--server", "http://127.0.0.1:9")
    assert nobody.code == 1
    assert "did not answer" in nobody.err
    wrong = hazemap("campaign", "list", "--token-file", "wrong.token", "--server", deserted.url)
    assert wrong.code == 2
    assert "only the operator may" in wrong.err
    missing = hazemap("campaign", "list", "--token-file", "nowhere.token")
    assert (missing.code, "DIR/operator.token" in " ".join(missing.err.split())) == (2, True)


@pytest.mark.parametrize("tree", [Quadtree.around(BERLIN, 3), Hexagons(BERLIN, 5, 6)])
def test_the_small_map_shows_where_people_are(tree):
    leaves = Leaves.at_level(tree, 1)
    spot = tree.cell_at({"lon": np.array([13.25]), "lat": np.array([52.58])}, tree.depth)
    values = np.zeros(leaves.size)
    values[leaves.locate(spot)] = 100
    density = densities(leaves, values)
    assert density.shape[1] == 56
    assert density.shape[0] % 2 == 0
    full = np.argwhere(np.nan_to_num(density) > 0)
    assert len(full)
    assert full[:, 0].mean() < density.shape[0] / 2
    assert full[:, 1].mean() < density.shape[1] / 2
    assert drawn(density).plain.count("▀") == density.size // 2
    assert typed(density).plain.count("@") > len(full) / 4


def test_on_a_terminal_the_picture_is_drawn_anew_until_the_campaign_is_over(monkeypatch):
    tree = Quadtree.around(BERLIN, 2)
    leaves = Leaves.at_level(tree, 1)
    states = iter([("running", 3), ("running", 0), ("done", 0)])

    class Line:
        def get(self, path):
            if path.endswith("/map"):
                return {"cells": to_json(leaves), "values": [4.0, 3, 2, 1]}
            return status(*next(states))

    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    last = watched(Line(), "berlin", once=False, every=0.01, quiet=False)
    assert last["state"] == "done"
    assert "waiting for 3 more devices" in screen.getvalue()
    assert "round 2, shard 1: masked, 4/12" in screen.getvalue()
    assert "▀" in screen.getvalue()


def status(state, missing):
    """A campaign's status as a server tells it."""
    over = {"answered": True, "cells": 4, "share": 0.1, "price": "ε = 0.1", "stddev": 1.5, "people": 11}
    shards = {"survivors": 11, "shards": {"opened": 1, "lost": 1}, "dropped": {"keys": 1}, "refusals": {"no": 1}}
    return {
        "name": "berlin",
        "purpose": "a test",
        "method": "Adaptive",
        "budget": {"text": "ε = 1"},
        "spent": 0.1,
        "cohort": {"people": 12, "shards": 1, "sampling": "a fresh sample each round"},
        "devices": {"enrolled": 15, "recent": 14},
        "state": state,
        "reason": "",
        "ended": None,
        "missing": missing,
        "rounds": [{"round": 1, **over, **shards, "culprits": {}}],
        "running": [{"round": 2, "shard": 1, "stage": "masked", "waiting": 4, "clients": 12}],
    }
