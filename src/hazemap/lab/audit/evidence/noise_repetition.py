"""Whether noise repeats itself: at any distance, read backwards, in another answer, in one place, or in some places.

Signs of symmetric independent noise are fair coins, whatever its law. The products of such coins at one distance, or
at places that mirror each other, are fair coins too, and independent: places and pairs are a forest. So Hoeffding's
bound holds for their sum. Sizes are compared by their ranks, the products of which are the steps of a martingale
(Azuma 1967). All distances and all mirrors come from one Fourier transform, and share the error among themselves.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from hazemap.lab.audit.evidence.noise_residuals import Residual
from hazemap.lab.audit.findings import LawTest, Test
from hazemap.machine_code.arrays import Bools, Floats, Ints

Run = list[Residual]

LONGEST = 1 << 14
"""Numbers of an answer that are compared with each other."""

SHORTEST = 48
"""Pairs below which nothing is said."""

ANSWERS = 24
"""Runs whose answers are compared, at most."""

RESIDUES = (2, 3, 4, 5, 6, 7, 8, 24)
BLOCKS = 16


def tests(runs: list[Run], about: str) -> Iterator[Test]:
    """All tests of some runs on one setting: how many there are does not depend on what was found."""
    count = len(runs)
    signs = [[np.sign(each.noise[:LONGEST]).astype(np.float64) for each in run] for run in runs]
    sizes = [[_ranks(np.abs(each.noise[:LONGEST])) for each in run] for run in runs]
    for name, parts, reach in (("signs", signs, 1.0), ("sizes", sizes, 0.5)):
        pvalue = _repeated(parts, reach)
        yield LawTest("noise repeats itself nowhere", f"{about}: {name}, at all distances and mirrored", pvalue, count)
    yield LawTest("noise falls on every number", about, _exact(runs), count, "a number is without noise too often")
    yield LawTest("noise is as wide everywhere", about, _uneven(runs), count)


def _ranks(numbers: Ints) -> Floats:
    """From −½ to ½, with mean 0 and ties in the middle."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(numbers) / (len(numbers) + 1) - 0.5) if len(numbers) else np.empty(0)


def _repeated(parts: list[list[Floats]], reach: float) -> float:
    """The p-value of the strongest likeness of answers with themselves, with the next round, and with the next run.

    Each pair is looked at by itself, and all pairs of a kind together. `reach` bounds each number. O(n log n) a pair.
    """
    found: list[tuple[Floats, Floats]] = []
    together: dict[tuple[str, int, int, int, bool], tuple[Floats, Floats]] = {}
    for kind, number, one, other in _pairs(parts):
        for turned in (False, True):
            found.append(_products(one, other, turned))
            place = kind, number, len(one), len(other), turned
            known = together.get(place, (np.zeros(1), np.zeros(1)))
            together[place] = known[0] + found[-1][0], known[1] + found[-1][1]
    worst, looked = 0.0, 0
    for sums, many in (*found, *together.values()):
        enough = many >= SHORTEST
        if enough.any():
            # 1 is taken off for ranks, whose mean is known
            score = np.maximum(np.abs(sums[enough]) - reach**2, 0) ** 2 / (2 * reach**4 * many[enough])
            worst, looked = max(worst, float(score.max())), looked + int(enough.sum())
    return min(1.0, 2 * looked * float(np.exp(-worst))) if looked else 1.0


def _pairs(parts: list[list[Floats]]) -> Iterator[tuple[str, int, Floats, Floats]]:
    """Answers that are compared: of what kind a pair is, the round, and both."""
    for run in parts[:ANSWERS]:
        for number, each in enumerate(run):
            yield "itself", number, each, each
        for number, (one, other) in enumerate(pairwise(run)):
            yield "the next round", number, one, other
    for run, later in pairwise(parts[:ANSWERS]):
        for number, (one, other) in enumerate(zip(run, later, strict=False)):
            yield "the next run", number, one, other


def _products(one: Floats, other: Floats, turned: bool) -> tuple[Floats, Floats]:
    """Σ of the products of pairs at each distance, or at each pair of mirrored places; and how many pairs are not 0."""
    same, size = one is other, len(one) + len(other)
    if not len(one) or not len(other):
        return np.zeros(1), np.zeros(1)
    second = other if turned else other[::-1]
    length = 1 << (size - 1).bit_length()

    def convolved(first: Floats, last: Floats) -> Floats:
        return np.asarray(np.fft.irfft(np.fft.rfft(first, length) * np.fft.rfft(last, length), length)[: size - 1])

    sums, many = convolved(one, second), np.rint(convolved((one != 0) * 1.0, (second != 0) * 1.0))
    if same and not turned:
        return sums[len(one) :], many[len(one) :]  # a distance of 1 and more
    if same:  # each pair is there twice, and the middle of some mirrors once
        middle, doubled = np.zeros(size - 1), np.zeros(size - 1)
        middle[::2], doubled[::2] = one**2, one != 0
        return (sums - middle) / 2, (many - doubled) / 2
    return sums, many


def _exact(runs: list[Run]) -> float:
    """How likely any number is to be without noise in so many runs: by how often noise of its law is 0 elsewhere."""
    from scipy.stats import binom

    worst, looked = 1.0, 0
    for zero, often in _by_number(runs, lambda noise: noise == 0):
        part = min(1.0, 1.1 * float(zero.sum() / max(often * len(zero), 1)) + 1e-6)
        worst, looked = min(worst, float(binom.sf(zero.max() - 1, often, part))), looked + len(zero)
    return min(1.0, worst * max(looked, 1))


def _by_number(runs: list[Run], what: Callable[[Ints], Bools]) -> Iterator[tuple[Ints, int]]:
    """Of each answer of every run, where all have as many numbers: how often each of them is such."""
    for number in range(min(map(len, runs), default=0)):
        answers = [run[number] for run in runs]
        if len({(each.law, len(each.noise)) for each in answers}) == 1 and len(answers[0].noise) >= SHORTEST:
            yield np.sum([what(each.noise) for each in answers], axis=0), len(runs)


def _uneven(runs: list[Run]) -> float:
    """The p-value of noise that is wider or narrower in parts of an answer, or at every nth number."""
    from scipy.stats import norm

    scores, numbers = dict[str, float](), dict[str, float]()
    for each in (each for run in runs for each in run):
        size = len(each.noise)
        if size < 2 * SHORTEST:
            continue
        ranks, at = _ranks(np.abs(each.noise)), np.arange(size)
        masks = {f"block {block}": at * BLOCKS // size == block for block in range(BLOCKS)}
        masks |= {f"{rest} of {by}": at % by == rest for by in RESIDUES for rest in range(by)}
        masks |= {"somebody": each.occupied, "nobody": ~each.occupied}
        for name, mask in masks.items():
            chosen = int(mask.sum())
            if 0 < chosen < size:  # of ranks drawn without putting back, exactly
                scores[name] = scores.get(name, 0.0) + float(ranks[mask].sum())
                spread = float(ranks.var(ddof=1)) * chosen * (size - chosen) / size
                numbers[name] = numbers.get(name, 0.0) + spread
    found = [2 * float(norm.sf(abs(scores[name]) / numbers[name] ** 0.5)) for name in scores if numbers[name] > 8]
    return min(1.0, min(found, default=1.0) * max(len(scores), 1))
