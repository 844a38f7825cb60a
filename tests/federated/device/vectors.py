"""Vectors of what a device works out from a task: degrees, moduli, terms, and what its rows add.

`python -m tests.federated.device.vectors` writes `tests/vectors/device/tasks.json`; a test compares it with what the
code says.
"""

import hashlib
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.cells import NOWHERE, Leaves
from hazemap.codec import dumps
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.graph_degree import degree_and_threshold, together, weakness
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.checked_contribution import bounded
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Symmetric
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside
from hazemap.temporal.time_slots import Clock
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

FILE = Path(__file__).parents[2] / "vectors" / "device" / "tasks.json"
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)
SIZES = (2, 3, 10, 20, 51, 100, 333, 1_000, 3_000, 10_000)
PARTS = ("0", "1/20", "1/10", "1/5")
SCALES = ("1/2000", "7/2", "20", "1000/3", "1000000")


def degrees() -> list[dict[str, Any]]:
    """Sessions of many sizes, under some assumptions; without a degree where there is none."""
    found = []
    for clients, corrupt, dropout, mode in itertools.product(SIZES, PARTS, PARTS, Mode):
        case = {"clients": clients, "corrupt": corrupt, "dropout": dropout, "mode": mode.value}
        try:
            degree, threshold = degree_and_threshold(clients, Fraction(corrupt), Fraction(dropout), mode)
        except InputError:
            found.append(case | {"degree": None})
            continue
        group = together(clients, degree, threshold, Fraction(corrupt), Fraction(dropout))
        weak = [
            weakness(clients, degree, t, Fraction(corrupt), Fraction(dropout), mode) is not None
            for t in (threshold - 1, threshold)
        ]
        found.append(case | {"degree": degree, "threshold": threshold, "together": group, "weak": weak})
    return found


def moduli() -> list[dict[str, Any]]:
    """How many binary digits sums have."""
    cases = itertools.product(SCALES, (1, 23, 900), (1, 3), (1, 4_096))
    return [
        {
            "scale": scale,
            "parties": parties,
            "people": 2 * parties,
            "most": most,
            "size": size,
            "bits": DistributedNoise(Fraction(scale), parties).bits(2 * parties, most, size),
        }
        for scale, parties, most, size in cases
    ]


def _bytes(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def tasks() -> list[dict[str, Any]]:
    """Tasks, the terms that follow from them, and what the rows of a person add."""
    rng = np.random.default_rng(5)
    lon, lat = rng.uniform(13.15, 13.65, 40).round(6), rng.uniform(52.45, 52.65, 40).round(6)
    nested = np.append(TREE.grid(2).ravel(), TREE.grid(3)[:3, :5].ravel())
    mixed = np.append(nested[rng.permutation(len(nested))], NOWHERE).astype(np.uint64)
    rules = (
        *(AtMostRows(most, outside) for most in (1, 7) for outside in Outside),
        *(AtMostCells(most, outside) for most in (1, 9) for outside in Outside),
    )
    found = []
    for number, rule in enumerate(rules):
        mode = Mode.MALICIOUS if number % 3 else Mode.SEMI_HONEST
        clients = 60 + 97 * number
        cohort = Cohort(clients, clients, Fraction(1, 5), Fraction(1, 20), Sampling.ONE, mode)
        cells = Leaves(TREE, mixed if number % 2 else TREE.grid(4).ravel())
        budget = PureDP(Fraction(3, 7))
        share = Fraction(1, 1 + number)
        query = Query(Counts(cells, rule), share)
        task = Task(f"homes é {number}", "a map", 1, query, budget.part(share), budget, cohort)
        graph = _bytes("graph") if mode is Mode.SEMI_HONEST else bytes(32)
        terms = parameters_for(task, _bytes("roster"), clients, graph, _bytes("nonce"))
        some = slice(0, None) if number % 4 else slice(0, number)
        columns = {"lon": lon[some], "lat": lat[some]}
        sampling = _bytes(f"sampling {number}")
        key = hashlib.sha256(sampling + task.campaign.encode()).digest()
        sums = bounded(query.encoder, MemoryTable(np.zeros(len(columns["lon"]), dtype=np.int64), columns, key))
        at = np.flatnonzero(sums)
        found.append(
            {
                "task": dumps(task),
                "terms": terms.to_bytes().hex(),
                "rows": [{"lon": x, "lat": y} for x, y in zip(*(c.tolist() for c in columns.values()), strict=True)],
                "sampling": sampling.hex(),
                "contribution": [[int(i), int(sums[i])] for i in at],
            }
        )
    return found


def others() -> list[dict[str, str]]:
    """Tasks that are sound, and that a device may not know the answer of: each with what it is about."""
    quarters = TimedTree(TREE, Clock("Europe/Berlin", (0, 6 * 3600, 12 * 3600, 18 * 3600)))
    leaves = Leaves(TREE, TREE.grid(2).ravel())
    cohort, one = Cohort(1_000, 1_000), AtMostRows(1)
    asked = {
        "each slot": Counts(EachSlot(quarters, leaves), one),
        "all slots": Counts(AllSlots(quarters, leaves), one),
        "a vote": Counts(leaves, OneVote(60)),
        "a sketch": CountMinSketch(TREE, 3, 64, 3, one, 7),
        "a stack": Concatenation((Counts(leaves, one), Counts(leaves, one)), (1, 1)),
    }
    made = {
        about: Task("others", "a map", 1, Query(encoder, Fraction(1)), PureDP(1), PureDP(1), cohort)
        for about, encoder in asked.items()
    }
    query, law = Query(Counts(leaves, one), Fraction(1)), Symmetric(Fraction(1))
    made["zCDP"] = Task("others", "a map", 1, query, ZCDP(1), ZCDP(1), cohort, law)
    return [{"about": about, "task": dumps(task)} for about, task in made.items()]


def text() -> str:
    """The file."""
    parts = {"degrees": degrees(), "moduli": moduli(), "tasks": tasks(), "others": others()}
    lists = {name: ",\n".join(f"  {json.dumps(case)}" for case in cases) for name, cases in parts.items()}
    return "{\n" + ",\n".join(f' "{name}": [\n{lines}\n ]' for name, lines in lists.items()) + "\n}\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
