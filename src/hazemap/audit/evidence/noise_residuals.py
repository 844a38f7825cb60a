"""Answers less what the auditor knows of its own tables: the noise itself, number by number.

The exact sums are worked out from the rows as the auditor wrote them, person by person (`encoders.total`), and never
from a file; so a residual is noise if the program read, bounded and counted as it says, and something else if not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.audit.observed_output import Observation
from hazemap.codec import digest
from hazemap.encoders import total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.queries import Choice, Growth, Measure, Query, Question

LARGEST_LAGS = 8
"""Questions on which one person moves numbers by more different amounts are left to the audit of single questions."""


@dataclass(frozen=True, eq=False)
class Residual:
    """One answer: noise, how far the person who is there or not moves each number, and where the sum is not 0.

    `law` names numbers that are told to have the same noise: what is asked and the stated standard deviation.
    """

    law: str
    noise: Ints
    shift: Ints
    occupied: NDArray[np.bool_]
    share: float
    sensitivity: int
    round: int


class Sums:
    """The exact answers of two neighbours, each worked out once."""

    def __init__(self, there: MemoryTable, gone: MemoryTable) -> None:
        self._tables = (there, gone)
        self._known: dict[str, tuple[Ints, Ints] | None] = {}

    def of(self, question: Question) -> tuple[Ints, Ints] | None:
        """Both answers without noise; none for questions that are no sums."""
        if isinstance(question, Choice | Growth):
            return None
        key = digest(question)
        if key not in self._known:
            self._known[key] = self._worked_out(question)
        return self._known[key]

    def _worked_out(self, question: Query | Measure) -> tuple[Ints, Ints] | None:
        try:
            if isinstance(question, Query):
                there, gone = (total(question.encoder, table) for table in self._tables)
            else:
                there, gone = (np.asarray(question.scores.total(table)) for table in self._tables)
        except (HazemapError, AttributeError, TypeError, KeyError):
            return None
        return there, gone


def residuals(seen: Observation, sums: Sums, there: bool, mixed: bool = False) -> Iterator[Residual]:
    """Every answer of a run that can be judged, in order.

    Where noise is `mixed`, because chance decides how many people bring it, all noise of one encoder is of one law:
    what moves none of its parts by more than a factor moves the mixture by no more.
    """
    for number, (question, answer) in enumerate(seen.transcript):
        known = sums.of(question)
        if known is None or isinstance(question, Choice | Growth) or len(known[0]) != len(answer.sums):
            continue
        asked = question.encoder if isinstance(question, Query) else question.scores
        exact, shift = known[0 if there else 1], known[0] - known[1]
        if len(np.unique(np.abs(shift))) > LARGEST_LAGS:
            continue
        law = type(asked).__name__ + ("" if mixed else f" ± {float(answer.stddev[0]):.6g}")
        yield Residual(
            law,
            answer.sums - exact,
            shift,
            exact != 0,
            float(question.share),
            int(asked.sensitivity.l1),
            number,
        )
