"""Nobody pays more than the budget, whatever is asked in whichever order: sessions against a brute-force ledger.

Each sequence of questions goes through a real session. For everyone who could have been asked (all ways to have a
rule's votes in six places) the ledger adds what the accepted questions really moved, over the sensitivity that their
noise is for: in L1 for pure ε, in squared L2 for ρ, in whole numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import lcm

import geopandas
import numpy as np
import pytest
import shapely

from hazemap.cells import NOWHERE, Cells, Leaves, Redrawn, Tree, WholeDomain
from hazemap.encoders import Concatenation, Counts, EvenSplitScores, MedianSplitScores, QuantileScores, SplitCosts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import BudgetExceeded
from hazemap.privacy.budget import PureDP
from hazemap.privacy.parallel_composition import ParallelComposition, Steps
from hazemap.queries.algorithm_disclosure import counted
from hazemap.queries.algorithm_session import Session, Unrecorded
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query, Question
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.spatial.subdivided_districts import DistrictQuadtree, SubdividedDistricts
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.histogram_bins import FloatGrid
from hazemap.values.interval_tree import IntervalTree

BOX = Box(0.0, 0.0, 4.0, 4.0)
PLACES = {
    "lon": np.array([0.3, 0.4, 1.2, 2.2, 3.4, 0.3]),
    "lat": np.array([0.3, 1.4, 0.4, 2.3, 3.3, 0.3]),
    "mark": np.array([0, 1, 0, 1, 0, 1]),
    "value": np.array([-3.0, 0.0, 0.5, 7.0, 40.0, 41.0]),
}
ROWS = MemoryTable(np.arange(6), PLACES)
RULES = (AtMostRows(2), AtMostRows(2, Outside.COUNT), AtMostCells(3), OneVote(3), RowIsPerson())
PARTS = 12
"""Shares are twelfths of the budget."""

WHOLE = lcm(*(rule.sensitivity.l1 for rule in RULES))
"""What somebody loses who moves a question's sums by all of its sensitivity, in pure ε; in ρ its square."""


def persons(rule: object) -> np.ndarray:
    """All that a rule can leave of somebody in six places: votes[person, place]."""
    every = np.array(list(product(range(rule.sensitivity.l1 + 1), repeat=6)))
    if isinstance(rule, AtMostCells):
        every = every[every.max(axis=1) <= 1]
    return every[every.sum(axis=1) == rule.sensitivity.l1]  # with fewer votes they lose less of everything


PEOPLE = {rule: persons(rule) for rule in RULES}


@dataclass(frozen=True)
class Ask:
    """A question, whom it concerns (the ground and the rule; None for everybody), and what each of them loses by it."""

    question: Question
    group: tuple[Tree, object] | None
    pure: np.ndarray
    rho: np.ndarray


def ask(question: Question, cells: object, rule: object) -> Ask:
    """What somebody loses who has their votes in places, of which each lies in the cell that encoding finds."""
    tree = cells.tree
    found = Counts(cells, AtMostRows(1, rule.outside)).encode(ROWS)
    lies_in = np.zeros((6, cells.size), dtype=np.int64)
    lies_in[found.person, found.position] = 1
    moved = PEOPLE[rule] @ lies_in * (WHOLE // rule.sensitivity.l1)
    ground = tree.base if isinstance(tree, Redrawn) else tree
    return Ask(question, (ground, rule), moved.sum(axis=1), (moved**2).sum(axis=1))


def of_everybody(question: Question) -> Ask:
    return Ask(question, None, np.array([WHOLE]), np.array([WHOLE**2]))


def known_cells(tree: Tree) -> Cells:
    """Cells of all levels down to where the places are told apart; of a tree of cuts also deeper names of some."""
    found = [tree.root]
    for _ in range(min(tree.depth, 5)):
        children = tree.children(found[-1])
        places = Leaves(tree, children).locate(ROWS.bounded(tree, AtMostRows(1))[1])
        found.append(np.unique(np.concatenate([children[places[places >= 0]], children[:2]])))
    return np.unique(np.concatenate(found))


def asks(tree: Tree, rng: np.random.Generator, number: int) -> Iterator[Ask]:
    """Questions of every kind about random cells of a tree, under every rule."""
    cells, any_share = known_cells(tree), Fraction(1)
    for i in range(number):
        rule = RULES[i % len(RULES)]
        some = rng.choice(cells, min(len(cells), rng.choice([1, 1, 1, 2, 4])), replace=False)
        if rule.outside.asked and i % 2:
            some = np.append(some, NOWHERE)
        leaves = Leaves(tree, some)
        kind = i // len(RULES) % 4
        if kind == 1 and isinstance(tree, BinaryPartition | SubdividedDistricts) and (wide := costs(leaves, rule)):
            yield ask(Measure(wide, any_share), wide.cells, rule)
        elif kind == 2 and isinstance(tree, BinaryPartition):
            inner = wide_cells(Leaves(tree, tree.ends))
            if len(inner):
                one = Leaves(tree, rng.choice(inner, 1))
                scores = (MedianSplitScores, EvenSplitScores)[i % 2](one, np.zeros(1), rule)
                yield ask(Choice(scores, any_share), one, rule)
        elif kind == 3 and isinstance(tree, Quadtree):
            yield ask(Growth(tree, rule, any_share), Leaves(tree, tree.root), rule)
        else:
            yield ask(Query(Counts(leaves, rule), any_share), leaves, rule)


def wide_cells(leaves: Leaves) -> Cells:
    """Those that can be cut west from east."""
    edges = leaves.tree.rectangles(leaves.cells)
    return leaves.cells[edges.east - edges.west > 1]


def costs(leaves: Leaves, rule: object) -> SplitCosts | None:
    """What it costs to cut the first of these that can be cut."""
    tree, some = leaves.tree, leaves.cells[leaves.cells != NOWHERE]
    if isinstance(tree, SubdividedDistricts):
        some = some[np.isin((some >> np.uint64(44)) << np.uint64(44) | np.uint64(1), tree.dynamic)]
    some = wide_cells(Leaves(tree, some))[:1] if len(some) else some
    if not len(some):
        return None
    edges = tree.rectangles(some)
    return SplitCosts(Leaves(tree, some), np.zeros(1), (edges.west + 1)[:, None], rule)


def country() -> DistrictQuadtree:
    """Two states of three counties each, cut by squares."""
    edges = [(0, 0, 1, 1), (0, 1, 1, 4), (1, 0, 2, 4), (2, 0, 3, 2), (2, 2, 3, 4), (3, 0, 4, 4)]
    names = {"name": [f"county {i}" for i in range(6)], "state": ["West"] * 3 + ["East"] * 3}
    counties = geopandas.GeoDataFrame(names, geometry=[shapely.box(*edge) for edge in edges], crs="EPSG:4326")
    halves = [shapely.box(0, 0, 2, 4), shapely.box(2, 0, 4, 4)]
    states = geopandas.GeoDataFrame({"name": ["West", "East"]}, geometry=halves, crs="EPSG:4326")
    return DistrictQuadtree(Districts.of(states, DistrictLayer(counties, parent="state")), Quadtree.around(BOX, 4))


def halved(
    tree: BinaryPartition | SubdividedDistricts, cells: Cells, axis: int
) -> BinaryPartition | SubdividedDistricts:
    """With these cells cut in the middle."""
    edges = tree.rectangles(cells)
    low, high = (edges.west, edges.east) if axis == 0 else (edges.north, edges.south)
    return tree.cut(cells, np.full(len(cells), axis), (low + high) // 2)


def grown_cuts() -> list[Tree]:
    """A tree of cuts, two ways in which it grows, and one with another first cut."""
    plain = BinaryPartition.uncut(Quadtree.around(BOX, 4))
    once = halved(plain, plain.root, 0)
    twice = halved(once, once.ends[:1], 1)
    return [
        plain,
        once,
        twice,
        halved(twice, twice.ends, 0),
        halved(once, once.ends[1:], 1),
        halved(plain, plain.root, 1),
    ]


def grown_districts() -> list[Tree]:
    """Districts of which states become dynamic, or counties, and are cut; also after questions about those inside."""
    plain = SubdividedDistricts.uncut(country())
    west, east, county = plain.base.districts.named(["West", "East", "East > county 3"])[:, None]
    one = plain.turned(west)
    cut = halved(one, west, 0)
    deeper = halved(cut, cut.children(west), 1)
    other = plain.turned(county)
    return [plain, one, cut, deeper, cut.turned(county), halved(deeper.turned(east), east, 1), halved(other, county, 0)]


FAMILIES: dict[str, Callable[[], list[Tree]]] = {
    "quadtree": lambda: [Quadtree.around(BOX, 4), Quadtree.around(BOX, 3)],
    "hexagons": lambda: [Hexagons(BOX, 2, 4), Hexagons(BOX, 3, 4)],
    "grids": lambda: [
        TwoLevelGrid(Quadtree.around(BOX, 4), 2, np.array(parts)) for parts in ([1, 2, 1, 3], [2, 1, 3, 1])
    ],
    "cuts": grown_cuts,
    "districts": lambda: [country().districts],
    "district_squares": lambda: [country()],
    "cut districts": grown_districts,
    "marked": lambda: [BinaryAttribute(Quadtree.around(BOX, 3)), BinaryAttribute(country().districts)],
    "intervals": lambda: [IntervalTree(0, 64, 16, (4, 4)), IntervalTree(0, 64, 16, (2, 8))],
    "magnitudes": lambda: [FloatGrid()],
}


@cache
def pool(name: str, each: int) -> list[list[list[Ask]]]:
    """For each tree of a family, in the order in which it grows, and each rule: questions. Last, those to everybody."""
    rng = np.random.default_rng(7)
    found = []
    for tree in FAMILIES[name]():
        questions = list(asks(tree, rng, each))
        if isinstance(tree, BinaryAttribute):
            sides = AttributeCells(Leaves(tree.tree, tree.tree.root))
            questions += [ask(Query(Counts(sides, rule), Fraction(1)), sides, rule) for rule in RULES]
        found.append([[one for one in questions if one.group[1] == rule] for rule in RULES])
    cells = Leaves.at_level(Quadtree.around(BOX, 3), 1)
    stack = Concatenation((Counts(cells, RULES[0]), Counts(cells, RULES[3])), (1, 2))
    whole = Query(Counts(WholeDomain(cells.tree), RULES[0]), Fraction(1))
    others = (Query(stack, Fraction(1)), Choice(QuantileScores(cells, (Fraction(1, 2),)), Fraction(1)), whole)
    return [*found, [[of_everybody(question) for question in others]] * len(RULES)]


class Asks:
    """An algorithm that asks what it is given."""

    disclosure = counted()

    def __init__(self, questions: list[Question]) -> None:
        self.questions = questions

    def rounds(self, prices: object) -> Iterator[Question]:
        for question in self.questions:  # noqa: UP028 - a list takes no answers
            yield question


def accepted(questions: list[Question]) -> int:
    """How many of the questions a session lets through."""
    session = Session(Asks(questions), None, PureDP(1), Unrecorded(), lambda _: True)
    try:
        while session.question:
            size = session.question.size or 1
            session.receive(Answer(np.zeros(size, dtype=np.int64), np.ones(1)))
    except BudgetExceeded:
        return len(session.transcript)
    return len(questions)


def sequence(trees: list[list[list[Ask]]], luck: np.ndarray) -> list[tuple[Ask, int, int | None]]:
    """Questions with shares and cohorts: mostly of one rule and of trees that grow, now and then of another."""
    first, start, in_cohorts = luck[0].tolist()
    cohorts = (None, None, 0, 1) if in_cohorts < 0.25 else (None,)
    at, own, chosen = int(start**4 * (len(trees) - 1)), int(first * len(RULES)), []
    for step, kind, share in luck[1:].tolist():
        rule, of = own, at
        if step < 0.4:
            of = at = min(at + 1 + int(share * 2), len(trees) - 2)
        elif step > 0.97:
            of = int(kind * len(trees))
        elif step > 0.95:
            rule = int(kind * len(RULES))
        among = trees[of][rule]
        part = (1, 2, 3, 4, 6, 6, 9, 12)[int(share * 8)]
        chosen.append((among[int(kind * 7919 % 1 * len(among))], part, cohorts[int(share * 7919 % 1 * len(cohorts))]))
    return chosen


def most_lost(asked: list[tuple[Ask, int, int | None]]) -> tuple[int, int]:
    """The most that anybody lost, in parts of the budget: in pure ε and in ρ. Votes of another rule may be anywhere."""
    worst = [0, 0]
    for cohort in {None} | {cohort for *_, cohort in asked}:
        lost: dict[object, list[np.ndarray | int]] = {}
        for one, part, of in asked:
            if of in (None, cohort):
                sums = lost.setdefault(one.group, [0, 0])
                sums[0], sums[1] = sums[0] + part * one.pure, sums[1] + part * one.rho
        for k in (0, 1):
            worst[k] = max(worst[k], sum(int(sums[k].max()) for sums in lost.values()))
    return worst[0], worst[1]


@dataclass
class Tried:
    sequences: int = 0
    overspent: int = 0
    exactly: int = 0
    places_told_apart: int = 0


def tried(names: list[str], sequences: int, seed: int = 1, each: int = 25) -> Tried:
    """So many random sequences of ten questions over every family."""
    rng, found = np.random.default_rng(seed), Tried()
    for name in names:
        trees = pool(name, each)
        for luck in rng.random((sequences, 11, 3)):
            chosen = sequence(trees, luck)
            let = accepted([replace_share(one.question, part, cohort) for one, part, cohort in chosen])
            pure, rho = most_lost(chosen[:let])
            found.sequences += 1
            found.overspent += pure > PARTS * WHOLE or rho > PARTS * WHOLE**2
            found.exactly += pure == PARTS * WHOLE
            found.places_told_apart += sum(part for _, part, _ in chosen[:let]) > PARTS
    return found


def replace_share(question: Question, part: int, cohort: int | None) -> Question:
    """The question for so many parts of the budget; `replace` would check its cells again."""
    changed = object.__new__(type(question))
    changed.__dict__.update(question.__dict__, share=SHARES[part], cohort=cohort)
    return changed


SHARES = [Fraction(part, PARTS) for part in range(PARTS + 1)]


def test_no_sequence_of_questions_over_any_tree_costs_anybody_more_than_the_budget() -> None:
    found = tried(list(FAMILIES), 200)
    assert found.overspent == 0
    assert found.exactly > 100 and found.places_told_apart > 100


@pytest.mark.slow
def test_no_sequence_of_a_hundred_thousand_costs_anybody_more_than_the_budget() -> None:
    found = tried(list(FAMILIES), 10_000, seed=2, each=100)
    assert found.sequences == 100_000 and found.overspent == 0


def never_levelled(self: Steps, first: Cells, last: Cells) -> Steps:
    return self


def whatever_tree_and_rule(self: ParallelComposition, leaves: Leaves, rule: object) -> Steps:
    return self._steps


def takes_any_tree(self: BinaryPartition, other: object) -> bool:
    return True


SABOTAGED = {
    "numbers that change are not followed": ("cut districts", Steps, "levelled", never_levelled),
    "another way to cut is the same ground": ("cuts", BinaryPartition, "extends", takes_any_tree),
    "another grid or rule is the same ground": ("grids", ParallelComposition, "_followed", whatever_tree_and_rule),
}


@pytest.mark.parametrize("twin", SABOTAGED)
def test_the_ledger_finds_whoever_is_overspent_by_a_session_that_takes_places_for_others(twin, monkeypatch) -> None:
    name, owner, method, instead = SABOTAGED[twin]
    monkeypatch.setattr(owner, method, instead)
    assert tried([name], 200, each=40).overspent > 0


@pytest.mark.parametrize("trees", [grown_cuts, grown_districts])
def test_rows_keep_their_numbers_while_a_tree_grows_or_stay_in_the_stretches_that_it_names(trees) -> None:
    lon, lat = np.meshgrid(np.linspace(0.01, 3.99, 20), np.linspace(0.01, 3.99, 20))
    rows, pairs = {"lon": lon.ravel(), "lat": lat.ravel()}, 0
    for before, after in combinations(trees(), 2):
        if not after.extends(before):
            continue
        pairs += 1
        had, has = (tree.cell_at(rows, tree.depth) for tree in (before, after))
        anew = np.zeros(len(had), dtype=bool)
        for first, last in zip(*after.renumbered(before), strict=True):
            held = (first <= had) & (had <= last)
            assert np.array_equal(held, (first <= has) & (has <= last)), "no row enters or leaves"
            anew |= held
        first, last = (ends[:, None] for ends in before.span(known_cells(before)))
        assert np.array_equal((first <= had) & (had <= last) & ~anew, (first <= has) & (has <= last) & ~anew)
    assert pairs >= 5


def test_fault_4_a_rectangle_in_a_district_is_not_told_apart_from_the_counties_that_were_asked_before_it_was_cut() -> (
    None
):
    plain = SubdividedDistricts.uncut(country())
    west, county = plain.base.districts.named(["West", "West > county 0"])[:, None]
    cut = halved(plain.turned(west), west, 0)
    first = Query(Counts(Leaves(plain, county)), Fraction(1))
    then = Query(Counts(Leaves(cut, cut.children(west)[:1])), Fraction(1))
    asked = [ask(each, each.encoder.cells, RULES[-1]).pure for each in (first, then)]
    assert (asked[0] + asked[1]).max() == 2 * WHOLE, "somebody is in both"
    assert accepted([first, then]) == 1
    assert accepted([replace(first, share=Fraction(1, 2)), replace(then, share=Fraction(1, 2))]) == 2
