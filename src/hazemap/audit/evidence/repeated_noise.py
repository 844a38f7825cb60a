"""Whether any two answers of a whole audit have the same noise: where nobody is, answers are noise and nothing else.

Streams with few seeds, seeds from a clock that is too slow, from the data, from a process' number or from nothing come
back sooner or later, whatever the files were. n answers find the like of 2^k seeds from about n = 2^(k/2) on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hazemap.audit.evidence.noise_independence import BLOCK
from hazemap.audit.findings import LawTest, Test
from hazemap.audit.observed_output import Observation
from hazemap.queries import Choice, Growth, Query


@dataclass
class Copies:
    """The last `BLOCK` numbers of each answer about so many places that the last ones are empty; by law."""

    answers: int = 0
    _seen: dict[str, set[bytes]] = field(default_factory=dict)
    _often: dict[str, dict[int, int]] = field(default_factory=dict)
    _copied: dict[str, int] = field(default_factory=dict)

    def add(self, observations: Iterable[Observation]) -> None:
        """What was seen of some runs: O(answers)."""
        for question, answer in (each for seen in observations for each in seen.transcript):
            if isinstance(question, Choice | Growth) or len(answer.sums) < 8 * BLOCK:
                continue
            asked = question.encoder if isinstance(question, Query) else question.scores
            law = f"{type(asked).__name__} {len(answer.sums)} ± {float(answer.stddev[0])!r}"
            last = np.ascontiguousarray(answer.sums[-2 * BLOCK : -BLOCK], dtype=np.int64)
            seen, often = self._seen.setdefault(law, set()), self._often.setdefault(law, {})
            self.answers += 1
            self._copied[law] = self._copied.get(law, 0) + (last.tobytes() in seen)
            seen.add(last.tobytes())
            for value, times in zip(*np.unique(last, return_counts=True), strict=True):
                often[int(value)] = often.get(int(value), 0) + int(times)

    def tests(self) -> Iterator[Test]:
        """How likely chance is to do the same: the number of pairs, times how likely `BLOCK` numbers are alike."""
        worst = 1.0
        for law, copied in self._copied.items():
            part = np.array(list(self._often[law].values()), dtype=np.float64)
            alike = min(1.0, 1.1 * float(((part / part.sum()) ** 2).sum()))
            pairs = (len(self._seen[law]) + copied) ** 2 / 2
            worst = min(worst, pairs * alike**BLOCK if copied else 1.0)
        note = f"{sum(self._copied.values())} of {self.answers} answers have the noise of another"
        pvalue = min(1.0, worst * max(len(self._copied), 1))
        yield LawTest("noise is never used again", "all answers", pvalue, self.answers, note)
