"""Guessing whose coin fell how, from what is published: a lower bound on ε from a few releases of many canaries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from hazemap.lab.audit.findings import guesses
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.random_canaries import CanaryCrowd
from hazemap.machine_code.arrays import Bools, Floats
from hazemap.releases import Release


@dataclass
class Guesses:
    """What was published of each canary, by release; releases in turn teach how to guess, and are guessed."""

    crowd: CanaryCrowd
    runs: int = 0
    errors: list[tuple[str, int]] = field(default_factory=list)
    _seen: tuple[list[tuple[Floats, Bools]], list[tuple[Floats, Bools]]] = field(default_factory=lambda: ([], []))

    def add(self, seen: Observation, coins: Bools) -> None:
        """One release of the crowd that these coins made."""
        self.runs += 1
        if not isinstance(seen.release, Release):
            self.errors.append((seen.error, int(coins.sum())))
            return
        self._seen[self.runs % 2].append((_features(self.crowd, seen), coins))

    def counted(self) -> tuple[int, int]:
        """How many guesses were right, and how many were made: of releases that taught nothing."""
        if not all(self._seen):
            return 0, 0
        taught, asked = (
            (np.concatenate([a for a, _ in half]), np.concatenate([b for _, b in half])) for half in self._seen
        )
        centre, scale = taught[0].mean(axis=0), taught[0].std(axis=0) + 1e-9
        known = _expanded((taught[0] - centre) / scale, taught[0])
        judged = _expanded((asked[0] - centre) / scale, asked[0])
        weights = _logistic(known, taught[1])
        sure = np.abs(known @ weights)
        right = (known @ weights > 0) == taught[1]
        threshold = _threshold(sure, right)
        score = judged @ weights
        made = np.abs(score) >= threshold
        return int(((score > 0) == asked[1])[made].sum()), int(made.sum())

    def lower(self, alpha: float) -> float:
        """ε that the guesses prove."""
        return guesses(*self.counted(), alpha)


def _features(crowd: CanaryCrowd, seen: Observation) -> Floats:
    """Of each canary: the published numbers in its places and in its partner's, before and after correction."""
    published = cast(Release, seen.release).map
    where = published.cells.locate(crowd.square.leaves.cells)
    found = np.zeros((crowd.size, 4))
    for column, numbers in enumerate((published.unbiased, published.values)):
        of_place = np.where(where >= 0, numbers[where], 0.0)
        for number in range(crowd.size):
            places, partner = crowd.places(number)
            found[number, 2 * column] = of_place[places].sum()
            found[number, 2 * column + 1] = of_place[partner]
    return found


def _expanded(standard: Floats, raw: Floats) -> Floats:
    """Numbers, their parts near the middle, and whether they are exactly 0; with a constant."""
    return np.hstack([standard, np.clip(standard, -0.7, 0.7), raw == 0, np.ones((len(raw), 1))])


def _logistic(numbers: Floats, coins: Bools) -> Floats:
    """Weights of a logistic regression with a little ridge, by Newton's method."""
    weights = np.zeros(numbers.shape[1])
    ridge = np.eye(numbers.shape[1]) * 1.0
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(numbers @ weights, -30, 30)))
        slope = numbers.T @ (coins - chance) - ridge @ weights
        bend = (numbers * (chance * (1 - chance))[:, None]).T @ numbers + ridge
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-8:
            break
    return weights


def _threshold(sure: Floats, right: Bools) -> float:
    """How sure a guess has to be, so that the guesses that are made prove most: of a few quantiles."""
    best, most = 0.0, -1.0
    for part in (0.0, 0.25, 0.5, 0.7, 0.85, 0.95):
        threshold = float(np.quantile(sure, part)) if part else 0.0
        made: Sequence[bool] | Bools = sure >= threshold
        bound = guesses(int(right[made].sum()), int(np.sum(made)), 1e-7)
        if bound > most:
            best, most = threshold, bound
    return best
