"""The values of people in one cell, of whom all is known: what means and distributions are compared on."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from hazemap.engines.memory import SingleCellSamples
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.planning.synthetic_city import normal
from hazemap.privacy.random_stream import Stream
from hazemap.tables.sample_grouping import SampleCounts
from hazemap.values.quantizer import Quantizer

FEW = 20
"""People of a small cell."""


@dataclass(frozen=True, eq=False)
class OneCell:
    """A value and the code of a person for each row of a cell; `quantizer` are the declared bounds.

    >>> two = OneCell("two", Quantizer(0, 65), np.array([4, 4, 5]), np.array([20.0, 30, 70]))
    >>> two.people, two.samples, round(two.mean, 3)
    (2, 3, 38.333)
    """

    name: str
    quantizer: Quantizer
    person: Ints
    value: Floats
    origin: str = ""

    @cached_property
    def table(self) -> SingleCellSamples:
        """What a curator holds."""
        return SingleCellSamples(self.person, self.value)

    @cached_property
    def mean(self) -> float:
        """The mean of all values, those outside the bounds clipped to them."""
        return float(self._clipped.mean())

    @property
    def first(self) -> Floats:
        """The first value of each person, float64[people]."""
        return self.value[np.unique(self.person, return_index=True)[1]]

    @property
    def _clipped(self) -> Floats:
        clipped: Floats = np.clip(self.value, self.quantizer.low, self.quantizer.high)
        return clipped

    @property
    def people(self) -> int:
        """How many they are."""
        return self.table.contributions.people

    @property
    def samples(self) -> int:
        """How many rows."""
        return len(self.person)

    @property
    def size(self) -> dict[str, int]:
        """Rows, by their name in results."""
        return {"samples": self.samples}

    @property
    def extent(self) -> str:
        """The same in words."""
        return f"{self.samples:,} values of {self.quantizer.low:g} to {self.quantizer.high:g}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that a score can depend on."""
        columns = (self.person.astype("<i8"), self.value.astype("<f8"))
        return sha256(str(self.quantizer).encode() + b"".join(column.tobytes() for column in columns)).hexdigest()

    def small(self) -> "OneCell":
        """A few of the people."""
        kept = np.isin(self.person, np.unique(self.person)[:FEW])
        return OneCell(self.name, self.quantizer, self.person[kept], self.value[kept], self.origin)

    def numbers(self, samples: int, people: int) -> SampleCounts:
        """λ times as many samples of each person, or of people, or both: the m_ℓ of a scaled cell."""
        return SampleCounts(np.repeat(self.table.contributions.counts * samples, people))

    def scaled(self, samples: int, people: int, seed: bytes) -> "OneCell":
        """A cell of these numbers whose values are all independent (Rameshwar et al. 2024, "Synthetic data").

        Normal, with the mean and the variance of the values here, clipped to the bounds.
        """
        counts = self.numbers(samples, people).counts
        luck = normal(Stream.fixed(b"independent values " + seed), int(counts.sum()))
        value = np.clip(self._clipped.mean() + self._clipped.std() * luck, self.quantizer.low, self.quantizer.high)
        return OneCell(self.name, self.quantizer, np.repeat(np.arange(len(counts)), counts), value, self.origin)
