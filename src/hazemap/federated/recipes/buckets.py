"""What all bucket rules share: how many buckets there may be, how some are called, and the columns they read."""

from collections.abc import Sequence

from hazemap.federated.recipes.sql_query import Value

MOST_BINS = 1 << 20
"""Bins of a recipe, that of people without an answer among them."""

MOST_TOKENS, LONGEST_PREFIX = 1 << 16, 16
"""Tokens or prefixes of a tree; tokens of one prefix."""

OTHER, END, NO_TEXT = "(other)", "(end)", "(no text)"
"""Labels of what is not covered, of a text that ends where its prefix does, and of what is no text."""

Column = Sequence[Value | None]
"""One column of a query's rows."""
