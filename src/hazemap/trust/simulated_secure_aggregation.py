"""A million devices in seconds: the same sums as theirs, by their exact law, without cryptography."""

from dataclasses import replace
from fractions import Fraction
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import Redrawn, Tree
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapWarning, InputError, NotOpened, TranscriptMismatch, Unanswerable
from hazemap.noisy_queries import Answer, Query, Question
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric
from hazemap.privacy.random_stream import Stream
from hazemap.recipes.recipe import Recipe
from hazemap.recipes.recipe_bins import RecipeBins
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson
from hazemap.tables.votes import Votes, VotesTable
from hazemap.trust.checked_contribution import within
from hazemap.trust.cohort_assumptions import Cohort, Participation, Sampling, SecureSumPrices
from hazemap.trust.device_tasks import check_report, pure, round_price
from hazemap.trust.random_sampling import happens, without_replacement
from hazemap.trust.randomised_reports import ReportPrices, check_most, debiased, law_for


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


def rows_of(table: MemoryTable, some: NDArray[np.bool_] | NDArray[np.int64]) -> MemoryTable:
    """Some of the rows, with the same key, so the same draws."""
    return MemoryTable(table.person[some], {name: column[some] for name, column in table.columns.items()}, table.key)


class SecureSumTrust:
    """What the devices of one process have in common, whether they run the protocol or are simulated."""

    def __init__(
        self, cohort: Cohort, stream: Stream | None, dropping: Fraction, local_epsilon: Fraction | None = None
    ) -> None:
        if not 0 <= dropping <= 1:
            raise InputError(f"the probability of dropping out is a fraction from 0 to 1, not {dropping}")
        if local_epsilon is not None:
            check_most(local_epsilon)
        self.cohort, self.dropping, self.local_epsilon = cohort, dropping, local_epsilon
        self.turnouts: list[Participation] = []
        self._stream = stream or Stream.from_os()

    def prices(self, budget: Budget) -> SecureSumPrices | ReportPrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε, or reports are randomised."""
        if self.local_epsilon is not None:
            return ReportPrices(budget, self.cohort, self.local_epsilon)
        return SecureSumPrices(pure(budget), self.cohort)

    def law(self, question: Query, price: Budget) -> Symmetric | Asymmetric | None:
        """What each person does to their report; None where they add shares of noise instead."""
        if self.local_epsilon is None:
            return None
        check_report(question.encoder)
        honest = self.cohort.honest(self.cohort.smallest)
        return law_for(round_price(price), honest, self.local_epsilon)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query


class SimulatedSecureAggregation(SecureSumTrust):
    """Answers as devices would: some people are drawn, some of them drop out, the others bring votes and noise.

    Each person asked drops out with probability `dropping`, on their own. A shard with too few people left is lost;
    if all are, the round raises `NotOpened`. Every sum has exactly the law of `SecureAggregation` (tests/trust/
    test_one_law.py): who survives in which shard does not depend on what they say, so it is enough to draw how many
    survive in each, and then that many people. `turnouts` tells what became of each round.

    With a `local_epsilon` people add no noise in shares: each sends one report, randomised with that ε or less.

    A `MemoryTable` may hold several rows and votes a person; its people are all who have a row. A `PopulationTable`
    answers recipes, and its people are all, with or without a row. Of any other table only votes are known, so a person
    must have one vote; its people are those votes. O(people asked + cells) a round, beyond
    reading the table once. Whoever runs it sees every row: it is for research, plans and tests.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = SimulatedSecureAggregation(table, Cohort(people=2_000, shard=1_000), dropping=Fraction(1, 20))
    >>> result = run(Adaptive(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> [turnout.opened for turnout in trust.turnouts]
    [2, 2, 2, 2, 2, 2]
    """

    def __init__(
        self,
        table: VotesTable,
        cohort: Cohort,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        local_epsilon: Fraction | None = None,
    ) -> None:
        super().__init__(cohort, stream, dropping, local_epsilon)
        self.table = table
        self._sample: SampledTable | None = None

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who answered, and their noise."""
        law = self.law(asked(question), price)
        sample = self._sample or SampledTable(self.table, self.cohort, self._stream, self.dropping)
        if self.cohort.sampling is Sampling.ONE:
            self._sample = sample
        sums = asked(question).encoder.total(sample)
        turnout = sample.turnout
        within(sums, asked(question).encoder.sensitivity, turnout.people)
        self.turnouts.append(turnout)
        sample.next_round()
        turnout.need()
        if law is not None:
            sums = law.sums(self._stream, sums, turnout.people)
            return debiased(law, sums, turnout.people, self._stream)
        scale = asked(question).encoder.sensitivity.l1 / pure(price).epsilon
        for honest, people in turnout.by_honest.items():
            sums += DistributedNoise(scale, honest).together(self._stream, len(sums), people)
        return turnout.answer(sums, scale)


def asked(question: Question) -> Query:
    """The question, if people can answer it in a secure sum."""
    if not isinstance(question, Query):
        raise Unanswerable(f"a secure sum answers queries for sums, not a {type(question).__name__}")
    if question.cohort is not None:
        raise Unanswerable(
            "this trust model draws the people of each round itself; it does not divide them into cohorts that are "
            "asked by number: ask everyone (cohort=None)"
        )
    return question
