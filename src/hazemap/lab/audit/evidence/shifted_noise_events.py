"""What one number of a law gives away when it is moved: tails at every threshold, and sets of values.

Which event tells most is learned from one half of the residuals and judged on the other, so that no choice among events
has to be paid for. If noise of one law is moved by `lag`, then for every set A the probabilities P(z ∈ A) and
P(z ∈ A − lag) differ by e^ε at most. Tails are such sets from the middle to the last few numbers on either side, which
noise that ends too early betrays; sets of values that are frequent while the same ones moved are rare betray gaps and
atoms.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from hazemap.lab.audit.confidence_bounds import Claim, at_least, at_most
from hazemap.machine_code.arrays import Ints

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
