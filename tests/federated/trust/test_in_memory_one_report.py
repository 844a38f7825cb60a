"""One report and the whole tree by real shares: strings of cells, sums of counts, and both servers' noise."""

from fractions import Fraction

import numpy as np
import pytest
from tests.federated.trust.in_memory_one_report import InMemoryOneReport, LevelCounts, OneReportServer, asked_sums
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.algorithms import Adaptive
from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import NotOpened, Refused, Unanswerable
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.vdaf.poplar1 import Poplar1

SILENT = PureDP(10_000)  # noise of scale 1/10,000 is 0
TREES = {
    "squares": Quadtree.around(Box(2.2, 48.8, 2.5, 48.9), 6),
    "hexagons": Hexagons(Box(2.2, 48.8, 2.5, 48.9), 5, 8),
}
LEVEL = 1e-6


def town(people: int) -> MemoryTable:
    """People about a place, every ninth of them elsewhere."""
    rng = np.random.default_rng(6)
    lon, lat = 2.35 + rng.normal(0, 0.04, people), 48.85 + rng.normal(0, 0.02, people)
    lon[::9] = -70
    return MemoryTable(np.arange(people), {"lon": lon, "lat": lat})


TOWN = town(120)
EVERYBODY = ReportBatch(120, 120)


def counts(tree, *cells):
    return Counts(Leaves(tree, np.concatenate(cells)), AtMostRows(1))


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_the_string_of_a_cell_begins_those_of_whoever_is_in_it(tree):
    strings = CellStrings(tree)
    base = tree.cell_at(TOWN.columns, tree.depth)
    people = strings.of_people(base)
    assert (people < 1 << strings.bits).all()
    assert not (people & np.uint64(1)).any()
    nowhere = base == NOWHERE
    assert 0 < nowhere.sum() < len(base)
    assert (people[nowhere] == 1 << (strings.bits - 1)).all()
    for level in range(tree.depth + 1):
        cells = tree.cell_at(TOWN.columns, level)
        listed = np.unique(cells[~nowhere])
        rng = np.random.default_rng(level)
        listed = rng.permutation(listed)
        found = strings.of_cells(listed, level)
        assert len(set(found.tolist())) == len(listed)
        begins = people >> np.uint64(strings.bits - strings.length(level))
        for cell, string in zip(listed, found, strict=True):
            assert np.array_equal(begins == string, cells == cell)
        asked, places = strings.parameter(level, listed)
        assert asked.increasing
        assert asked.level == strings.length(level) - 1 < strings.bits - 1  # no level is that of the leaves
        assert np.array_equal(asked.prefixes[places], found)
        assert np.array_equal(begins == asked.prefixes[-1], nowhere)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_two_servers_walk_down_a_tree_and_count_who_is_where_by_shares(tree):
    trust = InMemoryOneReport(TOWN, EVERYBODY, 3, Stream.fixed(b"walk"))
    one = Leaves.at_level(tree, 1).cells
    fine = tree.children(tree.children(one[1:3]))
    questions = [
        counts(tree, one, [NOWHERE]),
        counts(tree, one[:1], one[3:], fine, [NOWHERE]),
        counts(tree, one, fine[2:5]),  # a cell counts who is in none of those inside it
        counts(tree, tree.root),
        counts(tree, tree.children(one[1:2])),
        Counts(WholeDomain(tree), AtMostRows(1)),
        Concatenation((counts(tree, one), counts(tree, tree.root)), (1, 3)),
    ]
    for asked in questions:
        answer = trust.answer(Query(asked, 1), SILENT)
        assert np.array_equal(answer.sums, asked.total(TOWN))
        assert answer.people == 120
    assert [depth for depth, _ in trust.walk.candidates] == [1, 3]


def test_a_map_of_one_report_is_that_of_its_law_to_the_last_count():
    tree = TREES["squares"]
    made = []
    for kind in (InMemoryOneReport, OneReportTrust):
        trust = kind(TOWN, EVERYBODY, 6, Stream.fixed(b"map"))
        made.append(run(Adaptive.for_one_report(tree, AtMostRows(1)), trust, PureDP(10**6), Unrecorded()))
    assert np.array_equal(made[0].value.values, made[1].value.values)
    assert len(made[0].transcript) > 3


def test_each_server_adds_the_whole_noise_to_its_shares():
    """Chi-square, 1e-6, on a fixed stream; the twin takes a curator's noise for it."""
    trust = InMemoryOneReport(TOWN, EVERYBODY, 1, Stream.fixed(b"noise"))
    asked = Counts(Leaves.at_level(TREES["squares"], 3), AtMostRows(1))
    exact = asked.total(TOWN)
    noise = np.concatenate([trust.answer(Query(asked, 1), PureDP("0.5")).sums - exact for _ in range(100)])
    assert fit(noise, polya_law(Fraction(2), Fraction(2))) > LEVEL
    assert fit(noise, laplace_law(Fraction(2))) < LEVEL


def test_the_share_of_one_server_alone_says_nothing_of_who_is_where():
    trust = InMemoryOneReport(TOWN, EVERYBODY, 1, Stream.fixed(b"share"))
    asked = Counts(Leaves.at_level(TREES["squares"], 2), AtMostRows(1))
    trust.answer(Query(asked, 1), SILENT)
    one, other = (asked_sums(asked, server.levels) for server in trust._servers)
    assert min(one) > 1 << 50  # of 16 numbers below 2^64: but for a chance of 0.1 %, and the stream is fixed
    assert ((one + other) % (2**64 - 2**32 + 1)).tolist() == asked.total(TOWN).tolist()


def test_what_the_servers_did_not_count_is_refused():
    tree = TREES["squares"]
    one = Leaves.at_level(tree, 1)
    known = [LevelCounts(one, 1, [1, 2, 3, 4], 5)]
    with pytest.raises(Unanswerable, match="4 cells are no unions"):
        asked_sums(counts(tree, tree.children(one.cells[:1])), known)
    three = [LevelCounts(Leaves(tree, one.cells[:3]), 1, [1, 2, 3], 5)]
    with pytest.raises(Unanswerable, match="1 cells are no unions"):  # a quarter of the root was not counted
        asked_sums(counts(tree, tree.root), three)
    with pytest.raises(Unanswerable, match="no unions"):
        asked_sums(counts(tree, [NOWHERE]), [])
    with pytest.raises(Unanswerable, match="listed cells"):
        asked_sums(CountMinSketch(tree, 6, 50, 3, AtMostRows(1)), known)
    with pytest.raises(NotOpened):
        InMemoryOneReport(TOWN, EVERYBODY, 1, dropping=Fraction(1, 2)).answer(Query(counts(tree, one.cells), 1), SILENT)


def test_a_server_walks_down_only_and_asks_no_level_twice():
    tree, strings = TREES["squares"], CellStrings(TREES["squares"])
    server = OneReportServer(Poplar1(strings.bits), 0, bytes(32), [])
    levels = [strings.parameter(depth, Leaves.at_level(tree, depth).cells[:3])[0].to_bytes() for depth in (1, 2)]
    server.begin(levels[0])
    for _ in range(2):
        with pytest.raises(Refused):
            server.begin(levels[0])
    server.begin(levels[1])
    outside = strings.parameter(3, Leaves.at_level(tree, 3).cells[-1:])[0].to_bytes()
    with pytest.raises(Refused):
        server.begin(outside)
