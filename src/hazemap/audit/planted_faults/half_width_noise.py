"""Noise half as wide as the budget buys: everybody loses twice the stated ε (four times the stated ρ)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, discrete_laplace


@contextmanager
def planted() -> Iterator[None]:
    """Draw from narrower laws; what is stated of them stays as it is."""

    def laplace(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        return discrete_laplace(stream, self.scale / 2, size)

    def gaussian(self: DiscreteGaussian, stream: Stream, size: int) -> Any:
        return discrete_gaussian(stream, self.variance / 4, size)

    with replaced(DiscreteLaplace, "draw", laplace), replaced(DiscreteGaussian, "draw", gaussian):
        yield
