"""hazemap's own methods by their names: one entry publishes an algorithm, its parameters and its paper.

The first are what a steward should try first. Methods that are there to compare with are in `comparators`.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.emd_pyramids import DensePyramid, PublishedPyramid, Pyramid
from hazemap.algorithms.htf_plus import HTFPlus
from hazemap.algorithms.named_methods import (
    CELLS,
    EVERYWHERE,
    LEVEL,
    PEOPLE,
    SQUARES,
    CellKind,
    NamedMethod,
    Setting,
)
from hazemap.algorithms.published.adaptive_hierarchical_histogram import AdaptiveHierarchicalHistogram
from hazemap.algorithms.published.htf import HTF
from hazemap.algorithms.published.privtree import PrivTree
from hazemap.algorithms.published.uniform_and_adaptive_grid import AdaptiveGrid, UniformGrid
from hazemap.algorithms.single_level import FittedLevel, Flat
from hazemap.algorithms.trees_within_districts import TreesWithinDistricts
from hazemap.cellmap import Reading

BAGDASARYAN = "Bagdasaryan et al., Towards sparse federated analytics: location heatmaps, PoPETs 2022"
CORMODE = "Cormode, Procopiuc, Srivastava, Shen and Yu, Differentially private spatial decompositions, ICDE 2012"
GHAZI = "Ghazi et al., Differentially private heatmaps, 2022"
GRIDS = "Qardaji, Yang and Li, Differentially private grids for geospatial data, ICDE 2013"
SHAHAM = "Shaham, Ghinita, Ahuja, Krumm and Shahabi, HTF: homogeneous tree framework, 2022"

SMALL, MANY = Fraction(1, 10**6), 10**9
_number = partial(Setting, "number", "share_of_number", "part of the budget that buys the number of people")
NUMBER = _number(SMALL, Fraction(1, 2), part=True)
KNOWN_PEOPLE = Setting("people", "people", "number of people, declared public: nothing is spent on it", 1, 10**10)
A_CELL = Setting("cell", "people_a_cell", "people that a cell should hold at ε = 1", 1, 10**6)
TURNS = Setting("T", "turns", "turns of the search for a line; 0 halves, all weighs every line", 0, 16, none="all")
PIXELS = Setting("pixels", "least_pixels", "a cell of so many pixels is cut no more", 1, MANY)
W = Setting("w", "kept", "cells of a level that are cut", 1, 99_999)
GAMMA = Setting(
    "gamma", "gamma", "budget of a level by that of the one before; 1/√2", Fraction(1, 2), Fraction(99, 100), part=True
)
GRAIN = Setting("grain", "grain", "weight of the root, of which the others are multiples", 1, 1024)
OF_LINES = (
    Setting("threshold", "stop_at", "a cell of so many people is a leaf; eq31 sets one a height", 0, MANY, none="eq31"),
    TURNS,
    Setting("height", "height", "levels of the tree; chosen by the number of people", 1, 40),
    *(PIXELS, A_CELL),
    Setting(
        name="negative",
        field="negative",
        what="part of leaves that may be below 0, where no half is empty; sets thresholds",
        least=SMALL,
        most=Fraction(49, 100),
        part=True,
    ),
)


def _published_htf(tree: Any, bounding: Any, epsilon: Fraction, **changes: Any) -> HTF:
    """HTF with the paper's amounts of ε."""
    amounts = {name: changes.pop(name) for name in ("number", "level") if name in changes}
    return replace(HTF.published(tree, epsilon, bounding, **amounts), **changes)


_part_or_none = partial(Setting, part=True, none="none")

BUILT_IN: dict[str, NamedMethod] = {
    method.name: method
    for method in (
        NamedMethod(
            "auto",
            Adaptive,
            cells=EVERYWHERE,
            what="small cells where many people are: decides with 11 or 30 % of the budget and counts with the rest",
            paper="ours; after " + BAGDASARYAN,
            settings=(
                Setting("first", "first_cells", "cells of the first grid, if people are many", 1, 1 << 16),
                Setting(
                    name="shares",
                    field="deciding",
                    what="part of the budget of each round that decides",
                    least=SMALL,
                    most=Fraction(9, 10),
                    part=True,
                    many=True,
                ),
                Setting("fullness", "fullness", "standard errors a cell holds, a number a round", 1, 10**6, many=True),
                _part_or_none(
                    name="contrast",
                    field="contrast",
                    what="how much smaller the last cells are on rough maps",
                    least=SMALL,
                    most=10**6,
                ),
                _part_or_none(
                    name="smooth",
                    field="smooth",
                    what="roughness below which a map needs no last round that decides",
                    least=SMALL,
                    most=10**6,
                ),
                _part_or_none(
                    name="even",
                    field="even",
                    what="the same roughness, over all cells and with borders cut finer",
                    least=SMALL,
                    most=10**6,
                ),
                _part_or_none(
                    name="sizing",
                    field="sizing",
                    what="part of the budget that counts people for the first grid",
                    least=SMALL,
                    most=Fraction(9, 10),
                ),
                Setting(
                    name="first-fullness",
                    field="first_fullness",
                    what="standard errors a cell of the first grid holds, at most",
                    least=1,
                    most=10**6,
                    none="none",
                ),
                _part_or_none(
                    name="total",
                    field="total_within",
                    what="part of the people that the total may err by, so that cells get more",
                    least=SMALL,
                    most=Fraction(9, 10),
                ),
                _part_or_none(
                    "look", "second_look", "share that looks again at maps that look even", SMALL, Fraction(1, 2)
                ),
                Setting("numbers", "most_numbers", "numbers that are asked for in all rounds, at most", 1, MANY),
            ),
        ),
        NamedMethod(
            "national",
            TreesWithinDistricts,
            parameter=PEOPLE,
            cells=(CellKind.DISTRICT_SQUARES,),
            what="budgets for named districts; below PEOPLE people a tree of even density inside",
            paper=SHAHAM + ", section 6",
            settings=(
                Setting("deciding", "deciding", "part of a level that decides", SMALL, Fraction(99, 100), part=True),
                Setting("lines", "share_a_level", "part of the budget for the lines of a level", 0, 1, part=True),
                Setting("threshold", "stop_at", "a cell of so many people is a leaf", 1, MANY),
                *(TURNS, PIXELS, A_CELL),
            ),
        ),
        NamedMethod(
            "adaptive-grid",
            AdaptiveGrid,
            cells=SQUARES,
            what="m₁ × m₁ blocks, each cut in m₂ × m₂ parts as its count deserves (AG)",
            paper=GRIDS,
            settings=(
                Setting("alpha", "blocks", "part of the budget for blocks", SMALL, Fraction(99, 100), part=True),
                *(KNOWN_PEOPLE, NUMBER, A_CELL),
            ),
        ),
        NamedMethod(
            "fitted-level",
            FittedLevel,
            what="the rule of uniform-grid for levels of a tree, hexagons included",
            paper="ours; after " + GRIDS,
            settings=(NUMBER, A_CELL),
        ),
        NamedMethod(
            "flat",
            Flat,
            levelled=True,
            parameter=LEVEL,
            cells=EVERYWHERE,
            what="one level, all of it",
            paper="Dwork et al. 2006",
        ),
        NamedMethod(
            "pyramid",
            Pyramid,
            parameter=CELLS,
            what="cuts cells that stand out of the noise, level by level, and counts everything again in every round",
            paper="ours; after " + GHAZI,
            settings=(
                W,
                GAMMA,
                Setting("above", "above", "standard errors above which a cell is cut", 0, 1000, part=True),
            ),
        ),
        NamedMethod(
            "dense-pyramid",
            DensePyramid,
            what="one level of εn/3 cells, and the distribution nearest to it at all levels",
            paper=GHAZI + ", appendix D",
            settings=(KNOWN_PEOPLE, NUMBER, A_CELL),
        ),
        NamedMethod(
            "htf+",
            HTFPlus,
            cells=SQUARES,
            what="the tree of htf, halved, with two levels that decide and every answer kept",
            paper="ours; after " + SHAHAM,
            settings=(
                Setting("fullness", "fullness", "a cell of so many standard errors of a leaf is a leaf", 0, 10**6),
                Setting("deeper", "deeper", "levels below the height of htf", 0, 40),
                *(TURNS, PIXELS, A_CELL, NUMBER),
            ),
        ),
        NamedMethod(
            "privtree",
            PrivTree,
            what="a quadtree split wherever its biased noisy counts are high, at the price of two of them",
            paper="Zhang, Xiao and Xie, PrivTree, SIGMOD 2016",
            settings=(
                Setting("growing", "growing", "part of the budget for growing", SMALL, Fraction(99, 100), part=True),
                Setting("threshold", "threshold", "θ: a cell above it is split", 0, MANY),
            ),
        ),
        NamedMethod(
            "uniform-grid",
            UniformGrid,
            cells=SQUARES,
            what="one grid, as fine as the number of people bears (UG)",
            paper=GRIDS,
            settings=(NUMBER, A_CELL),
        ),
        NamedMethod(
            "htf",
            partial(HTF, reading=Reading.UNBIASED),
            cells=SQUARES,
            types=(HTF,),
            what="cuts cells where both halves are of even density, with parts of any budget",
            paper=SHAHAM,
            settings=(
                *OF_LINES,
                NUMBER,
                Setting("lines", "share_a_level", "part of the budget for the lines of a level", 0, 1, part=True),
            ),
        ),
        NamedMethod(
            "htf-published",
            _published_htf,
            cells=SQUARES,
            types=(HTF,),
            priced=True,
            what="htf with the paper's amounts of ε: 0.0001 for the height and 0.001 for the lines of a level",
            paper=SHAHAM,
            settings=(
                *OF_LINES,
                Setting("number", "number", "ε of the number of people; 0.0001", SMALL, 100, part=True),
                Setting("lines", "level", "ε of the lines of a level; 0.001, or 0.0005", SMALL, 100, part=True),
            ),
        ),
        NamedMethod(
            "prefix",
            AdaptiveHierarchicalHistogram,
            what="splits what stands out of the noise, collapses what drowns in it, and asks the whole tree anew",
            paper=BAGDASARYAN,
            settings=(
                Setting("c0", "c0", "a round wants noise of c₀/2 · n/k", Fraction(1, 1000), 1000, part=True),
                Setting("b", "reserve", "a round that leaves less than b times its price is the last", 1, 1000),
                Setting("split", "split_at", "standard errors above which a cell is split", 0, 1000),
                Setting("above", "split_above", "people above which a cell is split, in place of that", 0, MANY),
                Setting("collapse", "collapse", "a cell of this part of that falls to its parent", 0, 1, part=True),
                Setting("rounds", "most_rounds", "rounds, at most", 1, 100),
                *(KNOWN_PEOPLE, NUMBER),
            ),
        ),
        NamedMethod(
            "pyramid-published",
            PublishedPyramid,
            parameter=CELLS,
            what="cuts the w fullest cells of a level, then takes the distribution nearest to all answers",
            paper=GHAZI,
            settings=(W, GAMMA),
        ),
    )
}
"""hazemap's own methods."""

ALIASES = {"adaptive": "auto"}
"""Other names of methods: understood wherever a method is named, and written nowhere."""


def canonical(text: str) -> str:
    """A method's text by its one name.

    >>> canonical("adaptive:first=64"), canonical("htf+")
    ('auto:first=64', 'htf+')
    """
    name, colon, rest = text.partition(":")
    return f"{ALIASES.get(name, name)}{colon}{rest}"
