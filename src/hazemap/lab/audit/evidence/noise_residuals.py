"""Answers less what the auditor knows of its own tables: the noise itself, number by number.

The exact sums are worked out from the rows as the auditor wrote them, person by person (`encoders.total`), and never
from a file; so a residual is noise if the program read, bounded and counted as it says, and something else if not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.codec import digest
from hazemap.encoders import total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Ints
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query

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


class Summed(NamedTuple):
    """A question that is answered by sums, and what is summed; `number` counts all questions of its run."""

    number: int
    question: Query | Measure
    asked: Any
    answer: Answer

    @property
    def law(self) -> str:
        """What is summed and the stated noise: such answers are told to have noise of one law."""
        return f"{type(self.asked).__name__} ± {float(self.answer.stddev[0]):.6g}"


def summed(seen: Observation) -> Iterator[Summed]:
    """The answers of a run that are sums, in order."""
    for number, (question, answer) in enumerate(seen.transcript):
        if not isinstance(question, Choice | Growth):
            asked = question.encoder if isinstance(question, Query) else question.scores
            yield Summed(number, question, asked, answer)


class Sums:
    """The exact answers of two neighbours, each worked out once."""

    def __init__(self, there: MemoryTable, gone: MemoryTable) -> None:
        self._tables = (there, gone)
        self._known: dict[str, tuple[Ints, Ints] | None] = {}

    def of(self, question: Query | Measure) -> tuple[Ints, Ints] | None:
        """Both answers without noise, where they can be worked out."""
        key = digest(question)
        if key not in self._known:
            self._known[key] = self._worked_out(question)
        return self._known[key]

    def known(self, seen: Observation) -> Iterator[tuple[Summed, tuple[Ints, Ints]]]:
        """The answers of a run whose exact sums are known, with these."""
        for each in summed(seen):
            exact = self.of(each.question)
            if exact is not None and len(exact[0]) == len(each.answer.sums):
                yield each, exact

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
    for each, known in sums.known(seen):
        exact, shift = known[0 if there else 1], known[0] - known[1]
        if len(np.unique(np.abs(shift))) > LARGEST_LAGS:
            continue
        yield Residual(
            type(each.asked).__name__ if mixed else each.law,
            each.answer.sums - exact,
            shift,
            exact != 0,
            float(each.question.share),
            int(each.asked.sensitivity.l1),
            each.number,
        )
