"""The mean of a value in one cell (speed of one hexagon and hour) where each person has many samples of it.

Privacy model of all of them: VALUES ONLY (`hazemap.privacy.values_only`). How many samples each person gives is public;
what they are is protected, all samples of a person together (Rameshwar et al. 2024).
"""

from hazemap.algorithms.means.array_averaging import ArrayAveraging
from hazemap.algorithms.means.balanced import BalancedMean
from hazemap.algorithms.means.lengths import median_length, most_arrays, worst_case_error, worst_case_length
from hazemap.algorithms.means.levy import LevyMean
from hazemap.algorithms.means.mean import Mean
from hazemap.algorithms.means.plain import PlainMean
from hazemap.algorithms.means.quantile import QuantileMean

__all__ = [
    "ArrayAveraging",
    "BalancedMean",
    "LevyMean",
    "Mean",
    "PlainMean",
    "QuantileMean",
    "median_length",
    "most_arrays",
    "worst_case_error",
    "worst_case_length",
]
