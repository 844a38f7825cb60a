"""Maps that are made up, the same every time: a city, one Gaussian, a mixture of Gaussians."""

import numpy as np

from hazemap.compare.ground_truth_maps import GroundTruthMap
from hazemap.planning.synthetic_city import City, normal, uniform
from hazemap.privacy.random_stream import Stream

CITY_PEOPLE, GAUSSIAN_PEOPLE, SIDE = 3_500_000, 1_000_000, 1024


def city() -> GroundTruthMap:
    """A city of the size of the one in the evaluation data."""
    day = City.built(Stream.fixed(b"the city of comparisons"), SIDE).day
    counts = day.counts(Stream.fixed(b"the people of the city of comparisons"), CITY_PEOPLE)
    return GroundTruthMap.of("city", counts, "a city made up by hazemap (not the one of the evaluation data)")


def gaussian(sigma: int) -> GroundTruthMap:
    """One cluster of a million points around a place drawn at random (Shaham et al. 2021); none outside the map."""
    stream = Stream.fixed(f"gaussian {sigma}".encode())
    middle = uniform(stream, 2) * SIDE
    counts, need = np.zeros((SIDE, SIDE), dtype=np.int64), GAUSSIAN_PEOPLE
    while need:
        rows, columns = (np.floor(at + sigma * normal(stream, need)).astype(np.int64) for at in middle)
        inside = (rows >= 0) & (rows < SIDE) & (columns >= 0) & (columns < SIDE)
        np.add.at(counts, (rows[inside], columns[inside]), 1)
        need -= int(inside.sum())
    return GroundTruthMap.of(f"gaussian-{sigma}", counts, f"a Gaussian cluster, σ = {sigma} pixels")


def mixture(clusters: int) -> GroundTruthMap:
    """Gaussians of equal weight with random means, spreads and slants (Ghazi et al. 2022, appendix E.3): a density.

    Spreads are 1 to 6 % of the side in each of two directions.
    """
    stream, side = Stream.fixed(f"mixture {clusters}".encode()), 256
    axis, density = (np.arange(side) + 0.5) / side, np.zeros((side, side))
    for _ in range(clusters):
        x, y, across, along, turn = uniform(stream, 5)
        right, down = np.meshgrid(axis - x, axis - y)
        u = np.cos(np.pi * turn) * right + np.sin(np.pi * turn) * down
        v = np.cos(np.pi * turn) * down - np.sin(np.pi * turn) * right
        bell = np.exp(-0.5 * ((u / (0.01 + 0.05 * across)) ** 2 + (v / (0.01 + 0.05 * along)) ** 2))
        density += bell / bell.sum()
    counts = np.rint(density * 1e8 / clusters).astype(np.int64)
    return GroundTruthMap.of(f"mixture-{clusters}", counts, f"a density of {clusters} Gaussians")
