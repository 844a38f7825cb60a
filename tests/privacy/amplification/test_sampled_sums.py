"""Reports that are really drawn give away no more than the price, and a wrong price is found out.

An event is chosen from one half of the draws; the other half bounds its probabilities by Clopper and Pearson, so that
each judgement errs with probability 10⁻⁷ at most.
"""

import numpy as np
import pytest

from hazemap.lab.audit.findings import at_least, at_most
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, losses

DRAWS = 2_000_000
HONEST = 100
EPSILON = 0.2


def sums(law: BitFlipLaw, own: int, rng: np.random.Generator) -> np.ndarray:
    """Two coordinates of the sum, int[DRAWS, 2]: one person in bin `own`, 99 others in other bins, coin by coin."""
    chance = np.full((HONEST, 2), float(law.turn_on[0]))
    chance[0, own] = float(law.keep[0])
    total = np.zeros((DRAWS, 2), dtype=np.int16)
    for person in range(HONEST):
        total += rng.random((DRAWS, 2), dtype=np.float32) < chance[person]
    return total


def delta_at_least(law: BitFlipLaw, seed: int) -> float:
    rng = np.random.default_rng(seed)
    one, other = (sums(law, own, rng) for own in (0, 1))
    half = DRAWS // 2
    score = (one[:, 0] - one[:, 1], other[:, 0] - other[:, 1])
    best = max(
        range(-5, 20), key=lambda t: np.mean(score[0][:half] >= t) - np.exp(EPSILON) * np.mean(score[1][:half] >= t)
    )
    hits = [int(np.sum(x[half:] >= best)) for x in score]
    return at_least(hits[0], half, 5e-8) - float(np.exp(EPSILON)) * at_most(hits[1], half, 5e-8)


@pytest.mark.slow
def test_drawn_reports_give_away_no_more_than_the_price_and_a_wrong_law_is_found_out():
    law, wrong = BitFlipLaw.asymmetric(3), BitFlipLaw.asymmetric("2.7")
    (priced,) = losses([SumRound(law, HONEST)], 1e-12, ReportNeighbours.REPLACEMENT)
    (too_low,) = losses([SumRound(wrong, HONEST)], 1e-12, ReportNeighbours.REPLACEMENT)
    found = delta_at_least(law, seed=7)
    assert found <= priced.delta(EPSILON)
    assert found > too_low.delta(EPSILON)
