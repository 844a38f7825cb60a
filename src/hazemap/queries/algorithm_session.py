"""The state of one run: the open query, the budget spent, the answers so far. No I/O.

A session stands between an algorithm and a trust model. It charges the budget of the run to an account *before* any
query can be seen that it pays for, divides it exactly among the queries, keeps the transcript, and refuses what the
budget does not cover or the trust model cannot answer.

The budget is charged at once, or in two parts (docs/decisions/0023): a `look`, which the first queries may spend, and
the rest, once the look is over and somebody decides to go on. No query can be seen before the part is paid that covers
it and all before it, so whoever stops after the look has spent no more than the look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, NamedTuple, Protocol, TypeVar

from hazemap.codec import digest
from hazemap.errors import BudgetExceeded, InputError, TranscriptMismatch, Unanswerable
from hazemap.privacy.budget import Budget
from hazemap.privacy.parallel_composition import ParallelComposition
from hazemap.queries.algorithm_disclosure import Disclosure
from hazemap.queries.noisy_queries import Algorithm, Answer, AsyncTrust, Prices, Question, Trust

T = TypeVar("T")


class Exchange(NamedTuple):
    """A query and its answer."""

    question: Question
    answer: Answer


Transcript = tuple[Exchange, ...]


class PayingAccount(Protocol):
    """Who pays: a data set's page in the ledger."""

    def charge(self, price: Budget) -> None:
        """Record the price for good, or raise `CapExceeded` and record nothing. Called twice where there is a look."""


class Unrecorded:
    """An account of nobody: for data that is not about real people, and for replays of what was paid."""

    def charge(self, price: Budget) -> None:
        """Record nothing."""


@dataclass(frozen=True)
class Result(Generic[T]):
    """What a run ended in: the algorithm's result, and every query and answer behind it."""

    value: T
    budget: Budget
    transcript: Transcript


class Session(Generic[T]):
    """One run of an algorithm, held by whoever passes its queries on.

    `stored` are exchanges of an earlier, interrupted run: they are given to the algorithm again, and
    `TranscriptMismatch` is raised if it asks anything else than it asked then. `look` is the part of the budget that is
    charged first; by default all of it is charged at once.
    """

    def __init__(
        self,
        algorithm: Algorithm[T],
        prices: Prices,
        budget: Budget,
        account: PayingAccount,
        answers: Callable[[type[Question]], bool],
        stored: Sequence[Exchange] = (),
        look: Fraction | None = None,
    ) -> None:
        if not isinstance(getattr(algorithm, "disclosure", None), Disclosure):
            raise InputError(
                f"{type(algorithm).__name__} does not say what it learns, and a statement could not: give it a "
                "`disclosure`, such as `counted()` of hazemap.queries.algorithm_disclosure"
            )
        self.charged = Fraction(1) if look is None else look
        account.charge(budget if look is None else budget.part(look))
        self.budget = budget
        self._account = account
        self._unpaid: Question | None = None
        self.question: Question | None = None
        self.result: Result[T] | None = None
        self._name = type(algorithm).__name__
        self._answers = answers
        self._transcript: list[Exchange] = []
        self._spent: dict[int | None, ParallelComposition] = {}
        self._rounds = algorithm.rounds(prices)
        self._advance(None)
        for number, exchange in enumerate(stored, 1):
            if self.question is None:
                raise TranscriptMismatch(f"the stored transcript goes on after round {number - 1}, its last")
            if digest(self.question) != digest(exchange.question):
                raise TranscriptMismatch(
                    f"in round {number} {self._name} asks another query than the stored transcript answers: "
                    "it was made by another method, other parameters or another version"
                )
            self.receive(exchange.answer)

    @property
    def looked(self) -> bool:
        """Whether the look is over: nothing more can be asked, or published, before the rest is paid."""
        return self.charged < 1 and self.question is None

    @property
    def following(self) -> Question | None:
        """The query that the rest would pay: it follows from the answers so far, so whoever sees it learns no more."""
        return self._unpaid

    def go_on(self) -> None:
        """Pay the rest, and then show the query that follows the look."""
        if not self.looked:
            raise TranscriptMismatch("the rest of a run is paid once, after its look")
        self._account.charge(self.budget.part(1 - self.charged))
        self.charged = Fraction(1)
        question, self._unpaid = self._unpaid, None
        if question is not None:
            self._show(question)

    @property
    def price(self) -> Budget:
        """What the open query may spend."""
        return self.budget.part(self._open.share)

    @property
    def transcript(self) -> Transcript:
        """Every query answered so far."""
        return tuple(self._transcript)

    @property
    def _open(self) -> Question:
        if self.question is None:
            raise TranscriptMismatch("an answer arrived, but no query is open")
        return self.question

    def receive(self, answer: Answer) -> None:
        """Take the answer to the open query and move on to the next one, or to the result."""
        question = self._open
        wanted = len(answer.sums) if question.size is None else question.size
        if answer.sums.shape != (wanted,) or answer.stddev.shape not in ((1,), (wanted,)):
            raise TranscriptMismatch(f"the query asks for {wanted} sums; the answer has {answer.sums.shape}")
        self._transcript.append(Exchange(question, answer))
        self._advance(answer)

    def _advance(self, answer: Answer | None) -> None:
        self.question = None
        try:
            question = next(self._rounds) if answer is None else self._rounds.send(answer)
        except StopIteration as end:
            self.result = Result(end.value, self.budget, self.transcript)
            return
        if not self._answers(type(question)):
            raise Unanswerable(
                f"{self._name} asks for a {type(question).__name__}, which this trust model cannot answer"
                + ("; only a curator can, who sees all rows" if question.only_a_curator else "")
            )
        self._show(question)

    def _show(self, question: Question) -> None:
        """Have a query seen if what is charged covers it; else it waits for the rest."""
        if self._spend(question):  # before anyone can see it
            self.question = question
        else:
            self._unpaid = question

    def _spend(self, question: Question) -> bool:
        """Everybody in its cells pays for a question to all; only its members for one to a cohort.

        Nobody pays for a question about other places or to other people (parallel composition). False, and nothing is
        spent, where the rest of the budget has to be charged first.
        """
        own = self._spent.setdefault(question.cohort, ParallelComposition())
        others = [paid for cohort, paid in self._spent.items() if (cohort is None) != (question.cohort is None)]
        spent = own.most(question.where) + max((paid.most(question.where) for paid in others), default=Fraction(0))
        if spent + question.share > 1:
            raise BudgetExceeded(
                f"{self._name} asks for {float(question.share):.6g} of the run's budget, "
                f"of which {float(1 - spent):.6g} is left"
            )
        if spent + question.share > self.charged:
            return False
        own.pay(question.share, question.where)
        return True


def run(algorithm: Algorithm[T], trust: Trust, budget: Budget, account: PayingAccount) -> Result[T]:
    """Ask until the algorithm is done."""
    session = Session(algorithm, trust.prices(budget), budget, account, trust.answers)
    while session.question:
        session.receive(trust.answer(session.question, session.price))
    return _done(session)


async def run_async(algorithm: Algorithm[T], trust: AsyncTrust, budget: Budget, account: PayingAccount) -> Result[T]:
    """`run`, over a network."""
    session = Session(algorithm, trust.prices(budget), budget, account, trust.answers)
    while session.question:
        session.receive(await trust.answer(session.question, session.price))
    return _done(session)


def replay(algorithm: Algorithm[T], prices: Prices, budget: Budget, transcript: Transcript) -> Result[T]:
    """The same result from a stored transcript, or `TranscriptMismatch`. Nothing is asked and nothing paid."""
    session = Session(algorithm, prices, budget, Unrecorded(), lambda _: True, transcript)
    if session.result is None:
        raise TranscriptMismatch("the stored transcript ends before the method does")
    return session.result


def _done(session: Session[T]) -> Result[T]:
    if session.result is None:  # `question` is None only once there is a result
        raise TranscriptMismatch("the run ended without a result")
    return session.result
