"""The weaker of the two privacy models of values, in the words that a statement uses for it."""

VALUES_ONLY = "the values of one person differ; how many samples each person gives, and in which cells, is public"
"""The neighbours of Rameshwar et al. 2024: it protects what was measured, not that somebody was there, or how often."""

NOT_PROTECTED = (
    "NOT protected: whereabouts and numbers; who was in which cell and slot with how many records is taken to be "
    "public, and numbers of people are exact"
)
"""What a statement says beside it, in so many words."""

APART = " (values only)"
"""What is added to the name of a data set that pays for it: an ε of values says nothing about whereabouts, so it is not
added to charges of the full model, which hides both."""
