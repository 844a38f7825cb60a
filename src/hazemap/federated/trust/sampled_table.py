"""A random sample of a table's people without replacement, and who of them answers in a round: drawn from a stream."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Redrawn, Tree, distinct
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapWarning, InputError, NotOpened, Unanswerable
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson
from hazemap.tables.votes import Votes, VotesTable


def without_replacement(stream: Stream, population: int, number: int) -> NDArray[np.int64]:
    """`number` different ranks below `population`, ascending; every set of that size is as likely as any other.

    Ranks are drawn one by one and those that came before are passed over, in batches no larger than what is still
    wanted: so the last of a batch never stands back for an earlier one. O(number log number), or, where more than half
    are wanted, O(population) for those who are left out.

    >>> without_replacement(Stream.from_os(), 3, 3)
    array([0, 1, 2])
    """
    if not 0 <= number <= population:
        raise InputError(f"{number} people cannot be drawn from {population} without drawing somebody twice")
    if 2 * number > population:
        kept = np.ones(population, dtype=np.bool_)
        kept[without_replacement(stream, population, population - number)] = False
        return np.flatnonzero(kept)
    found = np.zeros(0, dtype=np.uint64)
    while len(found) < number:
        found = distinct(np.concatenate([found, _below(stream, population, number - len(found))]))
    return found.view(np.int64)


def _below(stream: Stream, bound: int, number: int) -> NDArray[np.uint64]:
    """At most `number` (more than a third of them on average) uniform numbers below a bound."""
    words = stream.words(number) >> np.uint64(64 - max(1, (bound - 1).bit_length()))
    return words[words < bound]


def happens(stream: Stream, number: int, probability: Fraction) -> NDArray[np.bool_]:
    """`number` independent events of a probability, to 64 binary digits."""
    if probability == 1:
        return np.ones(number, dtype=np.bool_)
    happened: NDArray[np.bool_] = stream.words(number) < np.uint64(int(probability * 2**64))
    return happened


class SampledTable:
    """One sample of a table's people, and in every round those of them who answered.

    `people` are asked, or all if fewer are there; `answering` says of so many who were asked how many answered in a
    round: which ones does not depend on what they say, so they are drawn.

    People are drawn when votes are first asked for. In a `MemoryTable` a person is a code, with all rows. In any other
    table (or where each row is a person) a person is one vote, and only one tree and one rule can be asked for: their
    order tells who is who.
    """

    def __init__(self, table: VotesTable, people: int, stream: Stream, answering: Callable[[int], int]) -> None:
        self._table, self._wanted, self._stream, self._answering = table, people, stream, answering
        self._order: tuple[Tree, Bounding] | None = None
        self._asked: NDArray[np.int64] | None = None
        self._answered: NDArray[np.int64] | None = None

    def next_round(self) -> None:
        """Ask the same people again; others of them will answer."""
        self._answered = None

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The votes of whoever was drawn and answered."""
        if isinstance(tree, Redrawn):
            return self.votes(tree.base, bounding).redrawn(tree)
        if isinstance(self._table, MemoryTable) and not isinstance(bounding, RowIsPerson):
            codes, whose = np.unique(self._table.person, return_inverse=True)
            there = np.zeros(len(codes), dtype=np.bool_)
            there[self._people(len(codes))] = True
            return rows_of(self._table, there[whose]).votes(tree, bounding)
        if bounding.sensitivity.l1 != 1:
            raise Unanswerable(
                f"votes are known of this table, but not whose they are, and {bounding}: people can be drawn from it "
                "only where each has one vote; give a MemoryTable, or a rule of one row a person"
            )
        if self._order not in (None, (tree, bounding)):
            raise Unanswerable(
                "the same people cannot be asked for two trees or two rules where only votes are known: give a "
                "MemoryTable, or draw a fresh sample each round (Sampling.FRESH) and ask one tree in each"
            )
        self._order = tree, bounding
        votes = self._table.votes(tree, bounding)
        until = np.cumsum(votes.weights)
        places = np.searchsorted(until, self._people(int(until[-1]) if len(until) else 0), "right")
        return Votes(votes.cells, np.bincount(places, minlength=len(votes.cells)))

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bins of whoever was drawn and answered."""
        bins = RecipeBins(recipe).bins(self._table)
        return bins[self._people(len(bins))]

    def _people(self, population: int) -> NDArray[np.int64]:
        """The ranks of those who answered, ascending."""
        if self._asked is None:
            if not population:
                raise NotOpened("nobody is there to be asked: no row of the table counts")
            if population < self._wanted:
                warn(
                    f"a round was to ask {self._wanted:,} people; {population:,} are there, and all are asked",
                    HazemapWarning,
                    stacklevel=2,
                )
            number = min(population, self._wanted)
            self._asked = without_replacement(self._stream, population, number)
        if self._answered is None:
            answered = self._answering(len(self._asked))
            self._answered = self._asked[without_replacement(self._stream, len(self._asked), answered)]
        return self._answered


def rows_of(table: MemoryTable, some: NDArray[np.bool_] | NDArray[np.int64]) -> MemoryTable:
    """Some of the rows, with the same key, so the same draws."""
    return MemoryTable(table.person[some], {name: column[some] for name, column in table.columns.items()}, table.key)


def one_by_one(table: MemoryTable) -> Iterator[MemoryTable]:
    """The table of each person."""
    order = np.argsort(table.person, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(table.person[order])) + 1) if len(order) else ():
        yield rows_of(table, rows)
