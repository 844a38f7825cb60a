"""Vectors of reports to two servers: from an announcement and a person's rows to the task and the report's bytes.

`python -m tests.federated.device.report_vectors` writes `tests/vectors/device/reports.json`; a test compares it with
what the code says, and the device in TypeScript has to make the same bytes.
"""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tests.issuing import signed_keys

from hazemap.cells import NOWHERE, Leaves
from hazemap.codec import digest, dumps
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.federated.device.reports.report_routes import one_hot
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, issued, report_key
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.federated.trust.checked_contribution import bounded
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import round_tasks
from hazemap.privacy.budget import PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Outside
from hazemap.vdaf.hpke import Aead, HpkeKeyPair, Kdf, Kem

FILE = Path(__file__).parents[2] / "vectors" / "device" / "reports.json"
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)
BEGUN = 1_777_000_000
PRICES = (Fraction(1, 20), Fraction(10**20 + 39, 10**21), Fraction(3))
"""The second has a scale whose digits do not fit the task: it is rounded up."""


def _bytes(name: str, length: int = 32) -> bytes:
    return b"".join(hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(-(-length // 32)))[:length]


def _keys(number: int) -> tuple[HpkeConfigList, ...]:
    """What both servers offer: a key that nobody here has the algorithm of, and one that everybody has."""
    found = []
    for who in ("leader", "helper"):
        public = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, _bytes(f"{who} {number}")).public
        usable = HpkeConfig(
            7 + number, Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, list(Aead)[(number + len(found)) % 3], public
        )
        found.append(HpkeConfigList((HpkeConfig(200, 0x9999, 1, 1, b"post"), usable)))
    return tuple(found)


def reports() -> list[dict[str, Any]]:
    """Rounds of several cells, rules, prices and ciphers, each with the report of a person."""
    rng = np.random.default_rng(6)
    rules = (AtMostRows(1), AtMostRows(1, Outside.COUNT), AtMostCells(1))
    leaves = (TREE.grid(1).ravel(), np.append(TREE.grid(2).ravel(), NOWHERE).astype(np.uint64), TREE.grid(3).ravel())
    found = []
    for number, (rule, cells, price) in enumerate(zip(rules, leaves, PRICES, strict=True)):
        people = 120 + number
        cohort = Cohort(people, people, Fraction(1, 10), Fraction(1, 10), Sampling.ONE)
        query = Query(Counts(Leaves(TREE, cells), rule), Fraction(1))
        task = Task(f"homes é {number}", "a map", 1, query, PureDP(price), PureDP(price), cohort)
        carrier = ByTwoServers("https://one.example/", "https://two.example:8443/dap/", 100)
        carried = CarriedTask(task, carrier, _bytes(f"batch {number}").hex(), BEGUN)
        rows = 3 * number
        lon, lat = rng.uniform(13.15, 13.65, rows).round(6), rng.uniform(52.35, 52.65, rows).round(6)
        issuer, identity = (Identity.from_bytes(_bytes(f"{who} {number}")) for who in ("issuer", "identity"))
        sampling, [asked], configs = _bytes(f"sampling {number}"), round_tasks(carried, issuer.public), _keys(number)
        own = report_key(identity.to_bytes(), asked.id)
        given = issued(issuer, _bytes(f"secret {number}"), asked.id, identity.public, own.public)
        held = HeldCredential.received(given, own, issuer.public, asked.id)
        key = hashlib.sha256(sampling + task.campaign.encode()).digest()
        table = MemoryTable(np.zeros(rows, dtype=np.int64), {"lon": lon, "lat": lat}, key)
        [bits] = one_hot(bounded(query.encoder, table), (len(cells),))
        client = DapClient(asked, vdaf_of(asked), *(each.preferred() for each in configs))
        random = _bytes(f"random {number}", client.randomness_bytes)
        seconds = BEGUN + 86_400 * number
        found.append(
            {
                "announcement": dumps(carried),
                "digest": digest(carried),
                "rows": [{"lon": x, "lat": y} for x, y in zip(lon.tolist(), lat.tolist(), strict=True)],
                "sampling": sampling.hex(),
                "identity": identity.to_bytes().hex(),
                "issuer": issuer.public.hex(),
                "key": own.public.hex(),
                "asked": signed_keys(identity, issuer.public, bytes.fromhex(carried.batch), own.public).hex(),
                "credential": given.hex(),
                "task": asked.id.hex(),
                "configuration": asked.configuration.hex(),
                "keys": [each.to_bytes().hex() for each in configs],
                "seconds": seconds,
                "random": random.hex(),
                "bits": "".join(str(int(bit)) for bit in bits),
                "report": client.report(bits, seconds, random, credential=held).to_bytes().hex(),
            }
        )
    return found


def text() -> str:
    """The file."""
    return json.dumps({"reports": reports()}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
