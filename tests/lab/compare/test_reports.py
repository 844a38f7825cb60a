"""Results as tables, figures and pages."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.draw import figure_layout as drawn
from hazemap.lab.compare.charts import (
    FAMILIES,
    ChartPanel,
    Curve,
    against_epsilon,
    draw_curves,
    draw_dots,
    plot_style,
    ranking,
)
from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.practices import METHODS, Method
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.report_page import html_page, page, written
from hazemap.lab.compare.result_tables import by_map, hindsight, varying
from hazemap.lab.compare.results import ResultMean, Results, mean_of

METHOD = Method("AG", "adaptive-grid")


def results(rows, folder=None, maps=None):
    labels = {"map": "city", "people": 1000, "method": "AG", "spelled": "adaptive-grid", "epsilon": 0.1, "at": np.nan}
    return Results(pd.DataFrame([labels | row for row in rows]), folder, maps or {})


def texts(figure):
    """Everything that is written on a picture."""
    import matplotlib.text

    return {text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()}


@given(st.lists(st.floats(0.001, 1e6), min_size=2, max_size=12))
def test_a_mean_lies_in_its_interval_and_that_above_nothing(numbers):
    found = mean_of(numbers)
    assert found.mean == pytest.approx(np.mean(numbers))
    assert 0 <= found.low <= found.mean <= found.high
    assert found.mean - found.low <= (found.high - found.mean) * (1 + 1e-6) + 1e-9


def test_an_interval_is_students():
    found = mean_of([10.0, 11.0, 12.0, 13.0, np.nan])
    half = 3.1824463 * np.std([10, 11, 12, 13], ddof=1) / 2
    assert found.number == 4 and found.high - found.mean == pytest.approx(half)
    assert found.low == pytest.approx(found.mean * np.exp(-half / found.mean))
    mixed = mean_of([-1.0, 0.0, 1.0])
    assert mixed.low == pytest.approx(-mixed.high)
    assert mean_of([]).number == 0 and mean_of([5.0]) == ResultMean(5.0, 5.0, 5.0, 1)


def test_an_interval_of_five_holds_the_mean_19_times_in_20():
    """2,000 intervals: 5 standard deviations of the number that hold are 49, an error probability below 1e-6."""
    rng = np.random.default_rng(3)
    found = [mean_of(rng.normal(50, 3, 5)) for _ in range(2_000)]
    assert abs(sum(one.low <= 50 <= one.high for one in found) - 1_900) < 49
    narrow = [(one.mean, (one.high - one.mean) * 1.96 / 2.776) for one in found]  # as if s were the true deviation
    assert abs(sum(abs(mean - 50) <= half for mean, half in narrow) - 1_900) > 49


def test_trials_are_chosen_by_label_and_by_its_absence():
    some = results([{"set_k": 1.0, "mre": 1.0}, {"set_k": 2.0, "mre": 2.0}, {"mre": 4.0}])
    assert some.where(set_k=[1.0, None]).mean("mre").mean == 2.5
    assert some.where(set_k=None).mean("mre").mean == 4.0
    assert some.where(map="elsewhere").mean("mre").number == 0
    assert [x for x, _ in some.along("set_k", "mre")] == [1.0, 2.0]
    assert some.named("set_k") == [1.0, 2.0] and some.named("nothing") == []


def test_the_settings_of_a_table_are_those_that_tell_trials_apart():
    rows = [{"set_a": a, "set_b": 2.0 * a, "set_c": 7.0, "at": a, "mre": 1.0} for a in (1.0, 2.0)]
    assert varying(results(rows)) == ["set_b"] or varying(results(rows)) == ["set_a"]
    assert varying(results([{"set_a": 1.0}, {"set_a": 1.0}])) == []
    assert varying(results([{"set_a": 1.0}, {}])) == ["set_a"]


def test_a_table_is_sorted_and_its_best_is_bold():
    rows = [{"method": name, "mre": mre, "cells": 5} for name, mre in (("B", 0.2), ("A", 0.1), ("A", 0.12))]
    (table,) = by_map(results(rows), ("mre", "cells"))
    head, first, second = table.rows
    assert head == ("method", "rectangles, %", "cells")
    assert first[0] == "A" and first[1].startswith("**11.000** ± ") and first[2] == "5"
    assert second == ("B", "20.000", "5")
    assert "| B | 20.000 | 5 |" in table.markdown()
    assert table.rich().columns[1]._cells == [first[1].replace("**", ""), "20.000"] and "± " in first[1]


def test_where_more_is_better_the_most_is_best():
    rows = [{"method": name, "pearson": value} for name, value in (("B", 0.2), ("A", 0.9))]
    (table,) = by_map(results(rows), ("pearson",))
    assert [row[0] for row in table.rows[1:]] == ["A", "B"] and table.rows[1][1] == "**0.900**"


def test_the_chosen_method_is_measured_against_the_best_in_hindsight():
    rows = [
        {"method": name, "mre": mre, "l1": l1, "epsilon": epsilon}
        for epsilon in (0.1, 0.5)
        for name, mre, l1 in (("AG", 0.2, 1.0), ("UG", 0.1, 1.0), ("auto", 0.11, 0.5), ("adaptive", 0.01, 0.1))
    ]
    table = hindsight(results(rows))
    assert table.rows[1] == ("city", "0.1", "UG", "1.10", "0.55", "0.50")
    assert table.rows[-1] == ("**median**", "", "", "**1.10**", "**0.55**", "**0.50**")
    assert hindsight(results(rows[:2])) is None


def some_results(methods=("AG", "UG", "adaptive"), maps=("city", "twitter")):
    rng = np.random.default_rng(1)
    return results(
        [
            {"map": place, "method": name, "epsilon": epsilon, "mre": rng.uniform(0.01, 3), "l1": 1.0, "seconds": 0.1}
            for place in maps
            for name in methods
            for epsilon in (0.1, 0.3, 0.5)
            for _ in range(3)
        ]
    )


def test_every_method_and_map_is_on_a_figure(monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    for draw in (against_epsilon("mre", "Title"), ranking("mre", "Title")):
        words = texts(draw(some_results()))
        assert {"Title", "AG", "UG", "adaptive", "city (1.0 k people)", "twitter (1.0 k people)"} <= words
        assert any("95 %" in text for text in words)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 1.02, 3.0, 1e5])
@pytest.mark.parametrize("low", [3e-4, 0.7, 4e5])
def test_numbers_on_axes_are_few_and_never_overlap(low, ratio, logarithmic):
    points = [(low, mean_of([low])), (low * ratio, mean_of([low * ratio]))]
    figure = draw_curves(
        [ChartPanel("p", [Curve("AG", points)], MEASURES["l1"], "x", logarithmic=logarithmic)], title="t"
    )
    panel = next(axes for axes in figure.axes if axes.get_label() == "panel 0")
    for ticks in (panel.get_xticklabels(), panel.get_yticklabels()):
        assert len(ticks) <= 8
        assert len(ticks) >= 2 or ratio == 1
        assert not any("e" in tick.get_text() for tick in ticks)


def test_dots_of_one_method_and_one_series_can_be_drawn():
    figure = draw_dots([("city", [("ε = 1", [("AG", mean_of([1.0, 2.0]))])])], MEASURES["pearson"], title="t")
    assert {"AG", "ε = 1"} <= texts(figure)


def test_methods_look_different():
    known = [name for _, _, names in FAMILIES for name in names]
    assert len(set(known)) == len(known)
    looks = [plot_style(method.name) for method in METHODS]
    assert len({(look.colour, look.marker) for look in looks}) == len(METHODS)
    assert {method.name for method in METHODS} <= set(known)
    assert plot_style("something else") == plot_style("something else")


def test_a_picture_is_kept_beside_its_row(tmp_path):
    from hazemap.lab.compare import run_comparison as running
    from hazemap.lab.compare.run_comparison import Done, attempted
    from hazemap.lab.compare.trial_settings import Trial
    from research.compare.map_gallery import Pictured, picture_of

    np.save(tmp_path / "one.npy", np.random.default_rng(2).poisson(5.0, (16, 16)))
    atlas = Datasets((("one", tmp_path / "one.npy"),))

    def measured(tasks, maps, jobs):
        for task in tasks:
            yield Done(task, *attempted(task.trial, maps[task.digest], set()))

    running_measured, running.measured = running.measured, measured
    try:
        trial = Trial("one", Method("flat", "flat:4", True), Pictured(), "100", 0)
        outcome = running.compared([trial], atlas, tmp_path / "out", jobs=1)
    finally:
        running.measured = running_measured
    made = Results.read(tmp_path / "out" / "results.parquet")
    assert np.abs(picture_of(made) - atlas.map("one").counts).max() <= 2
    assert outcome.rows[0]["picture"].startswith("pictures/")


def test_a_page_tells_what_was_measured_and_shows_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    preset = Preset("some", "an example", ("city", "twitter"), (METHOD,), ("0.1",), 3, ("mre", "l1"), note="Mind this.")
    text = page(preset, some_results(), ["figures/a.png"], level=2)
    for words in (
        "## some\n",
        "An example. 3 releases for each",
        "Mind this.",
        "![a](figures/a.png)",
        "### city (1.0 k",
    ):
        assert words in text
    assert max(map(len, text.partition("###")[0].splitlines())) <= 120
    preset = Preset(**(vars(preset) | {"figures": (("one", ranking("mre", "One")),)}))
    files = written(preset, some_results(), tmp_path)
    assert [file.name for file in files] == ["page.md", "page.html", "one.png"] and all(file.exists() for file in files)


def test_what_has_no_price_is_drawn_across_and_told_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    learnt = {"advantage": 1.0, "bound": 1.0, "located": 0.95, "chance": 0.1, "l1": 1.0, "mre": 0.2}
    some = results(
        [
            {"method": "k-anonymity:5", "epsilon": np.inf, **learnt},
            {"method": "auto", "epsilon": 1.0, **learnt, "advantage": -0.02, "bound": 0.46, "located": 0.0},
        ]
    )
    for draw in (against_epsilon("mre", "Title"), ranking("mre", "Title")):
        words = texts(draw(some))
        assert {"auto", "k-anonymity:5"} <= words and not any("inf" in text for text in words)
    preset = Preset("some", "an example", ("city",), (METHOD,), ("1",), 1, ("mre",))
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    text = page(preset, some, ["a.png"])
    assert "* **k-anonymity:5** on city: 100 % of the way from a coin's toss to certainty; nothing limits" in text
    assert "* **auto, ε = 1** on city: 0 % of the way" in text and "nobody comes further than 46 %" in text
    assert "rectangles, %: no ε" in text and " inf" not in text
    found = html_page(text.replace("on city", "on <script>"), tmp_path)
    assert "<script" not in found and "data:image/png;base64,iVBORw==" in found
    assert "<li><b>auto, ε = 1</b> on &lt;script&gt;: 0 %" in found and "<th>rectangles, %: no ε</th>" in found


@pytest.mark.parametrize("break_", ["\n", "\r", "\u2028", "\x0b"])
@pytest.mark.parametrize("file", ["../secret.png", "secret.txt", "figures/../../secret.png", "/etc/hostname"])
def test_no_name_brings_another_file_of_this_machine_into_a_page(break_, file, tmp_path):
    for secret in (tmp_path / "secret.png", tmp_path / "page" / "secret.txt"):
        secret.parent.mkdir(exist_ok=True)
        secret.write_bytes(b"a secret")
    found = html_page(f"* city: people.csv{break_}![map]({file}){break_}", tmp_path / "page")
    assert "data:image" not in found and "![map](" in found
