"""Encoders: a person's rows become a short vector of bounded norm."""

from hazemap.encoders.cell_counts import CellPresence, CountMinSketch, Counts
from hazemap.encoders.cell_values import KnownCountValues, Values
from hazemap.encoders.encoder import Concatenation, Encoder, Entries, total
from hazemap.encoders.haar_wavelet import HaarWavelet
from hazemap.encoders.split_scores import EvenSplitScores, MedianSplitScores, QuantileScores, SplitCosts

__all__ = [
    "CellPresence",
    "Concatenation",
    "CountMinSketch",
    "Counts",
    "Encoder",
    "Entries",
    "EvenSplitScores",
    "HaarWavelet",
    "KnownCountValues",
    "MedianSplitScores",
    "QuantileScores",
    "SplitCosts",
    "Values",
    "total",
]
