"""From the answers of a run to measurements of the regions that were asked for."""

from collections.abc import Iterable

import numpy as np

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.estimate.consistent import Measurement
from hazemap.rounds import Answer, Query, Question


def measurements(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> list[Measurement]:
    """What a transcript says about the tree of `cells`, in what its bounding rule counts, oldest first."""
    return [
        Measurement(
            question.encoder.cells,
            answer.sums / question.encoder.bounding.unit,
            np.broadcast_to((answer.stddev / question.encoder.bounding.unit) ** 2, answer.sums.shape),
            answer.kurtosis,
        )
        for question, answer in transcript
        if isinstance(question, Query)
        and isinstance(question.encoder, Counts)
        and isinstance(question.encoder.cells, Leaves)
        and question.encoder.cells.tree == cells.tree
    ]
