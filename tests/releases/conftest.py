"""Releases of made-up people: flat, nested, of hexagons, with rows in no cell."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import Flat
from hazemap.cellmap import CellMap
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts
from hazemap.estimate import from_transcript
from hazemap.privacy.budget import PureDP
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.queries.algorithm_session import Exchange
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
STATEMENT = Statement(
    dataset="berlin",
    unit=A_PERSON,
    neighbours="one person added or removed",
    budget=PureDP(1),
    bounding=AtMostRows(1),
    trust="curator",
    assumptions=("the curator sees the table & keeps it <secret>",),
    noise="discrete Laplace",
    public=("box",),
    charged=("counts",),
    method="flat",
    created="2026-01-02",
    version="0.1.0",
)
STDDEV, KURTOSIS = 1.4, 3.0


def released(leaves: Leaves, seed: int = 1) -> Release:
    """Laplace-like integer noise on Poisson counts; the best guess is clamped, so that it can be told apart."""
    rng = np.random.default_rng(seed)
    sums = rng.poisson(20, leaves.size) + np.rint(rng.laplace(0, 1, leaves.size)).astype(np.int64)
    query = Query(Counts(leaves, AtMostRows(1)), Fraction(1))
    transcript = (Exchange(query, Answer(sums, np.array([STDDEV]), KURTOSIS)),)
    found = from_transcript(transcript, leaves)
    cellmap = CellMap(leaves, found.unbiased * 0.99 + 0.123, found.unbiased, found.stddev, found.noise)
    return Release(cellmap, STATEMENT, Flat(leaves.tree, 4), transcript)


def flat(level: int = 4, depth: int = 8) -> Leaves:
    return Leaves.at_level(Quadtree.around(BERLIN, depth), level)


def nested(depth: int = 8) -> Leaves:
    """A partly split cell, parts of another world, and an orphan two levels below the cell around it."""
    tree = Quadtree.world(depth)
    ones = tree.children(tree.root)
    twos = tree.children(ones[:1])
    filled = tree.children(twos[1:2])[:3]
    orphan = tree.children(tree.children(twos[3:4])[2:3])[1:2]
    return Leaves(tree, np.concatenate([filled, ones[:3], twos[:2], orphan]))


def hexagons() -> Leaves:
    tree = Hexagons(BERLIN, 5, 8)
    fine = tree.children(tree.root[2:4])
    return Leaves(tree, np.concatenate([tree.root[:2], fine, tree.root[4:7], tree.children(tree.root[5:6])[:3]]))


def with_nowhere() -> Leaves:
    cells = flat(2).cells
    return Leaves(flat().tree, np.insert(cells, 3, NOWHERE))


KINDS: dict[str, Callable[[], Leaves]] = {
    "flat": flat,
    "nested": nested,
    "hexagons": hexagons,
    "nowhere": with_nowhere,
}


@pytest.fixture(params=KINDS)
def any_release(request: pytest.FixtureRequest) -> Release:
    return released(KINDS[request.param]())


@pytest.fixture
def release() -> Release:
    return released(flat())


@pytest.fixture
def nested_release() -> Release:
    return released(nested())


@pytest.fixture
def hexagon_release() -> Release:
    return released(hexagons())


@pytest.fixture
def nowhere_release() -> Release:
    return released(with_nowhere())


@pytest.fixture
def make() -> Callable[..., Release]:
    return released
