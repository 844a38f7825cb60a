"""A table that shows only the votes of people who were drawn and who answered."""

from dataclasses import replace
from fractions import Fraction
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Redrawn, Tree
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapWarning, NotOpened, TranscriptMismatch, Unanswerable
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson
from hazemap.tables.votes import Votes, VotesTable
from hazemap.trust.cohorts import Cohort
from hazemap.trust.dropout import Participation
from hazemap.trust.random_sampling import happens, without_replacement


class SampledTable:
    """One sample of a table's people, and in every round those of them who answered, in shards that were opened.

    People are drawn when votes are first asked for. In a `MemoryTable` a person is a code, with all rows. In any other
    table (or where each row is a person) a person is one vote, and only one tree and one rule can be asked for: their
    order tells who is who.
    """

    def __init__(self, table: VotesTable, cohort: Cohort, stream: Stream, dropping: Fraction) -> None:
        self._table, self._cohort, self._stream, self._dropping = table, cohort, stream, dropping
        self._order: tuple[Tree, Bounding] | None = None
        self._asked: NDArray[np.int64] | None = None
        self._answered: NDArray[np.int64] | None = None
        self._turnout: Participation | None = None

    @property
    def turnout(self) -> Participation:
        """What became of the open round."""
        if self._turnout is None:
            raise TranscriptMismatch("nobody's votes were asked for in this round")
        return self._turnout

    def next_round(self) -> None:
        """Ask the same people again; others of them will answer."""
        self._answered = self._turnout = None

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The votes of whoever was drawn and answered."""
        if isinstance(tree, Redrawn):
            return self.votes(tree.base, bounding).redrawn(tree)
        if isinstance(self._table, MemoryTable) and not isinstance(bounding, RowIsPerson):
            codes, whose = np.unique(self._table.person, return_inverse=True)
            there = np.zeros(len(codes), dtype=np.bool_)
            there[self._people(len(codes))] = True
            return _rows(self._table, there[whose]).votes(tree, bounding)
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

    def _people(self, population: int) -> NDArray[np.int64]:
        """The ranks of those who answered, ascending."""
        if self._asked is None:
            if not population:
                raise NotOpened("nobody is there to be asked: no row of the table counts")
            if population < self._cohort.people:
                warn(
                    f"a round was to ask {self._cohort.people:,} people; {population:,} are there, and all are asked",
                    HazemapWarning,
                    stacklevel=2,
                )
            number = min(population, self._cohort.people)
            self._asked = without_replacement(self._stream, population, number)
        if self._answered is None:
            self._turnout = self._round(len(self._asked))
            self._answered = self._asked[without_replacement(self._stream, len(self._asked), self._turnout.people)]
        return self._answered

    def _round(self, asked: int) -> Participation:
        """Who drops out, shard by shard."""
        cohort = replace(self._cohort, people=asked)
        stays = ~happens(self._stream, asked, self._dropping)
        begins = np.cumsum([0, *cohort.shards[:-1]])
        return Participation(cohort, tuple(np.add.reduceat(stays.astype(np.int64), begins).tolist()))


def _rows(table: MemoryTable, some: NDArray[np.bool_]) -> MemoryTable:
    """Some of the rows, with the same key, so the same draws."""
    return MemoryTable(table.person[some], {name: column[some] for name, column in table.columns.items()}, table.key)
