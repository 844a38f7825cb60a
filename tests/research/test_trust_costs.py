"""What was measured of trust models keeps what was promised of them, and the page is what was measured."""

import json
from pathlib import Path

import pytest

from research.benchmarks.trust_page import page

ROOT = Path(__file__).parents[2]
FACTS = json.loads((ROOT / "research" / "benchmarks" / "results" / "trust_costs.json").read_text())


@pytest.mark.parametrize(
    ("trust", "most"),
    [("two servers, a report a round", 1.5), ("two servers, one report", 3), ("a shuffler, in parts", 1.2)],
)
def test_a_map_of_the_city_is_nearly_as_good_as_a_curator_s_of_the_same_people(trust, most):
    errors = {row["trust"]: row["mse"] for row in FACTS["rows"] if (row["map"], row["method"]) == ("city", "adaptive")}
    assert FACTS["people"] == 100_000
    assert errors[trust] <= most * errors["a curator of a sample"]
    assert errors[trust] <= most * errors["a curator"]


def test_the_page_is_made_of_the_measurements():
    assert (ROOT / "docs" / "results" / "trust.md").read_text() == page(FACTS)
