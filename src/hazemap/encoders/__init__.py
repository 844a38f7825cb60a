"""What one person says: rows become a short vector of bounded length."""

from hazemap.encoders.counts import Counts
from hazemap.encoders.cut_costs import CutCosts
from hazemap.encoders.encoder import Encoder, Entries, total
from hazemap.encoders.kept_values import KeptValues
from hazemap.encoders.medians import Medians
from hazemap.encoders.presences import Presences
from hazemap.encoders.quantiles import Quantiles
from hazemap.encoders.sketch import Sketch
from hazemap.encoders.stack import Stack
from hazemap.encoders.values import Values
from hazemap.encoders.wavelet import Wavelet

__all__ = [
    "Counts",
    "CutCosts",
    "Encoder",
    "Entries",
    "KeptValues",
    "Medians",
    "Presences",
    "Quantiles",
    "Sketch",
    "Stack",
    "Values",
    "Wavelet",
    "total",
]
