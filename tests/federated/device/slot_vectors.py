"""Vectors of slots: in which slot a moment lies, and what rows add to counts of places in slots.

`python -m tests.federated.device.slot_vectors` writes `tests/vectors/device/slots.json`; a test compares it with what
the code says.
"""

import hashlib
import json
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.codec import dumps
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.federated.trust.checked_contribution import bounded
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Outside
from hazemap.temporal.time_slots import Clock, Slots, Spans, Weekdays
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

FILE = Path(__file__).parents[2] / "vectors" / "device" / "slots.json"
HOUR, DAY = 3_600, 86_400
SQUARES = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)
HEXAGONS = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 9)
BEGIN = 1_767_225_600  # 2026 in UTC

SLOTS: tuple[Slots, ...] = (
    Clock.hours("Europe/Berlin"),
    Clock("America/New_York", (7 * HOUR, 10 * HOUR + 1, 19 * HOUR)),
    Weekdays("Asia/Kathmandu"),
    Spans("UTC", tuple(range(BEGIN, BEGIN + 4 * DAY, DAY))),
    Clock.hours("Australia/Lord_Howe"),  # half an hour is added in summer
)
CHANGES = (1_445_734_800, 1_774_746_000, 1_793_494_800, 1_772_953_200, 1_775_314_800)
"""Moments at which clocks of some of these places are put forward, or back."""


def moments() -> list[dict[str, Any]]:
    """Moments about every change, before 1970, and without a time: the slot of each."""
    beside = (-HOUR - 1, -HOUR, -1, -0.5, 0, 1, HOUR - 1, HOUR, DAY)
    times = [change + step for change in CHANGES for step in beside] + [BEGIN - 1, BEGIN, BEGIN + 3 * DAY - 0.5]
    times += [BEGIN + 3 * DAY, 0.0, -1.0, -86_401.5, 1e9 + 0.25]
    found = []
    for slots in SLOTS:
        where = slots.at(np.array([*times, np.nan], dtype=np.float64))
        found.append({"slots": json.loads(dumps(slots)), "times": [*times, None], "found": where.tolist()})
    return found


def tasks() -> list[dict[str, Any]]:
    """Tasks about places in slots, and what the rows of a person add."""
    rng = np.random.default_rng(9)
    lon, lat = rng.uniform(13.15, 13.65, 40).round(6), rng.uniform(52.35, 52.65, 40).round(6)
    time = rng.integers(BEGIN, BEGIN + 4 * DAY, 40).astype(np.float64)
    time[::7] = np.nan
    rules = (
        *(AtMostRows(most, outside) for most in (1, 7) for outside in Outside),
        *(AtMostCells(most, outside) for most in (1, 9) for outside in Outside),
    )
    found = []
    for number, rule in enumerate(rules):
        tree = HEXAGONS if number % 2 else SQUARES
        timed = TimedTree(tree, SLOTS[number % 4])
        some = tree.children(tree.children(tree.root))
        everywhere = WholeDomain(tree) if number % 3 == 2 else Leaves(tree, some)
        if number % 4 < 2:
            cells: AllSlots | EachSlot = EachSlot(timed, everywhere)
        else:
            nowhere = Leaves(tree, np.append(some, NOWHERE))
            cells = AllSlots(timed, everywhere if number % 3 == 2 else nowhere)
        budget = PureDP(Fraction(1, 2))
        query = Query(Counts(cells, rule), Fraction(1))
        task = Task(f"hours {number}", "a map", 1, query, budget, budget, Cohort(1_000, 1_000))
        terms = parameters_for(task, bytes(32), 1_000, bytes(32), bytes(32))
        sampling = hashlib.sha256(f"sampling {number}".encode()).digest()
        key = hashlib.sha256(sampling + task.campaign.encode()).digest()
        columns = {"lon": lon, "lat": lat, "time": time}
        sums = bounded(query.encoder, MemoryTable(np.zeros(len(lon), dtype=np.int64), columns, key))
        rows = zip(lon.tolist(), lat.tolist(), time.tolist(), strict=True)
        found.append(
            {
                "task": dumps(task),
                "terms": terms.to_bytes().hex(),
                "rows": [{"lon": x, "lat": y, "time": None if isnan(t) else t} for x, y, t in rows],
                "sampling": sampling.hex(),
                "contribution": [[int(i), int(sums[i])] for i in np.flatnonzero(sums)],
            }
        )
    return found


def text() -> str:
    """The file."""
    parts = {"moments": moments(), "tasks": tasks()}
    lists = {name: ",\n".join(f"  {json.dumps(case)}" for case in cases) for name, cases in parts.items()}
    return "{\n" + ",\n".join(f' "{name}": [\n{lines}\n ]' for name, lines in lists.items()) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
