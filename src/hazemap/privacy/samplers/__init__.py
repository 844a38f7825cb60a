"""Exact samplers: integers out, uniform words in, and no float decides a draw (docs/concepts/noise.md)."""

from hazemap.privacy.samplers.gaussian import discrete_gaussian
from hazemap.privacy.samplers.laplace import discrete_laplace, geometric
from hazemap.privacy.samplers.polya import poisson, polya_difference
from hazemap.privacy.samplers.private_selection import permute_and_flip, permute_and_flip_each

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "permute_and_flip",
    "permute_and_flip_each",
    "poisson",
    "polya_difference",
]
