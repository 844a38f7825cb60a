"""How many people a leaf of HTF should have at each height, and how a budget is best divided if that is known.

Shaham et al. 2022, section 5, equations 29 to 32. A count of p people with noise Lap(1/ε) is *useful* there if its
noise is smaller than p, which has probability 1 − e^(−pε). (Their equation 29 has lost the minus sign.)
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log

import numpy as np

from hazemap.errors import InputError

UNEVEN = 4
"""A half is taken to have at least this part of the people of the cell that is cut."""


def thresholds(people: float, epsilons: Sequence[float]) -> list[float]:
    """How many people a leaf should have at each height, given the epsilon of its count; from the root down.

    p_i that maximise Σ (1 − e^(−ε_i p_i)), the expected number of useful counts, where Σ p_i is the number of people;
    sums are over the nodes of the whole tree, 2^d of them after d cuts. So ε_i e^(−ε_i p_i) is the same for all: p_i =
    (ln ε_i + (N − Σ ln ε_j/ε_j)/Σ 1/ε_j)/ε_i. The paper's equation 31 has both logarithms with the other sign, but its
    threshold of 62 in section 7.7 is what comes out of this. As in the paper, p_i may be below 0 near the root.

    >>> growing = [2 ** (d / 3) for d in range(16)]
    >>> round(thresholds(3.5e6, [0.084 * e / sum(growing) for e in growing])[-1])
    62
    """
    nodes = [2.0**depth for depth in range(len(epsilons))]
    weighed = [number / epsilon for number, epsilon in zip(nodes, epsilons, strict=True)]
    logarithms = sum(weight * log(epsilon) for weight, epsilon in zip(weighed, epsilons, strict=True))
    level = (people - logarithms) / sum(weighed)
    return [(log(epsilon) + level) / epsilon for epsilon in epsilons]


def budgets(epsilon: float, people: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
    """The dual: what of ε each level should get, if its cells have so many people; equation 32, mended.

    ε_i ≥ 0 that maximise Σ n_i (1 − e^(−p_i ε_i)), the expected number of useful counts, where Σ ε_i = ε and level i
    has n_i cells (1 if nothing is said). So n_i p_i e^(−p_i ε_i) is the same for all ε_i above 0: ε_i = (ln n_i p_i +
    (ε − Σ ln(n_j p_j)/p_j)/Σ 1/p_j)/p_i, sums over those. The paper's equation 32 has both logarithms with the other
    sign, and may come out below 0. It also adds up the budgets of all leaves; but leaves have nobody in common, so each
    may spend all of ε, and there is nothing to divide. What must be divided is the way from the root to a leaf.

    >>> [round(part, 3) for part in budgets(0.1, [1000, 100, 50])]
    [0.006, 0.036, 0.058]
    """
    rate = np.array(people, dtype=np.float64)
    number = np.ones(len(rate)) if nodes is None else np.array(nodes, dtype=np.float64)
    if not len(rate) or len(number) != len(rate) or not epsilon > 0 or not min(rate.min(), number.min()) > 0:
        raise InputError("a budget above 0 is divided among levels of cells with people in them")
    merit = np.log(number * rate)
    order = np.argsort(-merit)  # filled up from the highest merit, until the next one lies below the level
    levels = (np.cumsum((merit / rate)[order]) - epsilon) / np.cumsum(1 / rate[order])
    level = levels[int(np.argmax(levels >= np.append(merit[order][1:], -np.inf)))]
    parts: list[float] = (np.maximum(merit - level, 0.0) / rate).tolist()
    return parts


def sure_thresholds(
    negative: Fraction, deciding: Sequence[float], last: Sequence[float], uneven: float = UNEVEN
) -> list[float]:
    """People up to which a cell is a leaf, so that at most the part `negative` of its halves' counts is below 0.

    Equation 31 asks how many counts are larger than their noise, and takes the people to be spread evenly; 16 % of the
    leaves come out below 0 on a city. These thresholds ask for two things at every height, from the root down:

    * a cell of nobody is cut with probability `negative` at most: its count that decides has ε = `deciding`, and
      P(Lap(1/ε) > p) = e^(−pε)/2;
    * a half with one in `uneven` of the people of a cell that is cut is below 0 with probability `negative` at most,
      where its last count has ε = `last`.

    It holds for every half that is no emptier than that. A half of nobody is below 0 half of the time, wherever it is
    cut off, so on maps with much empty ground more leaves are negative.

    >>> [round(full) for full in sure_thresholds(Fraction(1, 50), [0.001, 0.002, 0.01], [0.08, 0.07, 0.06])]
    [3219, 1609, 322]
    """
    if not 0 < negative < Fraction(1, 2) or uneven < 1:
        raise InputError("the part of leaves that may be negative is above 0 and below 1/2")
    sure = log(1 / (2 * float(negative)))
    return [max(sure / first, uneven * sure / final) for first, final in zip(deciding, last, strict=True)]
