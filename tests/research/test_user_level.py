"""Comparisons on values of people with many records: the papers' experiments, each tried on a small table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, chop_user
from hazemap.draw import figure_layout as drawn
from hazemap.errors import FileError, InputError
from hazemap.lab.compare import run_comparison as running
from hazemap.lab.compare.datasets import MADE_UP
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.practices import AG
from hazemap.lab.compare.report_page import written
from hazemap.lab.compare.result_tables import by_map
from hazemap.lab.compare.results import Results
from hazemap.lab.compare.run_comparison import RESULTS, Done, attempted, compared
from hazemap.lab.compare.trial_settings import Everyone, Trial
from hazemap.values.quantizer import Quantizer
from research.compare.evaluation_datasets import TABLES as KIND
from research.compare.evaluation_datasets import evaluation_datasets, known_datasets
from research.compare.presets import PRESETS
from research.compare.presets import user_level as users
from research.compare.user_level.distribution_trees import BINARY, CHOSEN, FLAT, FOUR, SEVENTEEN, Bins
from research.compare.user_level.interval_queries import IntervalQueries
from research.compare.user_level.many_cells import ManyCells
from research.compare.user_level.mean_mechanisms import ARRAYS, BALANCED, LEVY, MECHANISMS, PLAIN, WRAPPED
from research.compare.user_level.mean_trials import Draws, Scaled
from research.compare.user_level.one_cell import OneCell
from research.compare.user_level.published_means import PlainMean, worst_case_error
from research.compare.user_level.published_results import PUBLISHED, elsewhere, equalled, surpassed
from research.compare.user_level.user_suppression import CHOP_USER, EVERYBODY, EveryCell
from research.compare.user_level.worst_case_error import WorstCase

TABLES = {entry.name for entry in known_datasets(None).values() if entry.kind == KIND}


def a_cell(people=25, seed=1):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), rng.integers(1, 12, people))
    return OneCell("a cell", Quantizer(0, 65), person, rng.normal(20, 6, len(person)))


@pytest.fixture
def data(tmp_path):
    """A folder like that of the evaluation data, with a few made-up rows."""
    rng, folder = np.random.default_rng(5), tmp_path / "data"
    folder.mkdir()
    user = rng.integers(0, 30, 400)
    pd.DataFrame({"user": user, "speed_kmh": rng.normal(21, 8, 400)}).to_parquet(folder / "itms_surat_cell.parquet")
    for (file, column, _, _, _), (lon, lat) in zip(
        users_tables().values(), ((-97.74, 30.27), (-122.41, 37.77)), strict=True
    ):
        table = {
            "user": user,
            "lon": lon + rng.choice([0.0, 0.05, 0.1], 400),
            "lat": np.full(400, lat),
            "ts": pd.to_datetime(rng.integers(1_400_000_000, 1_400_010_000, 400), unit="s", utc=True),
            column: np.where(rng.random(400) < 0.05, np.nan, rng.normal(9, 3, 400)),
        }
        pd.DataFrame(table).to_parquet(folder / f"{file}.parquet")
    return folder


def users_tables():
    from research.compare.user_level.tables import SPEEDS

    return SPEEDS


@pytest.fixture
def here(monkeypatch):
    """Trials are measured in this process, and figures are small."""
    monkeypatch.setattr(drawn, "DPI", 50)

    def measured(tasks, maps, jobs):
        for task in tasks:
            yield Done(task, *attempted(task.trial, maps[task.digest], set()))

    monkeypatch.setattr(running, "measured", measured)


def small(preset):
    """Each method and kind of setting of a comparison, once or twice."""
    settings = {
        "users-means": (Draws(2),),
        "users-cells": (Draws(2),),
        "users-samples": (Scaled(2, samples=1), Scaled(2, samples=3)),
        "users-people": (Scaled(2, people=1), Scaled(2, people=3)),
        "users-distributions": (Bins(10, 2), Bins(20, 2)),
    }
    changes = {"settings": settings[preset.name]} if preset.name in settings else {}
    if preset.name == "users-lengths":
        some = preset.more[0]
        changes = {"epsilons": preset.epsilons[::4], "more": (replace(some, methods=some.methods[::9]),)}
    elif preset.name == "users-chop":
        changes = {"pairs": tuple(pair for pair in preset.pairs if pair[1].least == 1), "epsilons": ("0.1", "2")}
    else:
        changes |= {"epsilons": preset.epsilons[-1:], "maps": preset.maps[::5], "methods": preset.methods[::4]}
    return replace(preset, repetitions=min(preset.repetitions, 2), **changes)


@pytest.mark.parametrize("name", [preset.name for preset in users.PRESETS])
def test_every_comparison_of_values_asks_for_tables_methods_and_scores_that_there_are(name):
    preset = PRESETS[name]
    assert set(preset.places) <= TABLES and preset.noun == "table" and preset.what
    assert set(preset.scores) <= set(MEASURES) and preset.figures
    assert len({method.name for method in preset.methods}) == len(preset.methods)
    for trial in preset.trials():
        assert isinstance(trial.method, trial.setting.methods)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(preset.name, marks=[pytest.mark.slow] * (preset.name == "users-lengths"))
        for preset in users.PRESETS
    ],
)
def test_a_small_run_of_each_has_results_figures_and_a_page_and_goes_on(name, here, data, tmp_path):
    preset, atlas, out = small(PRESETS[name]), evaluation_datasets(data), tmp_path / "out"
    trials = list(preset.trials())
    first = compared(trials[: len(trials) // 2], atlas, out, jobs=1)
    outcome = compared(trials, atlas, out, jobs=1)
    assert not first.failures and not outcome.failures
    assert len(outcome.rows) == len(trials) and 0 < outcome.fresh < len(trials)
    assert compared(trials, atlas, out, jobs=1).fresh == 0
    results = Results.read(out / RESULTS, {place: atlas.map(place) for place in preset.places})
    for score in preset.scores:
        assert np.isfinite(results.frame[score]).all()
    page, html, *pictures = written(preset, results, out)
    assert html.name == "page.html" and html.read_text().count("data:image/png") == len(pictures)
    assert len(pictures) == len(preset.figures) and all(path.stat().st_size > 1000 for path in pictures)
    text = page.read_text()
    assert "nan" not in text.lower()
    drawn_ones = name not in ("users-lengths", "users-chop")
    assert ("releases for each table, method and ε" in " ".join(text.split())) == drawn_ones
    assert ("Nothing is drawn" in text) != drawn_ones


def test_a_draw_is_a_release_of_the_method_and_its_error_is_from_the_mean_of_all_samples():
    cell = a_cell()
    row = Draws(200).measured(cell, PLAIN, "1", 0)
    noise = 65 * cell.table.contributions.most / cell.table.contributions.total  # Laplace: its mean size
    # 200 exponential sizes: their sum is Erlang's, and is 0.4 of its mean off with probability 3e-7
    assert abs(row["mae"] - noise) < 0.4 * noise
    assert row["mae_part"] == pytest.approx(row["mae"] / 65) and row["draws"] == 200
    assert row["noise"] == pytest.approx(2**0.5 * noise, rel=0.01)
    assert not abs(Draws(200).measured(cell, PLAIN, "4", 0)["mae"] - noise) < 0.4 * noise


def test_a_scaled_cell_has_the_numbers_of_the_paper_and_values_of_its_own_for_each_repetition():
    cell = a_cell()
    counts = cell.table.contributions.counts
    more, others = cell.scaled(3, 1, b"0"), cell.scaled(1, 4, b"0")
    assert (more.table.contributions.counts == 3 * counts).all() and others.people == 4 * cell.people
    assert (others.table.contributions.counts == np.repeat(counts, 4)).all()
    assert Scaled(1, people=4).numbers(cell) == others.table.contributions
    wide = cell.scaled(200, 1, b"0")
    assert wide.value.mean() == pytest.approx(cell.value.mean(), abs=0.2) and wide.value.std() > 4
    assert (cell.scaled(3, 1, b"0").value == more.value).all() and (cell.scaled(3, 1, b"1").value != more.value).any()
    assert wide.value.min() >= 0 and wide.value.max() <= 65


def test_the_worst_case_optimum_is_the_best_of_all_lengths():
    cell = a_cell()
    some = cell.table.contributions
    for epsilon in ("0.01", "0.3", "1", "20"):
        row = WorstCase().measured(cell, ARRAYS[3], epsilon, 0)
        every = [65 * worst_case_error(some, m, float(epsilon)) for m in range(1, some.most + 1)]
        assert row["worst"] == pytest.approx(min(every)) and every[row["length"] - 1] == pytest.approx(min(every))
        assert 0 <= row["worst_bias"] <= row["worst"] and row["draws"] == 0
    with pytest.raises(InputError, match="not of Levy"):
        WorstCase().algorithm(cell, LEVY[0], "1")


def test_the_price_falls_and_the_worst_case_does_not_rise():
    rng = np.random.default_rng(3)
    presence = CellVisits.counted(rng.integers(0, 40, 600) ** 2 // 40, rng.integers(0, 12, 600))
    table = ManyCells("some", presence, 30.0)
    for epsilon in ("0.1", "1"):
        for statistics in (1, 2):
            rows = [EveryCell(1, statistics).measured(table, method, epsilon, 0) for method in (EVERYBODY, CHOP_USER)]
            found = chop_user(presence, ChopUserQuery(30.0, statistics == 2), float(epsilon))
            assert [row["factor"] for row in rows] == [found.before, found.after]
            assert rows[0]["worst"] == pytest.approx(found.threshold) and rows[1]["worst"] <= found.threshold * (
                1 + 1e-9
            )
            assert rows[1]["price"] == pytest.approx(found.after * float(epsilon)) and rows[0]["left_out"] == 0


def test_cells_of_few_people_are_left_aside():
    presence = CellVisits(np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 2]), np.arange(1, 7))
    table = ManyCells("some", presence, 1.0)
    assert [table.of_at_least(n).cells for n in (1, 2, 3)] == [3, 2, 1]
    assert table.of_at_least(3).presence.samples.tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="no cell of some has 4"):
        table.of_at_least(4)


def test_the_trees_of_a_distribution_reach_their_bins():
    for bins in (2, 10, 17, 100, 289, 1000, 10_000):
        for method in (CHOSEN, BINARY, FOUR, SEVENTEEN, FLAT):
            reached = np.prod(method.branchings(bins))
            assert reached >= bins and (method is CHOSEN or reached // method.branchings(bins)[0] < bins)
    cell = a_cell()
    row = Bins(10, 3).measured(cell, CHOSEN, "1000000", 0)
    assert row["cdf"] > 0  # a person counts with one of their rows
    lone = OneCell("lone", Quantizer(0, 65), np.arange(50), np.linspace(1, 64, 50))
    assert Bins(10, 3).measured(lone, CHOSEN, "1000000", 0) == {"draws": 3, "cdf": 0.0, "in_order": 1}
    assert Bins(10, 3).measured(lone, IntervalQueries(), "1000000", 0) == {"draws": 3, "cdf": 0.0, "in_order": 1}


def test_trials_that_differ_in_anything_have_keys_of_their_own():
    cell = a_cell()
    one = Trial("a cell", ARRAYS[0], Draws(2), "1", 0)
    others = [
        one,
        *(replace(one, method=method) for method in (ARRAYS[2], WRAPPED[0], LEVY[0], PLAIN, BALANCED)),
        replace(one, setting=Draws(3)),
        *(replace(one, setting=Scaled(2, *scale)) for scale in ((1, 1), (2, 1), (1, 2))),
        replace(one, epsilon="2"),
        replace(one, repetition=1),
    ]
    assert len({trial.key(cell) for trial in others}) == len(others)
    assert replace(one, method=replace(ARRAYS[0], name="other")).key(cell) == one.key(cell)
    assert one.key(a_cell(seed=2)) != one.key(cell)
    table = ManyCells("some", CellVisits(np.array([0, 0]), np.array([0, 1]), np.array([1, 1])), 1.0)
    many = [Trial("some", method, EveryCell(), "1", 0) for method in (EVERYBODY, CHOP_USER)]
    assert len({trial.key(table) for trial in many}) == 2


def test_what_does_not_belong_together_is_refused():
    cell, place = a_cell(), GroundTruthMap.of("some", np.ones((8, 8), dtype=int))
    for trial, data in (
        (Trial("a cell", AG, Everyone(), "1", 0), cell),
        (Trial("some", PLAIN, Draws(), "1", 0), place),
        (Trial("some", PLAIN, Everyone(), "1", 0), place),
        (Trial("a cell", AG, Draws(), "1", 0), cell),
    ):
        with pytest.raises(InputError, match=r"compared on|no method"):
            trial.key(data)


def test_every_mechanism_has_a_name_and_a_method_of_its_own():
    assert len({method.name for method in MECHANISMS}) == len(MECHANISMS)
    some = a_cell().table.contributions
    assert isinstance(PLAIN.algorithm(Quantizer(0, 65), some, "1"), PlainMean)
    assert set(PUBLISHED) <= {method.name for method in MECHANISMS}
    assert not TABLES & set(MADE_UP)


def test_small_places_are_of_the_same_kind():
    cell = a_cell(people=90)
    assert cell.small().people == 20 and cell.small().quantizer == cell.quantizer
    table = evaluation_datasets().map("one-heavy-person")
    assert isinstance(table, ManyCells) and (table.people, table.cells) == (361, 12) and table.small().people == 20


def test_published_figures_stand_beside_ours():
    rows = [
        {"map": "surat-cell", "method": name, "epsilon": epsilon, "mae": mae, "mae_variance": 1.0, "draws": 150}
        for name, epsilon, mae in (
            *(("Levy, m = 114", 0.5, mae) for mae in (1.4, 1.6)),
            *(("balanced", 0.5, 0.55) for _ in range(2)),
        )
    ]
    results = Results(pd.DataFrame(rows), None, {})
    (_, line) = equalled(results).rows
    error = 300**-0.5  # of a mean of 300 draws of variance 1
    assert line == ("Levy, m = 114", "0.5", f"1.500 ± {error:.3f}", "1.36", f"{0.14 / (2**0.5 * error):+.1f}")
    (_, line) = surpassed(results).rows
    assert line == ("0.5", "0.550", "1.10", "50%", "Levy, m = 114: 1.500", "63%")
    (_, line) = elsewhere(results).rows
    assert line == ("0.5", "1 of 1", "0.37")
    nothing = Results(pd.DataFrame([{"map": "x", "method": "AG", "epsilon": 1.0, "mre": 1.0}]), None, {})
    assert [verdict(nothing) for verdict in (equalled, surpassed, elsewhere)] == [None] * 3


def test_columns_may_be_of_a_setting_and_lines_of_one_price_are_compared_alone():
    rows = [
        {"map": "m", "people": 9, "method": name, "epsilon": epsilon, "set_bins": bins, "cdf": error / bins / epsilon}
        for name, error in (("chosen", 0.01), ("flat", 0.03))
        for epsilon in (0.1, 1.0)
        for bins in (1.0, 10.0)
    ]
    (table,) = by_map(Results(pd.DataFrame(rows), None, {}), ("cdf",), "set_bins")
    assert table.rows == (
        ("method", "ε", "ℓ₂ error, 10⁻³: bins = 1", "ℓ₂ error, 10⁻³: bins = 10"),
        ("chosen", "0.1", "**100.000**", "**10.000**"),
        ("chosen", "1", "**10.000**", "**1.000**"),
        ("flat", "0.1", "300.000", "30.000"),
        ("flat", "1", "30.000", "3.000"),
    )
    assert by_map(Results(pd.DataFrame(rows), None, {}), ()) == []


def test_a_folder_without_the_tables_says_so(tmp_path):
    with pytest.raises(InputError, match=r"surat-cell is made of the evaluation data.*--data FOLDER"):
        evaluation_datasets().map("surat-cell")
    for name, file in (("surat-cell", "itms_surat_cell"), ("austin-cells", "austin_bus_2015")):
        with pytest.raises(FileError, match=f"{file}.parquet is not in the folder"):
            evaluation_datasets(tmp_path).map(name)


def test_the_tables_of_the_evaluation_data_are_those_of_the_papers(shared):
    atlas = evaluation_datasets(shared / "data")
    cell = atlas.map("surat-cell")
    assert (cell.people, cell.samples) == (217, 17_166)
    table = atlas.map("austin-cells")
    assert (table.people, table.size["pairs"]) == (348, len(table.presence.person))
    assert int(table.presence.cells_of_people.max()) == 348
    full = [atlas.map(f"austin-cell-{rank}").samples for rank in (1, 2)]
    assert full == [552, 552]
