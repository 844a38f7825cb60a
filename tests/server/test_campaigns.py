"""Whole campaigns among made-up devices, in one process: HTTP, the protocol, the store and the ledger are real."""

import asyncio
from fractions import Fraction

import numpy as np

from hazemap.algorithms import Flat
from hazemap.domains import Box, Quadtree
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.server.campaigns import Campaign, Deadlines
from hazemap.trust.cohorts import Cohort

from .fleet import AS_OPERATOR, Town, crowd

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BERLIN, 5)
PATIENT = Deadlines.all(60)


def campaign(people=12, **changes):
    options = {
        "name": "berlin",
        "purpose": "a map of a town that does not exist",
        "dataset": "town",
        "algorithm": Flat(TREE, 2),
        "budget": PureDP(1_000),
        "cohort": Cohort(people, people, dropout=Fraction(1, 4), corrupt=Fraction(0)),
        "deadlines": PATIENT,
        "wait": 5,
    }
    return Campaign(**{**options, **changes})


def truth(devices, level=2):
    cells = TREE.cell_at({"lon": np.array([d.lon for d in devices]), "lat": np.array([d.lat for d in devices])}, level)
    return dict(zip(*(each.tolist() for each in np.unique(cells, return_counts=True)), strict=True))


def counts(release):
    numbers = np.rint(release.map.unbiased).astype(int)
    return {
        cell: number for cell, number in zip(release.map.cells.cells.tolist(), numbers.tolist(), strict=True) if number
    }


def test_a_campaign_of_one_shard_counts_everybody_once(tmp_path):
    async def play():
        async with Town(tmp_path, crowd(12)) as town:
            assert (await town.begin(campaign())).status_code == 201
            status = await town.live("berlin")
            file = await town.http.get("/v1/campaigns/berlin/release", headers=AS_OPERATOR)
            return town, status, file.content

    town, status, content = asyncio.run(play())
    assert status["state"] == "done", status
    (tmp_path / "copy.parquet").write_bytes(content)
    release = Release.open(tmp_path / "copy.parquet")
    assert counts(release) == truth(town.devices)
    [record] = town.ledger.history("town")
    assert record.released
    assert record.charge.price == PureDP(1_000)
    assert [device.contributed for device in town.devices] == [[("berlin", 1)]] * 12
