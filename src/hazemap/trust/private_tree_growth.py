"""A private tree, grown from exact counts by whoever holds the rows."""

from fractions import Fraction

import numpy as np

from hazemap.cells import Cells, Leaves
from hazemap.privacy.private_splitting import SplittingNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_laplace
from hazemap.privacy.samplers.laplace import LARGEST_SCALE
from hazemap.queries import Growth
from hazemap.tables.votes import VotesTable


def grown(table: VotesTable, stream: Stream, question: Growth, epsilon: Fraction) -> Cells:
    """The cells that were not split, in the order of their spans: ε-differentially private
    (`privacy.private_splitting`).

    O(depth · votes + cells).
    """
    tree = question.tree
    law = SplittingNoise.within(epsilon, question.bounding.sensitivity.l1, question.fan, tree.depth)
    if law.scale > LARGEST_SCALE:  # noise does not fit 64 bits: then nothing of the rows decides
        return tree.root
    votes = table.votes(tree, question.bounding)
    kept, todo = [], tree.root
    for depth in range(tree.depth):
        counts = Leaves(tree, todo).total(votes.cells, votes.weights)
        biased = np.maximum(counts - depth * law.decay, question.threshold - law.decay)
        split = biased + discrete_laplace(stream, law.scale, len(todo)) > question.threshold
        kept.append(todo[~split])
        todo = tree.children(todo[split])
    cells = np.concatenate([*kept, todo])
    ordered: Cells = cells[np.argsort(tree.span(cells)[0])]
    return ordered
