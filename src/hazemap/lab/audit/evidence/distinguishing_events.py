"""Telling two neighbours apart by anything that is published: events chosen on half of the runs, judged on the rest.

Nothing is taken for granted here: no law of noise, no independence inside a run. Runs are independent, so how often
an event happens among the other half is binomial, and Clopper and Pearson's bounds hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from hazemap.codec import digest
from hazemap.lab.audit.findings import Claim
from hazemap.lab.audit.observed_output import Observation
from hazemap.queries.noisy_queries import Choice, Growth

Facts = dict[str, float | str]
"""What is told of a run: numbers, and texts that are equal or not."""

MOST_PLACES = 4096
"""Numbers of one answer or map that are looked at one by one."""


def facts(seen: Observation, places: Sequence[int] = ()) -> Facts:
    """Everything about a run that an event may be made of. `places` are positions in answers that are looked at."""
    found: Facts = {"ends in": seen.error, "refused": float(bool(seen.error)), "size of the file": float(seen.size)}
    found |= {f"says {name}": _number_or_text(text) for name, text in seen.words.items()}
    found["cells"] = float(len(seen.names))
    found["rounds"] = float(len(seen.transcript))
    if seen.names:
        found["the cells"] = str(hash(seen.names))
    for name, column in seen.columns.items():
        if len(column):
            found |= _summary(name, column)
    for number, (question, answer) in enumerate(seen.transcript):
        name = f"answer {number}"
        found[f"{name} asks"] = digest(question)
        found[f"{name} sure"] = float(answer.stddev.sum())
        sums = answer.sums.astype(np.float64)
        found |= _summary(name, sums)
        if isinstance(question, Choice | Growth) or len(sums) <= len(places):
            found |= {f"{name} at {at}": float(each) for at, each in enumerate(sums[:16])}
        found |= {f"{name} at {at}": float(sums[at]) for at in places if at < len(sums)}
    return found


def _number_or_text(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text


def _summary(name: str, numbers: np.ndarray) -> Facts:
    first, last = float(numbers[0]), float(numbers[-1])
    return {
        f"{name}: how many": float(len(numbers)),
        f"{name}: total": float(numbers.sum()),
        f"{name}: largest": float(numbers.max()),
        f"{name}: smallest": float(numbers.min()),
        f"{name}: zeros": float((numbers == 0).sum()),
        f"{name}: odd": float((np.abs(numbers) % 2 == 1).sum()),
        f"{name}: squares": float((numbers**2).sum()),
        f"{name}: first": first,
        f"{name}: last": last,
    }


ABSENT = "(absent)"
"""Stands for a fact that a run does not have."""


@dataclass(frozen=True)
class Event:
    """A fact that is at least (or at most) a number, or that is a text."""

    fact: str
    value: float | str
    above: bool = True

    def happens(self, run: Facts) -> bool:
        """Whether it did."""
        found = run.get(self.fact, ABSENT)
        if isinstance(self.value, str):
            return (found == self.value) == self.above
        if isinstance(found, str):
            return False
        return found >= self.value if self.above else found < self.value

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return f"{self.fact} {'is' if self.above else 'is not'} {self.value[:60]!r}"
        return f"{self.fact} {'≥' if self.above else '<'} {self.value:.6g}"


@dataclass(frozen=True)
class Distinguished:
    """An event, and how often it happened on either side among runs that had no part in choosing it."""

    claim: Claim
    event: Event | None
    here: tuple[int, int]
    there: tuple[int, int]

    def lower(self, alpha: float) -> float:
        """The loss that this proves."""
        return self.claim.lower(self.here, self.there, alpha) if self.event else 0.0

    def __str__(self) -> str:
        return f"{self.event}: {self.here[0]} of {self.here[1]} runs against {self.there[0]} of {self.there[1]}"


def distinguished(claim: Claim, there: Sequence[Facts], gone: Sequence[Facts], alpha: float = 1e-3) -> Distinguished:
    """The event that tells best, in either direction, and what it is worth: O(facts · runs · thresholds)."""
    sides = (list(there), list(gone))
    chosen, judged = [side[0::2] for side in sides], [side[1::2] for side in sides]
    best, most, turned = None, 0.0, False
    for event in _events(chosen[0], chosen[1]):
        counts = [sum(map(event.happens, side)) for side in chosen]
        for swap in (False, True):
            a, b = (1, 0) if swap else (0, 1)
            bound = claim.lower((counts[a], len(chosen[a])), (counts[b], len(chosen[b])), alpha)
            if bound > most:
                best, most, turned = event, bound, swap
    a, b = (1, 0) if turned else (0, 1)
    if best is None:
        return Distinguished(claim, None, (0, len(judged[a])), (0, len(judged[b])))
    times = [sum(map(best.happens, side)) for side in judged]
    return Distinguished(claim, best, (times[a], len(judged[a])), (times[b], len(judged[b])))


def certain(there: Sequence[Facts], gone: Sequence[Facts]) -> tuple[Event, ...]:
    """Every fact that holds in all runs on one side and in none on the other.

    Some do by chance, or because time goes by while runs are made: so no one of them stands for all.
    """
    found = []
    for name in dict.fromkeys(name for run in (*there, *gone) for name in run):
        one, other = ([run.get(name, ABSENT) for run in side] for side in (there, gone))
        if any(isinstance(value, str) for value in (*one, *other)):
            if len(set(one)) == 1 and one[0] not in other:
                found.append(Event(name, str(one[0])))
            elif len(set(other)) == 1 and other[0] not in one:
                found.append(Event(name, str(other[0]), above=False))
            continue
        a, b = np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)
        if a.min() > b.max():
            found.append(Event(name, float(a.min() + b.max()) / 2))
        elif b.min() > a.max():
            found.append(Event(name, float(b.min() + a.max()) / 2, above=False))
    return tuple(found)


def confirmed(
    claim: Claim, events: Sequence[Event], there: Sequence[Facts], gone: Sequence[Facts]
) -> tuple[float, Event | None]:
    """The p-value of events, chosen on other runs, one of which happens in all n runs there and in none of m: else 1.

    Under ε an event of probability p on one table has p·e^−ε at least on the other, so that has probability
    max_p pⁿ(1 − p·e^−ε)^m at most, about (e^ε/4)ⁿ; and so many times as much for any of so many events. It says much
    at a small ε, and little at a large one.
    """
    n, m = len(there), len(gone)
    if claim.measure != "ε" or claim.delta or not n or not m:
        return 1.0, None
    always = (each for each in events if all(map(each.happens, there)) and not any(map(each.happens, gone)))
    event = next(always, None)
    if event is None:
        return 1.0, None
    p = min(1.0, n / (n + m) * float(np.exp(claim.value)))
    return min(1.0, len(events) * float(p**n * (1 - p * np.exp(-claim.value)) ** m)), event


def _events(there: Sequence[Facts], gone: Sequence[Facts]) -> Iterator[Event]:
    names = dict.fromkeys(name for run in (*there, *gone) for name in run)
    for name in names:
        values = [run[name] for run in (*there, *gone) if name in run]
        if len(values) < len(there) + len(gone):
            yield Event(name, ABSENT)
        if any(isinstance(value, str) for value in values):
            for text in list(dict.fromkeys(map(str, values)))[:64]:
                yield Event(name, text)
                yield Event(name, text, above=False)
            continue
        numbers = np.unique(np.array(values, dtype=np.float64))
        if len(numbers) < 2:
            continue
        if len(numbers) > 24:
            numbers = np.unique(np.quantile(numbers, np.linspace(0.02, 0.98, 24)))
        for number in numbers.tolist():
            yield Event(name, number)
            yield Event(name, number, above=False)
