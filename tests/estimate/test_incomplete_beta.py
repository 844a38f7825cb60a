"""The distribution function of Beta laws: SciPy is the oracle."""

import numpy as np
import pytest
from scipy.special import betainc

from hazemap.estimate.cut_cell_uncertainty import beta_distribution


@pytest.mark.parametrize(("most", "error"), [(1e2, 1e-11), (1e6, 1e-8), (1e9, 1e-4)])
def test_it_is_what_scipy_says(most, error):
    rng = np.random.default_rng(1)
    a, b = 10 ** rng.uniform(-9, np.log10(most), (2, 20_000))
    middle = a / (a + b)
    spread = np.sqrt(middle * (1 - middle) / (a + b + 1))
    near = np.clip(middle + 2 * rng.normal(size=20_000) * spread, 0, 1)
    at = np.where(rng.random(20_000) < 0.5, rng.random(20_000), near)
    found = beta_distribution(a, b, at)
    assert np.abs(found - betainc(a, b, at)).max() < error
    twin = beta_distribution(a, 1.001 * b, at)
    assert np.abs(twin - betainc(a, b, at)).max() > 1e-5


def test_its_ends_are_sure():
    a, b = np.array([1e-17, 0.5, 3.0, 1e8]), np.array([2.0, 1e-17, 0.5, 1e8])
    assert beta_distribution(a, b, np.zeros(4)).tolist() == [0.0] * 4
    assert beta_distribution(a, b, np.ones(4)).tolist() == [1.0] * 4
    assert len(beta_distribution(a[:0], b[:0], a[:0])) == 0


def test_no_question_of_a_region_loads_scipy():
    import subprocess
    import sys

    asked = """
import sys
import numpy as np
from hazemap.cellmap import Spread
from hazemap.estimate.cut_cell_uncertainty import placed

placed(np.full(3, 0.4), np.full(3, 50.0), np.full(3, 0.1), Spread(3.0, 1.0), 0.95)
sys.exit("scipy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
