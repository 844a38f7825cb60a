"""The campaigns that run while `polling` asks, and what they leave behind on the disks of servers and devices."""

import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import httpx

from hazemap.algorithms import Adaptive
from hazemap.codec import dumps
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.privacy_account import DeviceCharge, PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

BOX = Box(13.2, 52.4, 13.6, 52.6)
_SHARDS = (
    "SELECT session, round, number, attempt, state, people, terms FROM shards WHERE campaign = %s "
    "ORDER BY round, number, attempt"
)

Account = dict[tuple[str, int], list[DeviceCharge]]


def campaign(name: str, people: int, epsilon: Fraction) -> Campaign:
    """Two rounds among so many."""
    share = Fraction(1, 4)
    method = Adaptive(Quadtree.around(BOX, 6), first_cells=64, deciding=(share,), fullness=(4,), coarser=())
    cohort = Cohort(people, min(people, 250), dropout=Fraction(1, 5), sampling=Sampling.ONE)
    budget, deadlines = PureDP(epsilon), Deadlines.all(120, 10)
    return Campaign(name, "a benchmark", f"town {name}", method, budget, cohort, deadlines, 120)


def ordered(line: httpx.Client, asked: Campaign, wait: Callable[[Callable[[], bool]], None]) -> dict:
    """A campaign from its order to its end, and its status then."""
    where = f"/v1/campaigns/{asked.name}"
    begun = _answer(line, "POST", "/v1/campaigns", dumps(asked).encode())
    assert begun.status_code in (201, 409), (
        begun.text
    )  # 409: it was ordered by a server that was killed before it said so
    wait(lambda: _answer(line, "GET", where).json()["state"] != "running")
    status = _answer(line, "GET", where).json()
    names = ("cells", "people", "attempts", "dropped", "refusals", "shards", "bytes")
    rounds = [{name: each.get(name) for name in names} for each in status["rounds"]]
    return {"name": asked.name, "state": status["state"], "reason": status["reason"], "rounds": rounds}


def _answer(line: httpx.Client, method: str, path: str, content: bytes = b"") -> httpx.Response:
    """What the server says, as soon as it says something."""
    while True:
        with suppress(httpx.TransportError):
            answer = line.request(method, path, content=content)
            if answer.status_code < 500:
                return answer
        time.sleep(0.2)


def accounts(stores: list[Path]) -> Account:
    """What every device says that it has paid."""
    found = {}
    for path in stores:
        with EncryptedStore.opened(path) as store:
            for device in enrolment.devices(store):
                found[path.name, device] = PrivacyAccount(store, device).charges()
    return found


def judged(asked: Campaign, database: str, folder: Path, paid: Account) -> dict[str, str]:
    """What is wrong with what a campaign left behind: nothing, unless something was lost or paid twice.

    `right`: one charge in the ledger, each shard opened once, nobody counted without a charge or charged twice for an
    answer, and the release's map follows from its transcript. `undisturbed`: besides, everybody who was asked is in
    every round, and has paid for each once. `total`: the people are in the release, as far as its noise shows them.
    """
    import psycopg
    from tests.federated.server.left_behind import LeftBehind, Shard

    with psycopg.connect(database) as db:
        rows = db.execute(_SHARDS, (asked.name,)).fetchall()
    shards = [Shard(bytes(row[0]).hex(), *row[1:6], SessionParameters.from_bytes(bytes(row[6]))) for row in rows]
    release = Release.open(folder / "server" / "releases" / f"{asked.name}.parquet")
    own = {who: [each for each in charges if each.campaign == asked.name] for who, charges in paid.items()}
    charges = {who: each for who, each in own.items() if each}
    records = Ledger(folder / "ledger.sqlite").history(asked.dataset)
    left = LeftBehind(asked, release, records, shards, charges)

    def total() -> None:
        found = release.total(1 - 1e-9)
        assert found.low <= asked.cohort.people <= found.high, f"{found.low:.0f} to {found.high:.0f} people"

    checks = {"right": left.is_right, "undisturbed": left.is_as_if_nothing_had_been, "total": total}
    return {name: _said(check) for name, check in checks.items()}


def _said(check: Callable[[], None]) -> str:
    try:
        check()
    except AssertionError as error:
        return str(error)
    return "yes"
