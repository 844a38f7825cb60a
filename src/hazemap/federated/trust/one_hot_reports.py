"""Which questions fit reports of a single 1: what Prio3's Histogram and MultihotCountVec can prove of a person.

A report proves that a person added 1 in one place of a vector and nothing elsewhere. A stack of such vectors is a
report for each. What a person would have to be believed about (several votes, weights, negative numbers) is refused:
the circuits for those prove bounds place by place, so that a bad device could add the bound everywhere.
"""

from typing import Final

from hazemap.encoders import CellPresence, Concatenation, CountMinSketch, Counts, Encoder
from hazemap.errors import Unanswerable
from hazemap.federated.recipes.recipe_bins import RecipeBins

MOST_VECTORS: Final = 16
"""Vectors that one round may ask for: each is a report of its own."""


def histograms(encoder: Encoder) -> tuple[int, ...]:
    """The lengths of the vectors in each of which a person has a single 1, or none; `Unanswerable` if that is not so.

    >>> from hazemap import AtMostRows, Counts, Leaves, Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> histograms(Concatenation((Counts(Leaves.at_level(tree, 1)), Counts(Leaves.at_level(tree, 2))), (1, 3)))
    (4, 16)
    """
    if isinstance(encoder, Concatenation):
        return tuple(size for part in encoder.parts for size in histograms(part))
    if isinstance(encoder, CountMinSketch) and encoder.bounding.sensitivity.l1 == 1:
        return (encoder.width,) * encoder.rows
    if isinstance(encoder, Counts | CellPresence | RecipeBins) and encoder.sensitivity.l1 == 1:
        return (encoder.size,)
    if isinstance(encoder, Counts | CellPresence | CountMinSketch):
        raise Unanswerable(
            f"a report proves a single 1 in one place, but here a person may add {encoder.bounding.sensitivity.l1}: "
            'bound each person to one row (--bounding "one row"), or ask a curator or secure sums'
        )
    raise Unanswerable(
        f"a report proves a single 1 in one place, and {type(encoder).__name__} adds other numbers, which servers "
        "that see shares cannot check: choose a method of counts, or ask a curator or secure sums"
    )


def vectors(encoder: Encoder) -> tuple[int, ...]:
    """The lengths of the vectors that a round asks two servers for; `Unanswerable` for what it cannot ask.

    This alone decides, for rounds over HTTP, for simulations and for plans.

    >>> from hazemap import AtMostRows, Counts, Leaves, Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=3), 1), AtMostRows(1))
    >>> vectors(Concatenation((counts, counts), (1, 1)))
    (4, 4)
    """
    if _weighed(encoder):
        raise Unanswerable(
            "reports of a single 1 have no weights, and this method asks levels with different ones: choose another "
            "method, such as adaptive"
        )
    sizes = histograms(encoder)
    if len(sizes) > MOST_VECTORS:
        raise Unanswerable(
            f"a round asks two servers for at most {MOST_VECTORS} vectors, not {len(sizes):,}: choose another method"
        )
    return sizes


def _weighed(encoder: Encoder) -> bool:
    if not isinstance(encoder, Concatenation):
        return False
    return any(weight != 1 for weight in encoder.weights) or any(map(_weighed, encoder.parts))
