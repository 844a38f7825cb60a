"""Intervals of shares hold as often as they say: some rounds of research/benchmarks/proportions.py."""

import pytest

from research.benchmarks.proportions import HELD, TRUSTS, measured, page, summed


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["density", "width"])
@pytest.mark.parametrize("trust", TRUSTS)
def test_intervals_of_shares_hold(goal, trust):
    rounds = [measured("town", goal, "1", trust) for _ in range(6)]
    part, _, cells, _ = summed(rounds)
    number = sum(each["intervals"] for each in rounds)
    # Where 95 % should hold, fewer than this do with a probability below 1e-9.
    assert part >= HELD - 5 * (0.95 * 0.05 / number) ** 0.5
    assert cells > 16


def test_the_page_says_which_settings_pass():
    rounds = [{"cells": 20, "intervals": 100, "held": held, "width": 0.1} for held in (96, 95)]
    text = page({"town|width|1|curator": rounds, "town|width|1|devices": [{**rounds[0], "held": 50}] * 3})
    assert "| 95.5% |" in text and "**fails**" in text and "passes" in text
