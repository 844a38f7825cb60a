"""Leader, helper, coordinator and devices as processes, each of which can be killed and started again."""

import time
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.federated.server.fleet import crowd
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.federated.aggregator.task_file import TOKEN_FILE
from hazemap.federated.service.access_tokens import token_file

RULES = """[budget]
campaign = 100000
period = 100000
[cohort]
people = 15
survivors = 10
[question]
finest = 0
[servers]
aggregators = ["{leader}", "{helper}"]
"""


class Aggregator:
    """One of the two servers, which takes tasks."""

    def __init__(self, parent: Parent, folder: Path, role: str, pages: tuple[str, ...] = ()) -> None:
        self.parent, self.folder, self.role, self.port, self.child = parent, folder / role, role, free_port(), None
        self.url, self.pages = f"http://127.0.0.1:{self.port}/", pages
        self.folder.mkdir()
        self.token = token_file(self.folder / TOKEN_FILE)

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.role}.log")

    def start(self) -> None:
        options = ("--role", self.role, "--data", str(self.folder), "--port", str(self.port))
        more = ("--take-tasks-at", self.url, *(word for page in self.pages for word in ("--page-origin", page)))
        self.child = self.parent.fork(self.log, "hazemap", "aggregator", *options, *more)

    def kill(self) -> None:
        assert self.child.kill() == -9, self.log.read_text()[-5_000:]

    def wait(self) -> None:
        until = time.monotonic() + 600
        while True:
            try:
                httpx.get(f"{self.url}hpke_config", trust_env=False).raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < until, self.log.read_text()[-5_000:]
                time.sleep(0.05)


class Scene:
    """Everybody: `parties` are all processes, by name. Pages of these origins may be devices."""

    def __init__(self, parent: Parent, folder: Path, people: int, pages: tuple[str, ...] = ()) -> None:
        self.people, self.folder = people, folder
        self.leader, self.helper = (Aggregator(parent, folder, role, pages) for role in ("leader", "helper"))
        peers, policy, table = folder / "peers.toml", folder / "policy.toml", folder / "people.parquet"
        each = (self.leader, self.helper)
        peers.write_text("".join(f'[[server]]\nurl = "{one.url}"\ntoken = "{one.token}"\n' for one in each))
        policy.write_text(RULES.format(leader=self.leader.url, helper=self.helper.url))
        self.devices = crowd(people)
        lon, lat = (np.array([getattr(device, name) for device in self.devices]) for name in ("lon", "lat"))
        pq.write_table(pa.table({"person": np.arange(people), "lon": lon, "lat": lat}), table)
        self.server = Server(parent, folder / "server", free_port(), peers, pages)
        self.crowd = Crowd(parent, folder, "devices", self.server, people, table, policy)
        self.parties = {"leader": self.leader, "helper": self.helper, "server": self.server, "devices": self.crowd}

    def __enter__(self) -> "Scene":
        for party in self.parties.values():
            party.start()
            if party is self.helper:
                self.leader.wait(), self.helper.wait()
            if party is self.server:
                assert self.server.answered("/v1/campaigns").status_code == 200
        until = time.monotonic() + 600
        while self.server.answered("/v1/campaigns").json()["devices"]["recent"] < self.people:
            assert time.monotonic() < until, "the devices do not come"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        for party in reversed(self.parties.values()):
            if party.child:
                party.child.kill()

    def again(self, name: str) -> None:
        """Kill a party at once, and start it again."""
        party = self.parties[name]
        party.kill()
        party.start()

    def status(self, campaign: str) -> dict:
        return self.server.answered(f"/v1/campaigns/{campaign}").json()

    def ended(self, campaign: str, seconds: float = 600) -> dict:
        until = time.monotonic() + seconds
        while (status := self.status(campaign))["state"] == "running":
            assert time.monotonic() < until, status
            time.sleep(0.1)
        return status
