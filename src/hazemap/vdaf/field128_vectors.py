"""Vectors of Field128 in machine code: differences, sums by weights, elements or not. This module imports numba."""

import numpy as np

from hazemap.machine_code.arrays import Bools, Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.field128_kernels import add, add_product, load, nothing, reduced, store, sub
from hazemap.vdaf.xof_turboshake128_kernels import HIGH128, LOW128


@compiled
def add_vector(total: Words, vector: Words) -> None:  # pragma: no cover - compiled
    """Add a vector, uint64[n, 2], to a total."""
    for i in range(total.shape[0]):
        store(total, i, add(load(total, i), load(vector, i)))


@compiled
def subtract_vector(total: Words, vector: Words) -> None:  # pragma: no cover - compiled
    """Take a vector from a total."""
    for i in range(total.shape[0]):
        store(total, i, sub(load(total, i), load(vector, i)))


@compiled
def are_elements(vectors: Words, found: Bools) -> None:  # pragma: no cover - compiled
    """Clear `found` for each of many vectors, uint64[n, length, 2], with a number that is not below the modulus."""
    for i in range(vectors.shape[0]):
        wrong, vector = np.uint64(0), vectors[i]
        for j in range(vector.shape[0]):
            low, high = load(vector, j)
            wrong |= np.uint64(high > HIGH128) | (np.uint64(high == HIGH128) & np.uint64(low >= LOW128))
        if wrong:
            found[i] = False


@compiled
def weighted_sums(vector: Words, weights: Words, sums: Words) -> None:  # pragma: no cover - compiled
    """The sums of groups of consecutive elements by the same weights, which are times R."""
    group = weights.shape[0]
    for i in range(sums.shape[0]):
        total = nothing()
        for j in range(group):
            total = add_product(total, load(weights, j), load(vector, i * group + j))
        store(sums, i, reduced(total))
