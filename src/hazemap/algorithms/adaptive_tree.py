"""A tree whose leaves all hold about as many people as the noise allows: the default method."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from hazemap.algorithms.cell_cutting import (
    EVENLY,
    STEEP,
    bordering,
    coarsest,
    cut,
    fullness_by_roughness,
    hides_places,
    looks_even,
    looks_smooth,
)
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Partition, Tree, WholeDomain
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import ConsistentEstimate, Measurement, consistent, measurements, read
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding

DESCENT = 2
"""Levels that a walk goes down in a round: then a round's cells differ little in size, and few prefixes are asked."""

TO_THE_TOP = 64
"""This many levels above any cell is everything, in any tree."""


@dataclass(frozen=True)
class Adaptive:
    """First decide on the cells with a small part of the budget, then count them with the rest.

    Deciding: ask a coarse grid; cut every cell until its parts hold no more than some standard errors of the next
    round; ask again. Bagdasaryan et al. (2022) cut what stands out of the noise and end with cells of nearly equal
    area. This aims at cells of equal count: a cell of count c is cut k times, b^k ≈ c/(fullness σ), where b is the
    tree's fan-out and σ the noise that `Prices` tells for the next round. How full the last cells are depends on the
    map: where neighbours tell little about each other, smaller cells show more (`contrast`; `estimate.roughness`).

    Counting: ask the cells, then coarser cells made of them (`coarser`: how many levels up, with which share), which
    are known better together than one by one. Usually that is everything alone, with at most 9.5 % of the budget: so
    the total of one row a person is known to ± 15 people at ε = 1, however many cells there are, or to
    `total_within` of the people (1 %) if that is more; the cells get what is left of its share. The cells are fixed by
    then, so these answers give unbiased numbers and intervals for every union of cells, by exact least squares
    (`estimate.postprocess`); the picture may use all rounds. The parameters were chosen on public maps
    (docs/concepts/auto.md).

    The first grid is the coarsest level with `first_cells` cells, or with fewer (`FEWEST` at least) where few people
    are, so that its cells hold `first_fullness` standard errors of the last round at most: `sizing` is the share that
    counts them for that, and for the share of the total. `prior` replaces it by any disjoint cells: last year's map, or
    one of the buildings.

    A map that is below `even` in roughness, over all cells that stand out of the noise, needs no last deciding round:
    the cells get its share, and hold `EVENLY` many standard errors. But stops, and coordinates that were rounded, look
    even in large cells. So that `second_look` of the budget asks again, in cells that noise fills, whether people hide
    there in few places; if so, the last deciding round is asked after all, with less. Either may be `None`: no round
    is left out, whatever the map is like, or nobody looks again. (`smooth` is `even` of earlier versions: it looked at
    small cells alone, which are those at borders.) Where
    people were counted first, `telling` leaves out deciding rounds before the last in which a cell of the first grid
    would hold less than so many standard errors on average: what they cut would be noise. The cells get their share
    too, and are a third fuller if one round alone decided on them.

    `most_numbers` limits how many numbers are asked for in all rounds together: what each device sends. Then a round
    asks at most about a third of what the next one may, and cells are fuller where they must be. Nobody is counted
    first, and as nobody looks a second time, no round is left out.

    With a `descent`, a round cuts by at most so many levels, and only cells that the round before made: a walk down
    the tree, as two servers can do it with one report of each person (`for_one_report`).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=10)
    >>> Adaptive(tree).share, Adaptive.for_devices(tree, most_numbers=1_300).share
    (Fraction(3, 5), Fraction(67, 100))
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    first_cells: int = 256
    deciding: tuple[Fraction, ...] = (Fraction(8, 100), Fraction(22, 100))
    fullness: tuple[int, ...] = (5, 16)
    coarser: tuple[tuple[int, Fraction], ...] = ((TO_THE_TOP, Fraction(95, 1000)),)
    prior: Leaves | None = None
    reading: Reading = Reading.LIKELY
    most_numbers: int | None = None
    contrast: Fraction | None = Fraction(3, 2)
    descent: int | None = None
    smooth: Fraction | None = None
    sizing: Fraction | None = Fraction(5, 1000)
    telling: Fraction | None = None
    even: Fraction | None = Fraction(43, 100)
    first_fullness: int | None = 24
    total_within: Fraction | None = Fraction(1, 100)
    second_look: Fraction | None = Fraction(3, 100)

    FROM_MAP: ClassVar[dict[str, Any]] = {"deciding": (), "fullness": ()}
    FROM_LIST: ClassVar[dict[str, Any]] = {"deciding": (Fraction(20, 100),), "fullness": (6,)}
    """What is set otherwise with a prior: an earlier map has decided on its cells already; any others are cut once."""

    @classmethod
    def for_devices(
        cls,
        tree: Tree,
        bounding: Bounding = AtMostRows(1),
        most_numbers: int | None = None,
        prior: Leaves | None = None,
    ) -> "Adaptive":
        """Parameters for a sample of people, drawn afresh in each round: smaller cells, decided on with more.

        A cell of 4σ people is about as uncertain from sampling as from noise, and neighbours help (`estimate`). What
        is spent on deciding is not lost: every round sees other people, so its numbers improve the picture.
        """
        return cls(
            tree,
            bounding,
            first_cells=64,
            deciding=(Fraction(4, 100), Fraction(8, 100), Fraction(16, 100)),
            fullness=(4, 4, 4),
            coarser=((2, Fraction(5, 100)),),
            prior=prior,
            reading=Reading.SHRUNK,
            most_numbers=most_numbers,
            contrast=None,
            sizing=None,
            even=None,
            first_fullness=None,
            total_within=None,
            second_look=None,
        )

    @classmethod
    def for_slots(cls, tree: Tree, bounding: Bounding = AtMostRows(1), most_numbers: int | None = None) -> "Adaptive":
        """Parameters for a map of all slots together, whose cells slots are shown in: always as many rounds.

        Where there may only be so many numbers nobody is counted first, and the first grid has 64 cells, as that of
        `for_devices`.
        """
        return cls(
            tree,
            bounding,
            first_cells=256 if most_numbers is None else 64,
            deciding=(Fraction(15, 1000), Fraction(4, 100), Fraction(10, 100)),
            fullness=(20, 6, 6),
            coarser=((4, Fraction(1, 100)), (TO_THE_TOP, Fraction(95, 1000))),
            most_numbers=most_numbers,
            sizing=Fraction(1, 100),
            telling=Fraction(3, 10),
            even=None,
            total_within=None,
            second_look=None,
        )

    @classmethod
    def for_one_report(
        cls,
        tree: Tree,
        bounding: Bounding = AtMostRows(1),
        most_numbers: int | None = None,
        prior: Leaves | None = None,
    ) -> "Adaptive":
        """The parameters for a sample of people, each of whom reports once: every round goes down from the last."""
        return replace(cls.for_devices(tree, bounding, most_numbers, prior), descent=DESCENT)

    def __post_init__(self) -> None:
        shares = (*self.deciding, *(share for _, share in self.coarser), self.share)
        if len(self.deciding) != len(self.fullness) or min(shares) <= 0:
            raise InputError(
                "an adaptive tree needs one fullness for each deciding share, and "
                "deciding shares that add up to less than 1"
            )
        if self.contrast is not None and self.contrast <= 0:
            raise InputError("`contrast` must be positive, or None")
        if self.sizing is not None and self.sizing <= 0:
            raise InputError("`sizing` is a share above 0, or None")
        if self.smooth is not None and self.smooth < 0:
            raise InputError("`smooth` is a roughness, 0 or more, or None")
        if self.telling is not None and self.telling < 0:
            raise InputError("`telling` is a number of standard errors, 0 or more, or None")
        if self.even is not None and self.even < 0:
            raise InputError("`even` is a roughness, 0 or more, or None")
        if self.first_fullness is not None and self.first_fullness < 1:
            raise InputError("`first_fullness` is a number of standard errors, 1 or more, or None")
        if self.total_within is not None and not 0 < self.total_within < 1:
            raise InputError("`total_within` is a part of the people, above 0 and below 1, or None")
        if self.second_look is not None and not 0 < self.second_look < 1:
            raise InputError("`second_look` is a share above 0 and below 1, or None")
        if self.descent is not None and self.descent < 1:
            raise InputError("a `descent` goes down 1 level a round or more, or is None")
        if self.prior and (self.prior.tree != self.tree or self.prior.nested):
            raise InputError("the cells of a prior must belong to the same tree, and none may lie inside another")

    @property
    def share(self) -> Fraction:
        """What is left for the cells themselves."""
        return (
            1
            - (self._sizing or Fraction(0))
            - sum(self.deciding, Fraction(0))
            - sum((share for _, share in self.coarser), Fraction(0))
        )

    @property
    def _sizing(self) -> Fraction | None:
        """What counts the people first: nobody who has named the first cells, or how many numbers there may be."""
        return self.sizing if self.prior is None and self.most_numbers is None else None

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        whole = any(levels >= self.tree.depth for levels, _ in self.coarser)
        return counted(Learned.FINENESS, *((Learned.PEOPLE,) if whole else ()))

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """One query for each deciding share, one for the cells, one for each coarser level."""
        transcript: list[tuple[Question, Answer]] = []
        first, people = self.prior, inf
        if first is None:
            wanted = self.first_cells
            if self._sizing is not None:
                query = Query(Counts(WholeDomain(self.tree), self.bounding), self._sizing)
                transcript.append((query, (yield query)))
                people = float(transcript[0][1].sums[0]) / self.bounding.unit
                wanted = self._as_many(people, prices)
            first = coarsest(self.tree, wanted)
        cells = with_nowhere(first, self.bounding)
        left = self._checked(cells) - len(transcript)
        coarser = self._coarser(people, prices)
        shares = self._telling(cells, people, prices)
        shares[-1] += sum((share for _, share in self.coarser), Fraction(0)) - sum(share for _, share in coarser)
        older, even, looking = np.zeros(0, dtype=np.uint64), False, False
        vague = VAGUE if len(shares) == 2 < len(self.deciding) + 1 else 1.0
        while len(shares) > 1:
            query = Query(Counts(cells, self.bounding), shares.pop(0))
            transcript.append((query, (yield query)))
            left -= cells.size
            asked = measurements(transcript, cells)
            if looking:
                looking, even = False, not hides_places(asked, cells)
                if even:
                    shares = [sum(shares, Fraction(0))]
            elif len(shares) == 2 and len(self.deciding) > 1:
                rest = sum(shares, Fraction(0))
                finest = prices.stddev(Counts(cells, self.bounding), rest) / self.bounding.unit
                looks = self.second_look is None or self.most_numbers is None
                even = looks and looks_even(asked, cells, finest, self.even)
                looking = even and self.second_look is not None
                if looking:
                    shares = self._looking(shares)
                elif even or looks_smooth(asked, cells, finest, self.smooth):
                    shares = [rest]
            noise = prices.stddev(query.encoder, shares[0]) / self.bounding.unit
            later = len(shares) - 1
            if looking:  # cells are not joined again, so these are no smaller than an even map ends with
                fullness = max(1.0, EVENLY[1] * finest / max(noise, 1e-9))
            else:
                fullness = self.fullness[-1 - later] if later else self._last(asked, cells, noise, even) * vague
            # Where noise is next to nothing, one person need not be cut.
            limit = None if self.descent is None else np.where(np.isin(cells.cells, older), 0, self.descent)
            older = cells.cells
            known = consistent(asked, cells)
            numbers = bordering(asked, known) if even else known.numbers
            cells = self._cut(known, max(fullness * noise, 1.0), left, later, limit, numbers)
        for levels, share in ((0, shares[0]), *coarser):
            query = Query(Counts(self._above(cells, levels), self.bounding), share)
            transcript.append((query, (yield query)))
        return read(transcript, cells, self.reading)

    def _above(self, cells: Leaves, levels: int) -> Partition:
        """The cells this many levels up: above several roots there is everything."""
        return WholeDomain(self.tree) if levels > self.tree.depth and len(self.tree.root) > 1 else cells.above(levels)

    def _as_many(self, people: float, prices: Prices) -> int:
        """Cells of the first grid for so many people: fewer where the last answers could not tell its cells apart."""
        noise = prices.stddev(Counts(WholeDomain(self.tree), self.bounding), self.share) / self.bounding.unit
        full = (self.first_fullness or FULL_BEFORE) * max(noise, 1e-9)
        return round(min(max(people / full, min(FEWEST, self.first_cells)), self.first_cells))

    def _coarser(self, people: float, prices: Prices) -> list[tuple[int, Fraction]]:
        """Coarser cells and their shares: that of everything is as small as `total_within` of the people allows.

        Of the people less three standard errors of how they were counted, so that it is seldom too small by chance.
        """
        if self.total_within is None or self._sizing is None:
            return list(self.coarser)

        def error(share: Fraction) -> float:
            return prices.stddev(everything, share) / self.bounding.unit

        everything = Counts(WholeDomain(self.tree), self.bounding)
        enough = float(self.total_within) * (people - 3 * error(self._sizing))
        return [
            (levels, next((less for less in TOTALS if less < share and error(less) <= enough), share))
            if levels >= self.tree.depth
            else (levels, share)
            for levels, share in self.coarser
        ]

    def _telling(self, first: Leaves, people: float, prices: Prices) -> list[Fraction]:
        """The shares of the deciding rounds that can tell these cells apart, and of the last, and of the cells."""
        shares, mean = list(self.deciding), people / max(first.size, 1)
        noise = [prices.stddev(Counts(first, self.bounding), share) / self.bounding.unit for share in shares[:-1]]
        left_out = sum(mean < float(self.telling or 0) * each for each in noise)
        return [*shares[left_out:], self.share + sum(shares[:left_out], Fraction(0))]

    def _looking(self, shares: list[Fraction]) -> list[Fraction]:
        """The shares of a second look, of a last deciding round with what that leaves of it, and of the cells."""
        look = min(self.second_look or Fraction(0), shares[0] / 2)
        return [look, shares[0] - look, *shares[1:]]

    def _last(self, asked: list[Measurement], cells: Leaves, noise: float, even: bool) -> float:
        """How full the last cells are, in standard errors: by `contrast`, and no fuller than the last `fullness`."""
        if self.contrast is None:
            return self.fullness[-1]
        power = 1 if self.smooth is None and self.even is None else STEEP
        found = fullness_by_roughness(asked, cells, noise, float(self.contrast), power, even)
        return found if even else min(found, self.fullness[-1])

    def _checked(self, first: Leaves) -> float:
        """How many numbers may be asked for; `InputError` if the first cells alone, never cut, would be more."""
        if self.most_numbers is None:
            return inf
        least = first.size * (len(self.deciding) + 1 + len(self.coarser))
        if least > self.most_numbers:
            raise InputError(
                f"a device may be asked for {self.most_numbers} numbers, but {first.size} first cells need {least} in "
                "all rounds: allow more numbers, or begin with fewer cells"
            )
        return self.most_numbers

    def _cut(
        self,
        known: ConsistentEstimate,
        fullness: float,
        left: float,
        later: int,
        limit: Ints | None,
        numbers: Floats,
    ) -> Leaves:
        """The next cells, by these numbers: as full as wanted, or fuller, so that some are left for `later` rounds.

        Rounds are to grow threefold: the next one gets 1/(1 + 3 + … + 3^later) of what is left, and never so much
        that asking these cells again in all later rounds would be too much. Bisection, some 20 cuts.
        """

        def cells(fullness: float) -> Leaves:
            return with_nowhere(cut(known.leaves, numbers, fullness, limit), self.bounding)

        def fits(cells: Leaves) -> bool:
            above = 0 if later else sum(self._above(cells, levels).size for levels, _ in self.coarser)
            return bool(cells.size + above <= room)

        room = left / max((3 ** (later + 1) - 1) / 2, later + 1 + len(self.coarser) if later else 1)
        found = cells(fullness)
        if fits(found):
            return found
        low, high, found = fullness, max(fullness, float(numbers.max())), known.leaves
        for _ in range(20):
            middle = sqrt(low * high)
            finer = cells(middle)
            low, high, found = (low, middle, finer) if fits(finer) else (middle, high, found)
        return found


FEWEST = 16
"""The first grid has so many cells at least, unless it was to have fewer."""

FULL_BEFORE = 6
"""How full first cells may be without `first_fullness`, as in earlier versions."""

TOTALS = tuple(Fraction(share, 1000) for share in (20, 30, 40, 50, 60, 80))
"""Shares that everything may have instead of its own, the smallest that is enough."""

VAGUE = 4 / 3
"""Cells are so much fuller where the other deciding rounds could tell nothing: then the last one knew little too."""
