"""How far one person really moves the published numbers, from many people at once who all bring more than is allowed.

One release with a thousand such people and one without: the difference, divided by a thousand, is what one of them
moves, with a thousandth of the noise in a total and a thirtieth in numbers apart. Nothing is taken from what the
program says of itself: the exact numbers without these people are the auditor's, and so is what the rule allows them.

A person who moves numbers by s loses s times what a step of one gives away. In a run with several questions moves
differ by person; the losses of the average person are the average of the losses, and somebody loses as much as that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt

import numpy as np

from hazemap.lab.audit.confidence_bounds import Claim
from hazemap.lab.audit.evidence.noise_residuals import Sums
from hazemap.lab.audit.evidence.shifted_noise_events import loss, step
from hazemap.lab.audit.findings import LawTest, LossTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Ints

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
