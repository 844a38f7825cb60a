"""Whether noise is what a proof needs it to be: of one law everywhere, independent, never used again.

Also over a whole audit: streams with few seeds, seeds from a clock that is too slow, from the data, from a process'
number or from nothing come back sooner or later, whatever the files were. n answers find the like of 2^k seeds from
about n = 2^(k/2) on. Where nobody is, answers are noise and nothing else, so any two of them must differ.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.lab.audit.evidence.noise_residuals import Residual, summed
from hazemap.lab.audit.findings import LawTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Floats

Run = list[Residual]

BLOCK = 64
"""Numbers next to each other of which a copy is looked for."""

MOST = 60_000
"""Numbers of a law in which it is looked for."""

FEWEST = 500
"""Pairs below which nothing is said of dependence: the normal law of a correlation is not yet near."""


def tests(runs: list[Run], about: str) -> Iterator[Test]:
    """All tests of some runs on one setting: how many there are does not depend on what was found."""
    count = len(runs)
    for sizes in (False, True):
        ranked = _ranked(runs, sizes)
        for name, pairs in (
            ("neighbouring numbers", _beside(ranked, 1)),
            ("numbers two apart", _beside(ranked, 2)),
            ("halves of an answer", _halves(ranked)),
            ("two rounds of a run", _rounds(ranked)),
            ("two runs", _consecutive(ranked)),
        ):
            first, second = (_joined([pair[side] for pair in pairs]) for side in (0, 1))
            about_what = f"{about}: {name}" + (", their sizes" if sizes else "")
            yield LawTest("noise is independent", about_what, _correlated(first, second), count)
    yield LawTest("noise is never used again", about, copied(runs), count, "a block of numbers occurs twice")
    yield LawTest("noise is the same where people are", about, _elsewhere(runs, False), count)
    yield LawTest("noise is the same where somebody is added", about, _elsewhere(runs, True), count)
    yield LawTest("noise is not too large where somebody is added", about, _far(runs), count)


def _ranked(runs: list[Run], sizes: bool) -> list[list[Floats]]:
    """Each residual by its rank among all of its law, from −½ to ½, so that laws can be looked at together."""
    from scipy.stats import rankdata

    laws: dict[str, list[tuple[int, int]]] = {}
    for run, answers in enumerate(runs):
        for number, each in enumerate(answers):
            laws.setdefault(each.law, []).append((run, number))
    ranked = [[np.empty(0)] * len(answers) for answers in runs]
    for where in laws.values():
        noise = [runs[run][number].noise for run, number in where]
        ranks = rankdata(np.abs(np.concatenate(noise)) if sizes else np.concatenate(noise))
        ranks = ranks / (len(ranks) + 1) - 0.5
        for (run, number), part in zip(
            where, np.split(ranks, np.cumsum([len(each) for each in noise])[:-1]), strict=True
        ):
            ranked[run][number] = part
    return ranked


def _beside(ranked: list[list[Floats]], lag: int) -> list[tuple[Floats, Floats]]:
    """Disjoint pairs, so that no number is in two."""
    found = []
    for each in (each for run in ranked for each in run):
        blocks = each[: len(each) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        found.append((blocks[:, 0].ravel(), blocks[:, 1].ravel()))
    return found


def _halves(ranked: list[list[Floats]]) -> list[tuple[Floats, Floats]]:
    each = [ranks for run in ranked for ranks in run]
    return [(ranks[: len(ranks) // 2], ranks[len(ranks) // 2 : len(ranks) // 2 * 2]) for ranks in each]


def _rounds(ranked: list[list[Floats]]) -> list[tuple[Floats, Floats]]:
    """An answer and the next one, number by number; each answer is in one pair."""
    return [_cut(*pair) for run in ranked for pair in zip(run[0::2], run[1::2], strict=False)]


def _consecutive(ranked: list[list[Floats]]) -> list[tuple[Floats, Floats]]:
    """A run and the next one, answer by answer."""
    pairs = zip(ranked[0::2], ranked[1::2], strict=False)
    return [_cut(*answers) for one, other in pairs for answers in zip(one, other, strict=False)]


def _cut(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    size = min(len(one), len(other))
    return one[:size], other[:size]


def _correlated(first: Floats, second: Floats) -> float:
    """The p-value of a correlation of ranks (Spearman), two-sided, of independent pairs."""
    from scipy.stats import norm

    if len(first) < FEWEST or first.std() == 0 or second.std() == 0:
        return 1.0
    return float(2 * norm.sf(abs(float(np.corrcoef(first, second)[0, 1])) * (len(first) - 1) ** 0.5))


def copied(runs: list[Run]) -> float:
    """How likely it is at most that noise of one law has two equal stretches of `BLOCK` numbers, if it has; else 1.

    Two stretches agree with probability (Σ p²)^BLOCK, or, where they overlap, with at most the largest p^BLOCK. p is
    from the noise itself, made larger by a tenth. O(numbers · BLOCK), of the first 60,000 numbers of a law.
    """
    worst = 1.0
    for law in dict.fromkeys(each.law for run in runs for each in run):
        noise, known = [], 0
        for part in (each.noise for run in runs for each in run if each.law == law):
            if len(part) >= BLOCK and known < MOST:
                noise.append(part)
                known += len(part)
        if not noise:
            continue
        every = np.concatenate([np.lib.stride_tricks.sliding_window_view(part, BLOCK) for part in noise])
        rows = np.ascontiguousarray(every).view([("", np.int64)] * BLOCK).ravel()
        if len(np.unique(rows)) == len(rows):
            continue
        _, often = np.unique(np.concatenate(noise), return_counts=True)
        part_of = often / often.sum()
        agree, most = min(1.0, 1.1 * float((part_of**2).sum())), min(1.0, 1.1 * float(part_of.max()))
        worst = min(worst, len(rows) ** 2 * agree**BLOCK + len(rows) * most**BLOCK)
    return min(1.0, worst)


def _elsewhere(runs: list[Run], added: bool) -> float:
    """Two samples: noise where people are (or where somebody is added), and where nobody is. Kolmogorov and Smirnov."""
    from scipy.stats import ks_2samp

    worst, laws = 1.0, dict.fromkeys(each.law for run in runs for each in run)
    for law in laws:
        here, there = [], []
        for each in (each for run in runs for each in run if each.law == law):
            chosen: NDArray[np.bool_] = each.shift != 0 if added else each.occupied & (each.shift == 0)
            here.append(each.noise[chosen])
            there.append(each.noise[~each.occupied & (each.shift == 0)])
        one, other = _joined(here), _joined(there)
        if min(len(one), len(other)) >= 8:
            worst = min(worst, float(ks_2samp(one, other, method="asymp").pvalue))
    return min(1.0, worst * max(len(laws), 1))


def _far(runs: list[Run]) -> float:
    """Where somebody is added, is noise further from 0 than elsewhere? Fisher's combination of its ranks by size.

    That finds sums that are moved by more than the rule allows, from few runs. Ranks have ties, so p-values of single
    numbers are too large rather than too small, and so is that of all.
    """
    from scipy.stats import chi2

    score, degrees = 0.0, 0
    for law in dict.fromkeys(each.law for run in runs for each in run):
        of_law = [each for run in runs for each in run if each.law == law]
        others = np.sort(np.abs(_joined([each.noise[each.shift == 0] for each in of_law])))
        moved = np.abs(_joined([each.noise[each.shift != 0] for each in of_law]))
        if len(others) < FEWEST or not len(moved):
            continue
        above = len(others) - np.searchsorted(others, moved, "left")
        score -= 2 * float(np.log((above + 1) / (len(others) + 1)).sum())
        degrees += 2 * len(moved)
    return float(chi2.sf(score, degrees)) if degrees else 1.0


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


@dataclass
class Copies:
    """The last `BLOCK` numbers of each answer about so many places that the last ones are empty; by law."""

    answers: int = 0
    _seen: dict[str, set[bytes]] = field(default_factory=dict)
    _often: dict[str, dict[int, int]] = field(default_factory=dict)
    _copied: dict[str, int] = field(default_factory=dict)

    def add(self, observations: Iterable[Observation]) -> None:
        """What was seen of some runs: O(answers)."""
        for asked, answer in ((each.asked, each.answer) for seen in observations for each in summed(seen)):
            if len(answer.sums) < 8 * BLOCK:
                continue
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
