"""The weaker of the two privacy models of values, in the words that a statement uses for it."""

VALUES_ONLY = "the values of one person differ; how many samples each person gives, and in which cells, is public"
"""The neighbours of Rameshwar et al. 2024: it protects what was measured, not that somebody was there, or how often."""
