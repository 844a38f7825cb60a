"""A static question whose bins could be sent: sequences hashed into a table's bins, in a table for each of their words.

One report says "none" or one of the bins, of one of the person's sequences drawn at random; a person sends a report to
each table at once, so all tables together cost what as many rounds do. Whoever reads the tables looks for sequences
among all that there can be: those whose bin stands high in every table, the higher the more frequent. How high is read
off the tables: so that of all 1,000ⁿ sequences, if their bins were drawn at random, `by_noise` would do so.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.federated.recipes.features import MOST_BINS
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.local_randomisers import Asymmetric
from research.benchmarks.discovery_corpora import Sequences

BINS = MOST_BINS - 1
"""As many as a recipe has, beside that of people without a sequence."""


@dataclass(frozen=True, eq=False)
class HashedStatic:
    """`tables` reports of `local` ε each. Hashes are drawn at random, anew for each run."""

    asked: Sequences
    everything: int
    tables: int
    by_noise: Fraction

    def found(self, of: Ints, seed: int, local: Fraction, most: int) -> list[str]:
        """What stands high in every table, the highest mean first; "" for a sequence that nobody has."""
        chance = np.random.default_rng([seed, 2])
        places = chance.integers(BINS, size=(self.tables, len(self.asked.texts)))
        numbers = np.stack([self._table(own, of, local, chance) for own in places])
        least = self._least(numbers)
        high = [each[each >= least] for each in numbers]
        many = np.prod([len(each) / BINS for each in high])
        nobody = chance.binomial(self.everything - len(self.asked.texts), many)
        noise = np.mean([chance.choice(each, nobody) for each in high], axis=0) if nobody else np.zeros(0)
        bins = np.take_along_axis(numbers, places, axis=1)
        stands = np.flatnonzero((bins >= least).all(axis=0))
        texts = [*(self.asked.texts[place] for place in stands), *[""] * nobody]
        means = np.concatenate([bins[:, stands].mean(axis=0), noise])
        return [texts[place] for place in np.argsort(-means, kind="stable")[:most]]

    def _table(self, places: Ints, of: Ints, local: Fraction, chance: np.random.Generator) -> Floats:
        """Unbiased numbers of reports, float64[BINS]."""
        said = places[self.asked.drawn(of, chance)]
        law, counts = Asymmetric(local), np.bincount(said, minlength=BINS)
        keep, turn_on = law.chances
        return law.unbiased(chance.binomial(counts, keep) + chance.binomial(len(of) - counts, turn_on), len(of))

    def _least(self, numbers: Floats) -> float:
        """The least number with so few bins above it that chance lifts `by_noise` sequences so high in every table."""
        ordered, values = np.sort(numbers, axis=1), np.unique(numbers)
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            above = [BINS - np.searchsorted(own, values[middle]) for own in ordered]
            enough = self.everything * np.prod(np.array(above) / BINS) <= float(self.by_noise)
            low, high = (low, middle) if enough else (middle + 1, high)
        return float(values[low])
