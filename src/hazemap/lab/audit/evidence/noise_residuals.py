"""The noise itself: answers less what the auditor knows of its own tables, and tests of what noise must not do.

The exact sums are worked out from the rows as the auditor wrote them, person by person (`encoders.total`), and never
from a file; so a residual is noise if the program read, bounded and counted as it says, and something else if not.
Noise that comes back, mirrors itself or is shifted by a person shows in the residuals of many runs.

For the sensitivity, one release with a thousand people who all bring more than is allowed is compared with one without
them: the difference, divided by a thousand, is what one person moves, with a thousandth of the noise in a total and a
thirtieth in single numbers. The rule says what a person may move. A person who moves numbers by s loses s times what a
step of one gives away; with several questions, the average of the losses is what somebody loses at least.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.codec import digest
from hazemap.encoders import total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.lab.audit.findings import Claim, LawTest, LossTest, Test, at_least, at_most
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query

LARGEST_LAGS = 8
"""Questions on which one person moves numbers by more different amounts are left to the audit of single questions."""


@dataclass(frozen=True, eq=False)
class Residual:
    """One answer: noise, how far the person who is there or not moves each number, and where the sum is not 0.

    `law` names numbers that are told to have the same noise: what is asked and the stated standard deviation.
    """

    law: str
    noise: Ints
    shift: Ints
    occupied: NDArray[np.bool_]
    share: float
    sensitivity: int
    round: int


class Summed(NamedTuple):
    """A question that is answered by sums, and what is summed; `number` counts all questions of its run."""

    number: int
    question: Query | Measure
    asked: Any
    answer: Answer

    @property
    def law(self) -> str:
        """What is summed and the stated noise: such answers are told to have noise of one law."""
        return f"{type(self.asked).__name__} ± {float(self.answer.stddev[0]):.6g}"


def summed(seen: Observation) -> Iterator[Summed]:
    """The answers of a run that are sums, in order."""
    for number, (question, answer) in enumerate(seen.transcript):
        if not isinstance(question, Choice | Growth):
            asked = question.encoder if isinstance(question, Query) else question.scores
            yield Summed(number, question, asked, answer)


class Sums:
    """The exact answers of two neighbours, each worked out once."""

    def __init__(self, there: MemoryTable, gone: MemoryTable) -> None:
        self._tables = (there, gone)
        self._known: dict[str, tuple[Ints, Ints] | None] = {}

    def of(self, question: Query | Measure) -> tuple[Ints, Ints] | None:
        """Both answers without noise, where they can be worked out."""
        key = digest(question)
        if key not in self._known:
            self._known[key] = self._worked_out(question)
        return self._known[key]

    def known(self, seen: Observation) -> Iterator[tuple[Summed, tuple[Ints, Ints]]]:
        """The answers of a run whose exact sums are known, with these."""
        for each in summed(seen):
            exact = self.of(each.question)
            if exact is not None and len(exact[0]) == len(each.answer.sums):
                yield each, exact

    def _worked_out(self, question: Query | Measure) -> tuple[Ints, Ints] | None:
        try:
            if isinstance(question, Query):
                there, gone = (total(question.encoder, table) for table in self._tables)
            else:
                there, gone = (np.asarray(question.scores.total(table)) for table in self._tables)
        except (HazemapError, AttributeError, TypeError, KeyError):
            return None
        return there, gone


def residuals(seen: Observation, sums: Sums, there: bool, mixed: bool = False) -> Iterator[Residual]:
    """Every answer of a run that can be judged, in order.

    Where noise is `mixed`, because chance decides how many people bring it, all noise of one encoder is of one law:
    what moves none of its parts by more than a factor moves the mixture by no more.
    """
    for each, known in sums.known(seen):
        exact, shift = known[0 if there else 1], known[0] - known[1]
        if len(np.unique(np.abs(shift))) > LARGEST_LAGS:
            continue
        yield Residual(
            type(each.asked).__name__ if mixed else each.law,
            each.answer.sums - exact,
            shift,
            exact != 0,
            float(each.question.share),
            int(each.asked.sensitivity.l1),
            each.number,
        )


Run = list[Residual]

LONGEST = 1 << 14
"""Numbers of an answer that are compared with each other."""

SHORTEST = 48
"""Pairs below which nothing is said."""

ANSWERS = 24
"""Runs whose answers are compared, at most."""

RESIDUES = (2, 3, 4, 5, 6, 7, 8, 24)
BLOCKS = 16


def tests(runs: list[Run], about: str) -> Iterator[Test]:
    """All tests of some runs on one setting: how many there are does not depend on what was found."""
    count = len(runs)
    signs = [[np.sign(each.noise[:LONGEST]).astype(np.float64) for each in run] for run in runs]
    sizes = [[_ranks(np.abs(each.noise[:LONGEST])) for each in run] for run in runs]
    for name, parts, reach in (("signs", signs, 1.0), ("sizes", sizes, 0.5)):
        pvalue = _repeated(parts, reach)
        yield LawTest("noise repeats itself nowhere", f"{about}: {name}, at all distances and mirrored", pvalue, count)
    yield LawTest("noise falls on every number", about, _exact(runs), count, "a number is without noise too often")
    yield LawTest("noise is as wide everywhere", about, _uneven(runs), count)


def _ranks(numbers: Ints) -> Floats:
    """From −½ to ½, with mean 0 and ties in the middle."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(numbers) / (len(numbers) + 1) - 0.5) if len(numbers) else np.empty(0)


def _repeated(parts: list[list[Floats]], reach: float) -> float:
    """The p-value of the strongest likeness of answers with themselves, with the next round, and with the next run.

    Each pair is looked at by itself, and all pairs of a kind together. `reach` bounds each number. O(n log n) a pair.
    """
    found: list[tuple[Floats, Floats]] = []
    together: dict[tuple[str, int, int, int, bool], tuple[Floats, Floats]] = {}
    for kind, number, one, other in _pairs(parts):
        for turned in (False, True):
            found.append(_products(one, other, turned))
            place = kind, number, len(one), len(other), turned
            known = together.get(place, (np.zeros(1), np.zeros(1)))
            together[place] = known[0] + found[-1][0], known[1] + found[-1][1]
    worst, looked = 0.0, 0
    for sums, many in (*found, *together.values()):
        enough = many >= SHORTEST
        if enough.any():
            # 1 is taken off for ranks, whose mean is known
            score = np.maximum(np.abs(sums[enough]) - reach**2, 0) ** 2 / (2 * reach**4 * many[enough])
            worst, looked = max(worst, float(score.max())), looked + int(enough.sum())
    return min(1.0, 2 * looked * float(np.exp(-worst))) if looked else 1.0


def _pairs(parts: list[list[Floats]]) -> Iterator[tuple[str, int, Floats, Floats]]:
    """Answers that are compared: of what kind a pair is, the round, and both."""
    for run in parts[:ANSWERS]:
        for number, each in enumerate(run):
            yield "itself", number, each, each
        for number, (one, other) in enumerate(pairwise(run)):
            yield "the next round", number, one, other
    for run, later in pairwise(parts[:ANSWERS]):
        for number, (one, other) in enumerate(zip(run, later, strict=False)):
            yield "the next run", number, one, other


def _products(one: Floats, other: Floats, turned: bool) -> tuple[Floats, Floats]:
    """Σ of the products of pairs at each distance, or at each pair of mirrored places; and how many pairs are not 0."""
    same, size = one is other, len(one) + len(other)
    if not len(one) or not len(other):
        return np.zeros(1), np.zeros(1)
    second = other if turned else other[::-1]
    length = 1 << (size - 1).bit_length()

    def convolved(first: Floats, last: Floats) -> Floats:
        return np.asarray(np.fft.irfft(np.fft.rfft(first, length) * np.fft.rfft(last, length), length)[: size - 1])

    sums, many = convolved(one, second), np.rint(convolved((one != 0) * 1.0, (second != 0) * 1.0))
    if same and not turned:
        return sums[len(one) :], many[len(one) :]  # a distance of 1 and more
    if same:  # each pair is there twice, and the middle of some mirrors once
        middle, doubled = np.zeros(size - 1), np.zeros(size - 1)
        middle[::2], doubled[::2] = one**2, one != 0
        return (sums - middle) / 2, (many - doubled) / 2
    return sums, many


def _exact(runs: list[Run]) -> float:
    """How likely any number is to be without noise in so many runs: by how often noise of its law is 0 elsewhere."""
    from scipy.stats import binom

    worst, looked = 1.0, 0
    for zero, often in _by_number(runs, lambda noise: noise == 0):
        part = min(1.0, 1.1 * float(zero.sum() / max(often * len(zero), 1)) + 1e-6)
        worst, looked = min(worst, float(binom.sf(zero.max() - 1, often, part))), looked + len(zero)
    return min(1.0, worst * max(looked, 1))


def _by_number(runs: list[Run], what: Callable[[Ints], Bools]) -> Iterator[tuple[Ints, int]]:
    """Of each answer of every run, where all have as many numbers: how often each of them is such."""
    for number in range(min(map(len, runs), default=0)):
        answers = [run[number] for run in runs]
        if len({(each.law, len(each.noise)) for each in answers}) == 1 and len(answers[0].noise) >= SHORTEST:
            yield np.sum([what(each.noise) for each in answers], axis=0), len(runs)


def _uneven(runs: list[Run]) -> float:
    """The p-value of noise that is wider or narrower in parts of an answer, or at every nth number."""
    from scipy.stats import norm

    scores, numbers = dict[str, float](), dict[str, float]()
    for each in (each for run in runs for each in run):
        size = len(each.noise)
        if size < 2 * SHORTEST:
            continue
        ranks, at = _ranks(np.abs(each.noise)), np.arange(size)
        masks = {f"block {block}": at * BLOCKS // size == block for block in range(BLOCKS)}
        masks |= {f"{rest} of {by}": at % by == rest for by in RESIDUES for rest in range(by)}
        masks |= {"somebody": each.occupied, "nobody": ~each.occupied}
        for name, mask in masks.items():
            chosen = int(mask.sum())
            if 0 < chosen < size:  # of ranks drawn without putting back, exactly
                scores[name] = scores.get(name, 0.0) + float(ranks[mask].sum())
                spread = float(ranks.var(ddof=1)) * chosen * (size - chosen) / size
                numbers[name] = numbers.get(name, 0.0) + spread
    found = [2 * float(norm.sf(abs(scores[name]) / numbers[name] ** 0.5)) for name in scores if numbers[name] > 8]
    return min(1.0, min(found, default=1.0) * max(len(scores), 1))


LEAST = 20
"""Of fewer numbers nothing is learned."""

_PARTS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
_LAST = (1, 3, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The last so many numbers on a side: thresholds that begin there, and that begin where none of them is left."""

_FEWEST = 12
"""A value that occurred less often is of no set."""

_TIMES = (1.05, 1.5, 2.0, 4.0, 16.0)
"""Sets of the values that occurred so many times more often than moved."""


@dataclass(frozen=True)
class TailEvent:
    """A tail from `least` on of noise times `sign`, or the set `values` of it; and what it tells of a moved number."""

    lag: int
    sign: int
    least: int = 0
    values: tuple[int, ...] = ()
    loss: float = 0.0


def step(noise: Ints, lag: int, claim: Claim, alpha: float) -> TailEvent | None:
    """The event that tells most of a number that is moved by `lag`, if any does: O(n log n)."""
    if len(noise) < LEAST:
        return None
    best: TailEvent | None = None
    for sign in (1, -1):
        ordered = np.sort(sign * noise)
        for each in _tails(ordered, lag, sign):
            best = _better(best, each, _of_tail(ordered, each, claim, alpha))
        for each in _sets(sign * noise[0::2], lag, sign):
            best = _better(best, each, _of_set(sign * noise[1::2], each, claim, alpha))
    return best


def loss(noise: Ints, event: TailEvent, claim: Claim, alpha: float) -> float:
    """What the event proves of other numbers of the law, wrong with probability alpha: O(n log n)."""
    if not len(noise):
        return 0.0
    turned = event.sign * noise
    return _of_set(turned, event, claim, alpha) if event.values else _of_tail(np.sort(turned), event, claim, alpha)


def _better(best: TailEvent | None, event: TailEvent, value: float) -> TailEvent | None:
    if best is not None and value <= best.loss:
        return best
    return TailEvent(event.lag, event.sign, event.least, event.values, value)


def _tails(ordered: Ints, lag: int, sign: int) -> Iterator[TailEvent]:
    """Of quantiles, of the last numbers, and such that hardly any number is left when it is moved."""
    found = {0, 1 - lag, *np.rint(np.quantile(ordered, _PARTS)).astype(np.int64).tolist()}
    for last in _LAST:
        if last <= len(ordered):
            found |= {int(ordered[-last]), int(ordered[-last]) - lag + 1, int(ordered[-last]) + 1 - lag // 2}
    return (TailEvent(lag, sign, least) for least in sorted(found))


def _of_tail(ordered: Ints, event: TailEvent, claim: Claim, alpha: float) -> float:
    """How often noise is in the tail, and how often it still is when it is moved back.

    What is in the tail when moved was in it before: of those in it, a binomial number. For ε one bound will do.
    """
    here, there = (len(ordered) - int(np.searchsorted(ordered, at)) for at in (event.least, event.least + event.lag))
    if not here:
        return 0.0
    if claim.measure == "ε":
        return -log(at_most(there, here, alpha))
    return claim.loss(at_least(here, len(ordered), alpha / 2), at_most(there, len(ordered), alpha / 2))


def _sets(noise: Ints, lag: int, sign: int) -> Iterator[TailEvent]:
    """Values by how much more often they occur than moved ones: all values of a ratio or more, and the best alone."""
    values, often = np.unique(noise, return_counts=True)
    where = np.searchsorted(values, values + lag)
    there = np.where(values[np.minimum(where, len(values) - 1)] == values + lag, 1, 0)
    moved = np.where(there == 1, often[np.minimum(where, len(values) - 1)], 0)
    known = often >= _FEWEST
    if not known.any():
        return
    ratio = np.where(known, often / (moved + 1.0), 0.0)
    lower = np.where(known, ratio * np.exp(-3 * np.sqrt(1 / np.maximum(often, 1) + 1 / (moved + 1.0))), 0.0)
    yield TailEvent(lag, sign, values=(int(values[int(lower.argmax())]),))
    for times in _TIMES:
        chosen = values[ratio >= times]
        if len(chosen):
            yield TailEvent(lag, sign, values=tuple(chosen.tolist()))


def _of_set(noise: Ints, event: TailEvent, claim: Claim, alpha: float) -> float:
    """How often noise is in the set, and how often in the set moved up."""
    chosen: NDArray[np.int64] = np.array(event.values, dtype=np.int64)
    here, there = (int(np.isin(noise, each).sum()) for each in (chosen, chosen + event.lag))
    return claim.lower((here, len(noise)), (there, len(noise)), alpha) if here else 0.0


ENOUGH = 1_000
"""Of so many numbers the variance is known: it is taken half as large again, six standard errors for Laplace noise."""


@dataclass
class _Law:
    """Numbers told to have the same noise: the noise where nobody was added, and how far they moved where people were.

    `moved` is the total of all moved numbers, over all runs, less what it is without these people; `allowed` is what
    the rule lets it be; `numbers` is how many noisy numbers that total has.
    """

    lag: int
    noise: tuple[list[Ints], list[Ints]] = field(default_factory=lambda: ([], []))
    moved: float = 0.0
    allowed: float = 0.0
    numbers: int = 0

    def halves(self) -> tuple[Ints, Ints]:
        """The noise of every second answer, and that of the others."""
        one, other = (np.concatenate(half) if half else np.empty(0, dtype=np.int64) for half in self.noise)
        return one, other

    def width(self, alpha: float) -> float:
        """A standard deviation that the noise of one number passes with probability alpha at most."""
        known = np.concatenate(self.halves()).astype(np.float64)
        if not len(known):
            return inf
        # n numbers of Laplace's law all lie within a part x of its scale with probability x^n at most
        largest = sqrt(2) * (float(np.abs(known).max()) + 1) * exp(-log(alpha) / len(known))
        return min(largest, sqrt(1.5 * float((known**2).mean())) + 0.1) if len(known) >= ENOUGH else largest


@dataclass
class ObservedMovement:
    """What was seen of `people` more people, in runs with them and without."""

    claim: Claim
    people: int
    sums: Sums
    runs: int = 0
    _laws: dict[str, _Law] = field(default_factory=dict)

    def add(self, seen: Observation, there: bool) -> None:
        """One run: O(numbers)."""
        if not seen.transcript:
            return
        self.runs += there
        for each, known in self.sums.known(seen):
            law = self._laws.setdefault(each.law, _Law(max(1, int(each.asked.sensitivity.l1))))
            noise, shift = each.answer.sums - known[1], known[0] - known[1]
            if not there:
                law.noise[len(law.noise[0]) > len(law.noise[1])].append(noise)
                continue
            signs = np.ones(len(shift)) if (shift >= 0).all() else np.sign(shift)
            law.moved += float((signs * noise).sum())
            law.allowed += float(np.abs(shift).sum())
            law.numbers += int(np.count_nonzero(signs))

    def lower(self, alpha: float) -> float:
        """The loss of the average person in the average run, wrong with probability alpha."""
        each = alpha / max(3 * len(self._laws), 1)
        return sum(self._lost(law, each) for law in self._laws.values())

    def _lost(self, law: _Law, alpha: float) -> float:
        """In one law: how far they move, at least, and what that gives away; each wrong with probability alpha."""
        least = max(0.0, law.moved - _deviation(law.numbers, law.width(alpha), log(1 / alpha))) / self._shared
        taught, judged = law.halves()
        event = step(taught, law.lag, self.claim, min(alpha, 1e-3))
        if event is None or not least:
            return 0.0
        parts = least / law.lag
        return loss(judged, event, self.claim, alpha) * (parts if self.claim.measure == "ε" else parts**2)

    @property
    def _shared(self) -> int:
        return max(self.runs * self.people, 1)

    def farther(self) -> float:
        """How likely it is at most that they seem to move numbers farther than the rule allows, if they do not."""
        worst = 1.0
        for law in self._laws.values():
            # errors in the width and in the total: the worse of both, twice
            low, high = 1e-15, 1.0
            for _ in range(50):
                middle = sqrt(low * high)
                beyond = law.moved - law.allowed > _deviation(law.numbers, law.width(middle), log(1 / middle))
                low, high = (low, middle) if beyond else (middle, high)
            worst = min(worst, 2 * high)
        return min(1.0, worst * max(len(self._laws), 1))

    def tests(self, about: str, count: int) -> Iterator[Test]:
        """Both."""
        moved = (
            f"{law.moved / self._shared:.3f} where the rule allows {law.allowed / self._shared:.3f}"
            for law in self._laws.values()
        )
        note = f"moved by a person: {'; '.join(list(moved)[:4])}"
        yield LossTest("how far people move numbers", about, self.claim, self.lower, count, note)
        yield LawTest("nobody moves numbers farther than the rule allows", about, self.farther(), count, note)


def _deviation(numbers: int, width: float, doubt: float) -> float:
    """What the total of so many independent noises passes with probability e^−doubt at most (Bernstein).

    For Laplace's law of scale b: log E e^(λx) = −log(1 − λ²b²) ≤ λ²b²/(1 − λb), and b is below the standard deviation.
    """
    return sqrt(2 * doubt * numbers) * width + width * doubt if numbers else 0.0
