"""The weaker of the two privacy models of values, in the words that a statement uses for it."""

NEIGHBOURS = "the values of one person differ; how many samples each person gives, and in which cells, is public"
"""The neighbours of Rameshwar et al. 2024: it protects what was measured, not that somebody was there, or how often."""

NOT_PROTECTED = (
    "NOT protected: whereabouts and numbers; who was in which cell and slot with how many records is taken to be "
    "public, and numbers of people are exact"
)
"""What a statement says beside it, in so many words."""
