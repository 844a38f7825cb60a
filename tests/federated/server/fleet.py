"""Made-up devices that speak HTTP to a coordinator in the same process, one thought at a time."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from hazemap.codec import dumps, loads
from hazemap.encoders.encoder import total
from hazemap.engines.memory import MemoryTable
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import Challenge, origin
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission, Challenges, server_identity
from hazemap.federated.server.http_routes import Application
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.trust.device_tasks import KNOWN, Task, check
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity

TOKEN, OPERATOR = "enrolment token of the tests", "operator token of the tests"
AS_OPERATOR = {"Authorization": f"Bearer {OPERATOR}"}


class Anything:
    """Floors that let tests run sessions of a few people."""

    def check(self, terms: SessionParameters) -> None:
        pass


@dataclass
class FakeDevice:
    """One person with one row. `silent` names the stage (1 … 6) from which it says nothing more."""

    lon: float
    lat: float
    identity: Identity = field(default_factory=Identity.create)
    ticket: str = ""
    name: str = ""
    mark: float = 0.0
    silent: int = 99
    declines: str = ""
    deposit: str = ""
    broken: Callable[[int, bytes], bytes] | None = None
    clients: dict[str, SecureSumClient] = field(default_factory=dict)
    answered: list[tuple[str, int]] = field(default_factory=list)
    unmasked: set[tuple[str, int]] = field(default_factory=set)
    contributed: list[tuple[str, int]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.ticket}"}

    async def enrol(self, http: httpx.AsyncClient, token: str = TOKEN) -> httpx.Response:
        done = await http.post("/v1/enrol", json=await self.enrolment(http, token))
        if done.status_code == 201:
            self.ticket, self.name = done.json()["ticket"], done.json()["device"]
        return done

    async def enrolment(self, http: httpx.AsyncClient, token: str = TOKEN) -> dict:
        """The message that enrols it, after a challenge."""
        at, own = origin(str(http.base_url)), self.identity.public
        asked = await http.post("/v1/challenge", json={"version": 2, "identity": own.hex(), "origin": at})
        assert asked.status_code == 200, asked.text
        server, nonce, signature = (bytes.fromhex(asked.json()[name]) for name in ("server", "challenge", "signature"))
        given = Challenge(server, nonce, signature)
        assert given.genuine(at, own)
        return {
            "version": 2,
            "identity": own.hex(),
            "origin": at,
            "token": token,
            "challenge": nonce.hex(),
            "signature": given.answered(self.identity, at, token).hex(),
        }

    async def step(self, http: httpx.AsyncClient) -> bool:
        """Ask once, and answer; False where there was nothing to do."""
        found = await http.get("/v1/tasks", headers=self.headers)
        if found.status_code != 200:
            assert found.status_code == 204, found.text
            assert float(found.headers["retry-after"]) > 0
            return False
        work = found.json()
        session, stage = work["session"], work["stage"]
        if stage >= self.silent:
            return False
        if self.declines:
            done = await http.post(f"/v1/tasks/{session}/refusal", headers=self.headers, json={"reason": self.declines})
            self.statuses.append(done.status_code)
            return True
        if work["task"]:
            self.clients[session] = self._client(loads(work["task"], KNOWN))
        reply = self.clients[session].receive(base64.b64decode(work["message"]))
        if self.broken:
            reply = self.broken(stage, reply)
        done = await http.post(f"/v1/tasks/{session}{self.deposit}", headers=self.headers, content=reply)
        self.statuses.append(done.status_code)
        self.answered.append((session, stage))
        return True

    def _client(self, task: Task) -> SecureSumClient:
        row = {"lon": self.lon, "lat": self.lat, "mark": self.mark}
        table = MemoryTable(np.array([0]), {name: np.array([value]) for name, value in row.items()})

        def contribution(terms: SessionParameters) -> np.ndarray:
            check(task, terms)
            sums = total(task.question.encoder, table)
            return sums if task.randomiser is None else randomised(task.randomiser, sums, Stream.from_os())

        paid = lambda *_: self.contributed.append((task.campaign, task.round))  # noqa: E731
        return SecureSumClient(self.identity, Anything(), contribution, pay=paid)


@dataclass
class Town:
    """A coordinator with its folder and devices; `restart` throws away everything but the folder."""

    folder: Path
    devices: list[FakeDevice]
    pace: object = None
    database: str | None = None
    admission: Admission | None = None
    limits: HttpLimits | None = None
    pages: frozenset[str] = frozenset()
    hasty: bool = False
    """Whether time is over for a stage as soon as nobody has an answer to it but those who are silent."""

    async def __aenter__(self) -> "Town":
        self.folder.mkdir(exist_ok=True)
        self.ledger = Ledger(self.folder / "ledger.sqlite")
        await self._start()
        for device in self.devices:
            if not device.ticket:
                assert (await device.enrol(self.http)).status_code == 201
        return self

    async def _start(self) -> None:
        self.store = self.make_store()
        challenges = Challenges(server_identity("a town"), ("http://town",))
        admission = self.admission or Admission(TOKEN)
        self.coordinator = Coordinator(self.store, self.folder, self.ledger, admission, self.pace, challenges)
        application = Application(self.coordinator, OPERATOR, self.limits, self.pages)
        transport = httpx.ASGITransport(application)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://town")
        await self.coordinator.start()

    def make_store(self) -> CampaignStore:
        return CampaignStore(self.database or self.folder / "server.sqlite")

    async def kill(self) -> None:
        """As `kill -9` would: no last wish is granted. (The lock is freed, as the system does.)"""
        for running in self.coordinator._campaigns.values():
            running.task.cancel()
        await asyncio.gather(
            *(running.task for running in self.coordinator._campaigns.values()), return_exceptions=True
        )
        self.coordinator.pool.shutdown()
        await self.http.aclose()
        self.store._queue.put(None)
        self.store._thread.join()
        self.store.release()

    async def __aexit__(self, *_: object) -> None:
        await self.coordinator.stop()
        await self.http.aclose()
        self.store.close()

    async def restart(self) -> None:
        await self.__aexit__()
        await self._start()

    async def begin(self, campaign: Campaign) -> httpx.Response:
        return await self.http.post("/v1/campaigns", headers=AS_OPERATOR, content=dumps(campaign).encode())

    async def status(self, name: str) -> dict:
        return (await self.http.get(f"/v1/campaigns/{name}", headers=AS_OPERATOR)).json()

    async def asked_around(self, each: Callable[[], object] | None = None) -> bool:
        """Let every device ask once, and answer; False where nobody had an answer."""
        asked = {shard: shard.sum.stage for shard in self.coordinator.seating.running.values() if shard.waiting}
        busy = False
        for device in self.devices:
            busy |= await device.step(self.http)
            if each:
                each()
        for shard, stage in asked.items() if self.hasty and not busy else ():
            rings = "deadline" if shard._deadlines.quiet is None else "quiet"
            if shard.waiting and shard.sum.stage == stage and rings in shard._clocks:
                shard._end()
        return busy

    async def live(self, name: str, seconds: float = 600, each: Callable[[], object] | None = None) -> dict:
        """Let every device ask again and again until the campaign is over."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            busy = await self.asked_around(each)
            found = await self.status(name)
            if found["state"] != "running":
                return found
            await asyncio.sleep(0 if busy else 0.02)
        raise AssertionError(f"the campaign did not end: {await self.status(name)}")


def crowd(number: int, seed: int = 1) -> list[FakeDevice]:
    """People around two places of a Berlin-sized box."""
    rng = np.random.default_rng(seed)
    centre = np.where(rng.random(number) < 0.7, 0.3, 0.8)
    spots = np.clip(centre[:, None] + rng.normal(0, 0.05, (number, 2)), 0, 1 - 1e-9)
    return [FakeDevice(13.2 + 0.4 * x, 52.4 + 0.2 * y) for x, y in spots.tolist()]
