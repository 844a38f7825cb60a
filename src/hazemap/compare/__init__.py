"""What a map is compared by: how far a released map is from the truth. Arrays in, numbers out.

Here the truth is known because the data is public or made up; nothing of this is for data that is to be protected.
"""

from hazemap.compare.density_metrics import density, kl, l1, l2, maape, mape, mse, pearson, similarity, smape
from hazemap.compare.earth_movers_distance import emd
from hazemap.compare.range_query_error import QueryRectangles, mre, rectangles, relative_errors, sums, workloads

__all__ = [
    "QueryRectangles",
    "density",
    "emd",
    "kl",
    "l1",
    "l2",
    "maape",
    "mape",
    "mre",
    "mse",
    "pearson",
    "rectangles",
    "relative_errors",
    "similarity",
    "smape",
    "sums",
    "workloads",
]
