"""Distances between two densities over a grid, pixel by pixel.

A density is an array of numbers that are 0 or more and sum to 1; `density` makes one of any map. With true density p
and estimate q over k pixels, every function here takes (p, q) and gives one number without a unit, in O(k). Arrays of
any shape will do, as long as it is the same.
"""

import numpy as np
from numpy.typing import ArrayLike

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats

SMALLEST = 2.0**-52
"""What `kl` takes for an estimate below it: the ε of Bylinskii et al. (2019), who meet the same zeros."""


def density(numbers: ArrayLike) -> Floats:
    """A map of counts as a density: what is below 0 or not known (NaN) is 0, and all sums to 1.

    A map that has nothing above 0 knows nothing, and is even everywhere.

    >>> density([[6, -1], [2, 0]])
    array([[0.75, 0.  ],
           [0.25, 0.  ]])
    """
    kept = np.maximum(np.nan_to_num(np.asarray(numbers, np.float64), nan=0.0, posinf=np.inf, neginf=0.0), 0.0)
    if not kept.size or np.isinf(kept).any():
        raise InputError("a density is made of a map with at least one pixel and no infinite number")
    most = float(kept.max())
    if most <= 0:
        return np.full(kept.shape, 1 / kept.size)
    kept /= most  # so that no sum overflows
    return np.asarray(kept / kept.sum())


def comparable(true: ArrayLike, estimate: ArrayLike) -> tuple[Floats, Floats]:
    """Two densities over the same pixels; an `InputError` if they are anything else."""
    p, q = np.asarray(true, np.float64), np.asarray(estimate, np.float64)
    if p.shape != q.shape or not p.size:
        raise InputError(f"maps of {p.shape} and {q.shape} pixels cannot be compared: bring them to one grid first")
    for name, map_ in (("true", p), ("estimated", q)):
        if not (map_.min() >= 0 and abs(map_.sum() - 1) < 1e-6):
            raise InputError(f"the {name} map is not a density (0 or more everywhere, sum 1): `density` makes it one")
    return p, q


def mse(true: ArrayLike, estimate: ArrayLike) -> float:
    """Mean squared error, Σ (p − q)² / k.

    >>> mse([0.5, 0.5], [1.0, 0.0])
    0.25
    """
    p, q = comparable(true, estimate)
    return float(np.square(p - q).mean())


def l1(true: ArrayLike, estimate: ArrayLike) -> float:
    """Σ |p − q|, entry by entry: 0 for equal maps, 2 for maps that share no pixel; twice the total variation."""
    p, q = comparable(true, estimate)
    return float(np.abs(p - q).sum())


def l2(true: ArrayLike, estimate: ArrayLike) -> float:
    """√ Σ (p − q)², entry by entry (not the norm of the matrix as an operator): 0 … √2."""
    p, q = comparable(true, estimate)
    return float(np.sqrt(np.square(p - q).sum()))


def kl(true: ArrayLike, estimate: ArrayLike, smallest: float = SMALLEST) -> float:
    """Kullback–Leibler divergence Σ p ln(p / q) in nats, 0 or more.

    Zeros: a pixel with p = 0 adds nothing; q is never taken for less than `smallest`, so that a true pixel that the
    estimate leaves empty costs p ln(p / smallest) and not infinity. `smallest=0` is the divergence as it is defined.
    """
    p, q = comparable(true, estimate)
    there = p > 0
    p, q = p[there], np.maximum(q[there], smallest)
    with np.errstate(divide="ignore", over="ignore"):
        return max(0.0, float((p * np.log(p / q)).sum()))


def similarity(true: ArrayLike, estimate: ArrayLike) -> float:
    """Σ min(p, q), 0 … 1, higher is better: 1 minus half of `l1`, or 1 minus the total variation."""
    p, q = comparable(true, estimate)
    return float(np.minimum(p, q).sum())


def pearson(true: ArrayLike, estimate: ArrayLike) -> float:
    """Pearson's correlation of p and q over the pixels, −1 … 1, higher is better.

    NaN where one of the maps is even, since correlation is then not defined.
    """
    p, q = comparable(true, estimate)
    if p.min() == p.max() or q.min() == q.max():
        return float("nan")
    p, q = (p - p.mean()).ravel(), (q - q.mean()).ravel()
    p, q = p / np.abs(p).max(), q / np.abs(q).max()  # small densities squared would vanish
    return float(np.clip(p @ q / np.sqrt((p @ p) * (q @ q)), -1, 1))


def mape(true: ArrayLike, estimate: ArrayLike) -> float:
    """Mean absolute percentage error, as a fraction: the mean of |p − q| / p, 0 or more.

    Where p = 0 the denominator is the smallest p above 0 (Bagdasaryan et al. 2022, appendix A.1). Their program puts
    that number in the place of p in the numerator too, and normalises again; their text does not, nor do we.
    """
    return float(_relative(true, estimate).mean())


def smape(true: ArrayLike, estimate: ArrayLike) -> float:
    """Symmetric absolute percentage error, as a fraction: the mean of 2 |p − q| / (p + q), 0 … 2.

    A pixel that is empty in both maps adds nothing (Bagdasaryan et al. 2022; the formula is Makridakis's, 1993).
    """
    p, q = comparable(true, estimate)
    total = p + q
    return float(np.divide(2 * np.abs(p - q), total, out=np.zeros_like(p), where=total > 0).mean())


def maape(true: ArrayLike, estimate: ArrayLike) -> float:
    """Mean arctangent absolute percentage error: the mean of arctan(|p − q| / p), 0 … π/2 (Kim and Kim 2016).

    Where p = 0 the denominator is that of `mape`, as in Bagdasaryan et al. (2022); Kim and Kim count π/2 there.
    """
    return float(np.arctan(_relative(true, estimate)).mean())


def _relative(true: ArrayLike, estimate: ArrayLike) -> Floats:
    p, q = comparable(true, estimate)
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(p - q) / np.where(p > 0, p, p[p > 0].min()))
