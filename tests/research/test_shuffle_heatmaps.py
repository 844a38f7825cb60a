"""Heatmaps through a shuffler are as near as a curator's, and the page is what was measured."""

import json
from pathlib import Path

import pytest

from research.benchmarks.shuffle_heatmaps_page import page

ROOT = Path(__file__).parents[2]
ROWS = json.loads((ROOT / "research" / "benchmarks" / "results" / "shuffle_heatmaps.json").read_text())
CROWDS = sorted({(row["method"], row["people"]) for row in ROWS if row["part"] == "people"})


@pytest.mark.parametrize(("method", "people"), CROWDS)
def test_a_shuffler_s_map_is_as_near_as_a_curator_s(method, people):
    """Within 1.2 ×, but for what chance explains."""
    found = {
        row["trust"]: row for row in ROWS if (row["part"], row["method"], row["people"]) == ("people", method, people)
    }
    mine, theirs = found["a shuffler"], found["a curator"]
    chance = mine.get("band", 0) + theirs.get("band", 0)
    assert mine["emd"] <= 1.2 * theirs["emd"] + chance


def test_the_page_is_made_of_the_measurements():
    assert (ROOT / "docs" / "results" / "shuffle-heatmaps.md").read_text() == page(ROWS)
