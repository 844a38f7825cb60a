"""Whatever is asked of whichever table: a file and its charge, or a refusal and a ledger that nobody touched.

`tests/laws/test_every_budget.py` tries the methods; here an order goes all the way, from the bytes of a table through
`hazemap.release` and `hazemap.stats` to a file and a ledger on the disk.
"""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.every_method import LEVELLED, WHOLE

import hazemap
from hazemap.errors import HazemapError
from hazemap.execution.crash_recovery import recoverable
from hazemap.execution.run import journal_folder
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release, Statistics

NAMES = [*WHOLE, *(f"{name}:5" for name in LEVELLED), "pyramid:30", "pyramid-published:30", "top:5"]
BOX = "13.2,52.4,13.6,52.6"
EPSILONS = (1e-9, 1e-4, 0.1, 1.0, 20.0, 250.0, 1e6)
HEADER = "user,lon,lat,speed\n"
VALUES = {"value": "speed", "low": 0, "high": 60, "cells": "h3:5"}
ASKED: list[dict[str, Any]] = [
    VALUES,
    {**VALUES, "variance": True},
    {**VALUES, "quantiles": (0.1, 0.5), "max_cells_per_person": 3},
    {**VALUES, "low": None, "high": None, "bounds": "private"},
    {**VALUES, "select": True},
    {**VALUES, "model": "values-only"},
    {**VALUES, "model": "values-only", "variance": True, "max_records_per_cell": 4},
]
"""Statistics of a value."""


def lines(people: int, rows: int, seed: int, spot: bool = False, equal: bool = False) -> str:
    """Rows of so many people each: in a town, or all in one place; with values, or with one."""
    chance = np.random.default_rng(seed)
    lon, lat = chance.normal(13.35, 0.03, people * rows), chance.normal(52.5, 0.02, people * rows)
    speed = chance.uniform(-5, 70, people * rows)
    if spot:
        lon[:], lat[:] = 13.4, 52.5
    if equal:
        speed[:] = 30
    all_of = zip(np.arange(people * rows) % max(people, 1), lon, lat, speed, strict=True)
    return HEADER + "".join(f"{who},{x:.5f},{y:.5f},{v:.1f}\n" for who, x, y, v in all_of)


TABLES = {
    "nobody": HEADER,
    "one person": lines(1, 1, 1),
    "one person, many rows": lines(1, 50, 2),
    "one place": lines(200, 2, 3, spot=True),
    "one value": lines(200, 2, 4, equal=True),
    "malformed": HEADER + 'x,"13.4\n7,north,52.5,3\n8,13.4\n,,,\n9,13.4,52.5,1,2,3\n"10"",13.4,52.5,9\n' * 20,
    "no coordinates": HEADER + "".join(f"{who},nan,inf,\n" for who in range(50)),
    "elsewhere": lines(50, 1, 5).replace(",13.", ",-70.").replace(",52.", ",-40."),
    "a town": lines(400, 2, 6),
}


def ordered(folder: Path, kind: str, table: str, budget: dict[str, str], **options: Any) -> str:
    """One order, its file and its ledger; fails unless there are both a file and its charge, or neither."""
    source, goal, ledger = folder / "visits.csv", folder / "made.parquet", Ledger(folder / "ledger.sqlite")
    source.write_text(TABLES[table])
    goal.unlink(missing_ok=True)
    before, refused = ledger.history(), ""
    options = {"person": "user"} | options | budget | {"dataset": table, "ledger": ledger, "output": goal}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (hazemap.release if kind == "map" else hazemap.stats)(source, **options)
    except HazemapError as error:
        refused = str(error)
    if refused:
        assert not goal.exists(), f"a file without a charge: {refused}"
        assert ledger.history() == before, f"paid for nothing: {refused}"
        assert not list(journal_folder(ledger).glob("*")), f"a journal of nothing: {refused}"
        return "refused"
    made = (Release if kind == "map" else Statistics).open(goal)
    paid = ledger.history()[len(before) :]
    price = made.statement.budget
    assert [(each.charge.price, each.released, each.file) for each in paid] == [(price, True, str(goal))]
    assert not recoverable(ledger) and not list(journal_folder(ledger).glob("*"))
    return "made"


def any_budget(chance: np.random.Generator, epsilon: float) -> dict[str, str]:
    kind = chance.integers(3)
    if kind == 1:
        return {"rho": f"{epsilon**2 / 2:.6g}"}
    return {"epsilon": f"{epsilon:.6g}"} | ({"delta": "1e-6"} if kind == 2 else {})


def any_map(chance: np.random.Generator, name: str) -> dict[str, Any]:
    where = {"box": BOX} if chance.random() < 0.6 else {}
    rule = str(chance.choice(["one row", "one vote", "rows:3", "cells:2", "rows are people"]))
    levelled = name.partition(":")[0] in {*LEVELLED, "top"}
    cells = "quadtree" if "box" not in where or not levelled else "quadtree:5"
    if chance.random() < 0.3:
        cells, name = "h3:5-8" if not levelled else "h3:7", name.removesuffix(":5")
    outside = str(chance.choice(["people", "drop", "count"]))
    person = None if rule == "rows are people" else "user"
    return where | {"method": name, "bounding": rule, "cells": cells, "outside": outside, "person": person}


def test_an_order_of_any_table_ends_in_a_file_and_its_charge_or_in_neither(tmp_path: Path) -> None:
    """Every degenerate table, at an unusual budget each: a map and statistics; the slow test has every method."""
    chance, came = np.random.default_rng(8), Counter[str]()
    for number, table in enumerate(TABLES):
        for kind in ("map", "values"):
            budget = any_budget(chance, EPSILONS[(number + (kind == "map")) % len(EPSILONS)])
            options = {"method": "flat:4", "box": BOX} if kind == "map" else VALUES | {"box": BOX}
            came[ordered(tmp_path, kind, table, budget, **options)] += 1
    assert came["made"] >= 6 and came["refused"] >= 2


@pytest.mark.parametrize("name", ["htf", "htf+"])
def test_a_method_that_follows_a_box_that_was_found_has_the_budget_it_needs(name: str, tmp_path: Path) -> None:
    """Whoever is in no cell pays for one question, with all that the box left: it was paid for, and refused."""
    assert ordered(tmp_path, "map", "one place", {"epsilon": "20"}, method=name) == "made"
    found = Release.open(tmp_path / "made.parquet")
    assert found.algorithm.found_in(found.transcript)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_an_order_of_any_map_ends_in_a_file_and_its_charge_or_in_neither(name: str, tmp_path: Path) -> None:
    chance, came = np.random.default_rng(len(name)), Counter[str]()
    for number, table in enumerate([*TABLES] * 2):
        epsilon = EPSILONS[number % len(EPSILONS)] if number % 2 else 10 ** chance.uniform(-9, 6)
        came[ordered(tmp_path, "map", table, any_budget(chance, epsilon), **any_map(chance, name))] += 1
    assert came["made"] >= 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("asked", range(len(ASKED)))
def test_an_order_of_any_statistics_ends_in_a_file_and_its_charge_or_in_neither(asked: int, tmp_path: Path) -> None:
    chance, came = np.random.default_rng(asked), Counter[str]()
    for number, table in enumerate([*TABLES] * 2):
        epsilon = EPSILONS[number % len(EPSILONS)] if number % 2 else 10 ** chance.uniform(-9, 6)
        coarse = {"cells": "h3:2"}  # where no box is found, these are cells of the whole world
        where = {} if ASKED[asked].get("model") else coarse if chance.random() < 0.4 else {"box": BOX}
        came[ordered(tmp_path, "values", table, any_budget(chance, epsilon), **ASKED[asked] | where)] += 1
    assert came["made"] >= 3
