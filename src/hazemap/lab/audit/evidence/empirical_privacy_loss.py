"""The law of the noise, from thousands of numbers a run, and what it gives away of one person.

Noise is independent of the data and of other noise, and numbers told to have the same noise have it: both are tested
beside this (`noise_independence`). So residuals of all runs, rounds and places are samples of a few laws. Whoever knows
all sums but one person's sees, in the numbers that this person moves, either the noise or the noise moved. What they
see of a whole run is put together again from as many residuals as the run has such numbers, thousands of times. How
often an event happens among these is binomial: no slack of single numbers adds up.

ρ has a bound of its own, by the Kullback–Leibler divergence of both laws: ρ-zCDP bounds the divergence of order α by
ρα, and so that of order 1 by ρ. For every function g, KL(P ‖ Q) ≥ E_P g − log E_Q e^g (Donsker and Varadhan 1975).
Nothing is lost if g is the logarithm of the likelihood ratio; here it is a score, times a factor and cut off at both
ends, both learned from other samples. Both means are of bounded numbers, so each has a bound of its own (Maurer and
Pontil 2009, theorem 4).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.lab.audit.evidence.noise_residuals import Residual, TailEvent, loss, step
from hazemap.lab.audit.findings import Claim, at_least, at_most
from hazemap.machine_code.arrays import Floats, Ints

MOST = 1 << 21
"""Numbers of one law that are looked at."""

LEAST = 20
"""Fewer runs put together are no sample."""

_CLASSES = (2, 4, 8, 16, 64, 1024)
_PARTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)

_FACTORS = (0.5, 0.8, 1.0, 1.25, 2.0)
_ENDS = (0.5, 1.0, 2.0, 3.0, 4.0)

Profile = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Of each answer of a run, by its law: by how much the person moves numbers, and how many of them."""

Counted = tuple[int, int, int]
"""How often an event happens with the person and without, and among how many."""


@dataclass(frozen=True)
class Tilt:
    """g: a score less `middle`, times `factor`, cut off at ±`end`; and the divergence that it proved."""

    middle: float
    factor: float
    end: float
    proved: float = 0.0

    def of(self, scores: Floats) -> Floats:
        """G of each."""
        return np.clip((scores - self.middle) * self.factor, -self.end, self.end)


@dataclass(frozen=True)
class _Event:
    """A score of the numbers of some laws is `least` or more; or one number's remainder is of a kind."""

    profile: Profile
    widths: tuple[float, ...]
    least: float
    sign: int = 1
    divisor: int = 0
    remainders: tuple[bool, ...] = ()


@dataclass
class Laws:
    """Residuals by law, in two halves by the run they come from: one chooses an event, the other counts it."""

    claim: Claim
    _samples: dict[str, tuple[list[Ints], list[Ints]]] = field(default_factory=dict)
    _profiles: dict[Profile, int] = field(default_factory=dict)
    runs: int = 0

    def add(self, found: Iterable[Residual]) -> None:
        """One run."""
        profile = []
        for each in found:
            self._samples.setdefault(each.law, ([], []))[self.runs % 2].append(each.noise)
            moved, times = np.unique(np.abs(each.shift[each.shift != 0]), return_counts=True)
            if len(moved):
                profile.append((each.law, tuple(zip(moved.tolist(), times.tolist(), strict=True))))
        key = tuple(profile)
        self._profiles[key] = self._profiles.get(key, 0) + 1
        self.runs += 1

    @property
    def numbers(self) -> int:
        """How many residuals there are of all laws."""
        return sum(len(part) for halves in self._samples.values() for half in halves for part in half)

    def lower(self, alpha: float) -> float:
        """What a run gives away of the person: a lower bound on the loss, wrong with probability alpha.

        Either of runs put together, or number by number: then the losses of numbers add. Which of the two, and which
        events, is chosen on one half.
        """
        taught, judged = ({law: _joined(half[side]) for law, half in self._samples.items()} for side in (0, 1))
        best, most, sure = None, 0.0, min(alpha, 1e-3)
        for event, (here, there, size) in self._events(taught):
            bound = self.claim.lower((here, size), (there, size), sure)
            if bound > most:
                best, most = event, bound
        widths, tilt = self._tilted(taught, sure)
        if tilt.proved > most:
            best, most = None, tilt.proved
        steps = self._steps(taught, sure)
        profile = max(self._profiles, key=lambda each: _added(each, steps), default=())
        if _added(profile, steps) > most:
            used = {key: each for key, each in steps.items() if key in _pairs(profile)}
            return _added(profile, {
                key: replace(each, loss=loss(judged[key[0]], each, self.claim, alpha / len(used)))
                for key, each in used.items()
            })  # fmt: skip
        if best is None and most > 0:
            return divergence(*_scores(self._usual, widths, judged, self.claim.measure), tilt, alpha)
        if best is None:
            return 0.0
        here, there, size = _counted(best, judged, self.claim.measure)
        return self.claim.loss(at_least(here, size, alpha / 2), at_most(there, size, alpha / 2)) if size else 0.0

    @property
    def _usual(self) -> Profile:
        return max(self._profiles, key=lambda each: self._profiles[each], default=())

    def _tilted(self, noise: dict[str, Ints], alpha: float) -> tuple[tuple[float, ...], Tilt]:
        """The widths of laws and what they tell in ρ of whole runs: nothing where ε is claimed, or of too few."""
        widths = tuple(_width(noise[law]) for law, _ in self._usual)
        here, there = _scores(self._usual, widths, noise, self.claim.measure)
        if self.claim.measure != "ρ" or len(here) < LEAST:
            return widths, Tilt(0.0, 0.0, 1.0)
        return widths, best_tilt(here, there, alpha)

    def _steps(self, noise: dict[str, Ints], alpha: float) -> dict[tuple[str, int], TailEvent]:
        """Of each law and each move the event that tells most of one number."""
        keys = sorted({pair for profile in self._profiles for pair in _pairs(profile)})
        found = {key: step(noise[key[0]], key[1], self.claim, alpha) for key in keys}
        return {key: each for key, each in found.items() if each is not None}

    def _events(self, noise: dict[str, Ints]) -> Iterator[tuple[_Event, Counted]]:
        usual = sorted(self._profiles, key=lambda each: -self._profiles[each])[:4]
        for whole in usual:
            # what gives most away comes first: a law of which few numbers are known leaves few runs to put together
            order = sorted(whole, key=lambda each: -_moved(each[1]) / _width(noise[each[0]]))
            for profile in accumulate(((each,) for each in order), lambda one, other: one + other):
                widths = tuple(_width(noise[law]) for law, _ in profile)
                here, there = _scores(profile, widths, noise, self.claim.measure)
                if len(here) < LEAST:
                    break
                for least in np.unique(np.quantile(np.concatenate([here, there]), _PARTS)).tolist():
                    for sign in (1, -1):
                        counts = int((sign * here >= sign * least).sum()), int((sign * there >= sign * least).sum())
                        yield _Event(profile, widths, least, sign), (*counts, len(here))
            yield from self._gaps(whole, noise)

    def _gaps(self, whole: Profile, noise: dict[str, Ints]) -> Iterator[tuple[_Event, Counted]]:
        """Of single numbers, far from 0 or anywhere: remainders that are more frequent than when moved.

        Which remainders these are is learned from one half of the numbers, and what that is worth from the other.
        """
        for law, lag in sorted({(law, lag) for law, moved in whole for lag, _ in moved}):
            known, other = noise[law][0::2], {law: noise[law][1::2]}
            if len(known) < LEAST:
                continue
            for far in (0.0, float(np.quantile(np.abs(known), 0.9))):
                z, moved = known[np.abs(known) >= far], (known - lag)[np.abs(known - lag) >= far]
                for divisor in _CLASSES:
                    if len(z) < LEAST * divisor:
                        continue
                    often, seldom = (np.bincount(each % divisor, minlength=divisor) for each in (z, moved))
                    event = _Event(((law, ((lag, 1),)),), (1.0,), far, 1, divisor, tuple((often > 2 * seldom).tolist()))
                    yield event, _counted(event, other, self.claim.measure)


def _pairs(profile: Profile) -> set[tuple[str, int]]:
    return {(law, lag) for law, moved in profile for lag, _ in moved}


def _added(profile: Profile, steps: dict[tuple[str, int], TailEvent]) -> float:
    """Losses of all numbers of a run."""
    each = ((law, lag, times) for law, moved in profile for lag, times in moved)
    return sum(times * steps[law, lag].loss for law, lag, times in each if (law, lag) in steps)


def _moved(moved: tuple[tuple[int, int], ...]) -> int:
    return sum(lag * times for lag, times in moved)


def _width(noise: Ints) -> float:
    return max(float(np.abs(noise).mean()), 1e-9) if len(noise) else 1.0


def _counted(event: _Event, noise: dict[str, Ints], measure: str) -> Counted:
    """How often it happens in these residuals."""
    if event.divisor:
        [(law, ((lag, _),))] = event.profile
        z, kinds = noise[law], np.array(event.remainders)
        here, there = (int((kinds[x % event.divisor] & (np.abs(x) >= event.least)).sum()) for x in (z, z - lag))
        return here, there, len(z)
    scores = _scores(event.profile, event.widths, noise, measure)
    here, there = (int((event.sign * score >= event.sign * event.least).sum()) for score in scores)
    return here, there, len(scores[0])


def _scores(
    profile: Profile, widths: tuple[float, ...], noise: dict[str, Ints], measure: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Runs put together from disjoint residuals, with the person and without: how much each looks like the first.

    The score is the logarithm of the likelihood ratio of Laplace (or normal) noise of these widths; it need not be
    right to give a bound, only to give a good one.
    """
    needed: dict[str, int] = {}
    for law, moved in profile:
        needed[law] = needed.get(law, 0) + sum(times for _, times in moved)
    size = min((len(noise[law]) // times for law, times in needed.items()), default=0)
    if not size:
        return np.empty(0), np.empty(0)
    blocks = {law: noise[law][: size * times].reshape(times, size) for law, times in needed.items()}
    used = dict.fromkeys(needed, 0)
    here, there = np.zeros(size), np.zeros(size)
    for (law, moved), width in zip(profile, widths, strict=True):
        for lag, times in moved:
            z = blocks[law][used[law] : used[law] + times]
            used[law] += times
            here += _likeness(z, lag, width, measure)
            there += _likeness(z - lag, lag, width, measure)
    return here, there


def _likeness(seen: Ints, lag: int, width: float, measure: str) -> NDArray[np.float64]:
    """Of each run put together: numbers moved up by `lag` against numbers not moved."""
    if measure == "ε":
        return np.asarray((np.abs(seen + lag) - np.abs(seen)).sum(axis=0) / width)
    return np.asarray((seen * float(lag)).sum(axis=0) / width**2)


def _joined(parts: list[Ints]) -> Ints:
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return whole if len(whole) <= MOST else whole[:: -(-len(whole) // MOST)]


def best_tilt(here: Floats, there: Floats, alpha: float) -> Tilt:
    """The function that proves most of these samples."""
    apart, spread = float(here.mean() - there.mean()), float(np.var(there)) + 1e-12
    middle, slope = float(here.mean() + there.mean()) / 2, apart / spread
    tried = (Tilt(middle, slope * factor, end) for factor in _FACTORS for end in _ENDS)
    judged = (Tilt(each.middle, each.factor, each.end, divergence(here, there, each, alpha)) for each in tried)
    return max(judged, key=lambda each: each.proved)


def divergence(here: Floats, there: Floats, tilt: Tilt, alpha: float) -> float:
    """A lower bound on KL of the law of `here` from that of `there`, wrong with probability alpha."""
    least = float(tilt.of(here).mean()) - _error(tilt.of(here), 2 * tilt.end, alpha / 2)
    raised = np.exp(tilt.of(there))
    most = float(raised.mean()) + _error(raised, float(np.exp(tilt.end) - np.exp(-tilt.end)), alpha / 2)
    return max(0.0, least - log(most))


def _error(sample: Floats, width: float, alpha: float) -> float:
    """What the mean of independent numbers within such a width misses by more with probability alpha at most."""
    count, doubt = len(sample), log(2 / alpha)
    if count < 2:
        return inf
    return sqrt(2 * float(sample.var(ddof=1)) * doubt / count) + 7 * width * doubt / (3 * (count - 1))
