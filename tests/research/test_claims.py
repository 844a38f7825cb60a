"""Claims of papers held against results: what is found decides the verdict, on made-up results of either kind."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hazemap.lab.compare.charts import HTF_HIGH, HTF_LOW
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.results import Results
from research.benchmarks.city_statistics import PUBLISHED, page, statistics
from research.compare.claims import Claim, Finding, claimed, percent, verdict
from research.compare.leaf_trials import MeasuredLeaves
from research.compare.presets import PRESETS, heatmaps_claims, htf_claims


def results(rows):
    return Results(pd.DataFrame(rows), None, {})


def as_the_paper_says():
    """Figure 4 as it is printed: HTF a tenth of every kd-tree, which are best in between."""
    scores = ("mre", *htf_claims.SQUARES)
    rows = [
        {"method": name, "epsilon": epsilon} | dict.fromkeys(scores, 0.01)
        for name in (HTF_LOW, HTF_HIGH)
        for epsilon in htf_claims.EPSILONS
    ]
    return rows + [
        {"method": name, "epsilon": epsilon, "at": at} | dict.fromkeys(scores, error)
        for name in htf_claims.KD_TREES
        for epsilon in htf_claims.EPSILONS
        for at, error in ((4.0, 0.2), (8.0, 0.08), (12.0, 0.1))
    ]


def test_results_as_the_paper_has_them_agree():
    table = htf_claims.HTF_4(results(as_the_paper_says()))
    assert table.heading == "Figure 4: agrees"
    assert [row[2] for row in table.rows[1:-1]] == ["agrees"] * 4
    assert table.rows[1][1] == "in 18 of 18 cases" and table.rows[3][1] == "by 91 % on average"


def test_results_in_which_kd_trees_are_ahead_do_not():
    rows = [row | ({"mre": 0.001} if "at" in row else {}) for row in as_the_paper_says()]
    table = htf_claims.HTF_4(results(rows))
    assert table.heading == "Figure 4: agrees in part" and table.rows[1][2] == "does not agree"


@pytest.mark.parametrize("ends", [(0.2, 0.1), (0.1, 0.2)])
def test_which_way_is_better_is_known_of_every_metric(ends):
    first, last = ends
    method = {"method": heatmaps_claims.OWN}
    rows = [
        method | {"set_sparsity": at} | dict.fromkeys(heatmaps_claims.METRICS, value) | {"heat_pearson": 1 - value}
        for at, value in ((0.01, first), (0.1, last))
    ]
    rows = [row | {"heat_similarity": row["heat_pearson"]} for row in rows]
    rows += [row | {"method": heatmaps_claims.BASELINE} for row in rows]
    table = heatmaps_claims.sparse(10, "why")(results(rows))
    assert [row[2] for row in table.rows[1:-1]] == (
        ["agrees", "does not agree"] if first < last else ["does not agree", "agrees"]
    )


def test_a_verdict_is_of_all_claims():
    yes, no = (Claim("x", lambda _, holds=holds: Finding("found", holds)) for holds in (True, False))
    headings = [claimed("One", *claims, why="a\n  b")(results([])).heading for claims in ((yes,), (yes, no), (no,))]
    assert headings == ["One: agrees", "One: agrees in part", "One: does not agree"]
    assert claimed("One", yes, why="a\n  b")(results([])).rows[-1] == ("why", "a b", "")
    assert verdict([True, True]) == "agrees" and percent(-0.5) == "−50 %"


def test_leaves_below_0_and_queries_are_measured():
    assert {"negative", "with_queries"} <= set(MEASURES)
    place = GroundTruthMap.of("few", np.eye(16, dtype=np.int64))
    row = MeasuredLeaves().measured(place, Method("singular", "singular", published=True), "0.1", 0)
    assert 0.2 < row["negative"] < 0.7 and row["with_queries"] >= row["seconds"]


def test_every_experiment_of_two_papers_is_judged():
    names = [name for name in PRESETS if name.startswith(("htf-", "heatmaps-"))]
    assert len(names) == 19
    assert all(len(PRESETS[name].verdicts) == 1 for name in names)
    assert replace(PRESETS["htf-4"], verdicts=()).told(results([])) == []


def test_statistics_of_a_city_are_those_of_its_pixels():
    rng = np.random.default_rng(1)
    found = statistics(rng.multinomial(10_000, np.full(1024, 1 / 1024)).reshape(32, 32))
    assert found["entropy"] == pytest.approx(10, abs=0.1) and found["variance"] == pytest.approx(9.8, rel=0.2)
    text = page({name: {"variance": 1.0, "entropy": told} for name, (_, told) in PUBLISHED.items()})
    assert "correlation of 1.00" in text and "| Denver | 1.00 | 19.80 | 16.14 | 16.14 |" in text
