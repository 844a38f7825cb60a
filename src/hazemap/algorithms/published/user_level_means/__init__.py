"""The mean of a value in one cell (speed of one hexagon and hour) where each person has many samples of it.

Privacy model of all of them: VALUES ONLY (`hazemap.privacy.public_location_model`). How many samples each person gives
is public; what they are is protected, all samples of a person together (Rameshwar et al. 2024).
"""

from hazemap.algorithms.published.user_level_means.array_averaging import ArrayAveraging
from hazemap.algorithms.published.user_level_means.array_lengths import (
    median_length,
    most_arrays,
    worst_case_error,
    worst_case_length,
)
from hazemap.algorithms.published.user_level_means.balance_point_mean import BalancedMean
from hazemap.algorithms.published.user_level_means.laplace_mean import PlainMean
from hazemap.algorithms.published.user_level_means.levy_mean import LevyMean
from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.algorithms.published.user_level_means.quantile_clipped_mean import QuantileMean

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
