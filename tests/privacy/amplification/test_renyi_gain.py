"""What a filter by a Rényi curve would admit beyond the one in ρ: the table of decision 0013."""

import re
from fractions import Fraction
from math import log, log1p
from pathlib import Path

import pytest

from hazemap.federated.device.account.recipe_account import SPILL, largest_rho
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.zcdp_of_sum import SPILL as LEFT_OUT
from hazemap.privacy.amplification.zcdp_of_sum import renyi_of_sum, zcdp_of_sum

DELTA = Fraction(1, 10**6)
ORDERS = [1 + 10 ** (i / 20 - 1) for i in range(90)]
NOTE = Path(__file__).parents[3] / "docs" / "decisions" / "0013-reports-are-filtered-in-rho.md"
ROW = re.compile(r"^\| (\d) \| ([\d,]+) \| (\d) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)
CASES = [(*(int(each.replace(",", "")) for each in row[:3]), row[3], row[4]) for row in ROW.findall(NOTE.read_text())]


def rounds(local, honest, epsilon):
    """How many fit, by ρ and by the order that is best in hindsight; both leave out a hundredth of δ."""
    law = BitFlipLaw.asymmetric(local)
    by_rho = largest_rho(Fraction(epsilon), DELTA) / zcdp_of_sum(law, honest).rho
    curve = renyi_of_sum(law, honest, ORDERS, spill=LEFT_OUT)
    left = log(DELTA * (1 - SPILL))
    by_order = max(
        (epsilon - log1p(-1 / order) + (left + log(order)) / (order - 1)) / float(each)
        for order, each in zip(ORDERS, curve.divergences, strict=True)
        if each
    )
    return float(by_rho), by_order


def test_the_note_has_its_table():
    assert len(CASES) == 8


@pytest.mark.slow
@pytest.mark.parametrize(("local", "honest", "epsilon", "by_rho", "by_order"), CASES)
def test_the_table_of_the_note_is_what_is_computed(local, honest, epsilon, by_rho, by_order):
    found = rounds(local, honest, epsilon)
    assert (f"{found[0]:.2f}", f"{found[1]:.2f}") == (by_rho, by_order)
    assert found[0] <= found[1] <= (1.02 if honest >= 10_000 or local < 6 else 2.5) * found[0]


def test_among_many_people_an_order_admits_hardly_more_and_never_less():
    for local, honest, epsilon in ((4, 1_000, 1), (2, 450, 1)):
        by_rho, by_order = rounds(local, honest, epsilon)
        assert by_rho <= by_order < 1.02 * by_rho
