"""`hazemap compare`."""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.draw import figure_layout as drawn
from hazemap.lab.compare import run_comparison as running
from hazemap.lab.compare.presets import PRESETS, QUICK
from hazemap.lab.compare.run_comparison import Done, attempted


@pytest.fixture
def small(tmp_path):
    """Two maps in the folder, and options that compare two methods on them."""
    for number, name in enumerate(("one", "two")):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(number).poisson(30.0, (16, 16)))
    maps = ("--map", "one=one.npy", "--map", "two=two.npy")
    return (
        "compare",
        "quick",
        *maps,
        "--method",
        "AG",
        "--method",
        "flat:3",
        "-e",
        "0.5",
        "-e",
        "2",
        "--repetitions",
        "2",
    )


@pytest.fixture
def here(monkeypatch):
    """In this process: starting others takes seconds. Whatever is in `stop` ends the run after so many trials."""
    monkeypatch.setattr(drawn, "DPI", 50)
    stop = []

    def measured(tasks, maps, jobs):
        for number, task in enumerate(tasks):
            if stop and number == stop[0]:
                raise KeyboardInterrupt
            yield Done(task, *attempted(task.trial, maps[task.digest], set()))

    monkeypatch.setattr(running, "measured", measured)
    return stop


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take most of the time, and one test draws them."""
    quick = replace(QUICK, figures=())
    monkeypatch.setitem(PRESETS, "quick", quick)


def test_a_comparison_is_tables_figures_and_a_page(here, hazemap, small, home, tmp_path):
    done = hazemap(*small, "-o", "out")
    assert done.code == 0, done.err
    for words in (
        "one (7.",
        "two (7.",
        "AG",
        "flat:3",
        "rectangles, %: ε = 0.5",
        "16 trials, 16 of them new",
        "± is half a",
    ):
        assert words in done.out
    page = (tmp_path / "out" / "page.md").read_text()
    assert "your own: one.npy" in page and "2 releases for each" in page
    for line in page.splitlines():
        if line.startswith("!["):
            picture = tmp_path / "out" / line.partition("(")[2].removesuffix(")")
            assert picture.read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "results.parquet").exists() and not home.exists()


def test_a_comparison_can_be_read_by_machines_and_goes_on(here, undrawn, hazemap, small):
    here.append(5)
    stopped = hazemap(*small)
    assert stopped.code == 130
    assert "the same command goes on" in stopped.err
    here.clear()
    done = hazemap(*small, "--json")
    assert done.code == 0 and done.err == ""
    assert (done.json["trials"], done.json["new"], done.json["failed"]) == (16, 11, [])
    assert done.json["files"][0] == "comparison/results.parquet"
    assert hazemap(*small, "--json").json["new"] == 0
    assert hazemap(*small, "--json", "--afresh").json["new"] == 16


def test_the_earth_movers_distance_is_measured_when_asked_for(here, undrawn, hazemap, small):
    done = hazemap(*small, "--emd", "--json")
    assert any("EMD" in column for column in done.json["tables"][0]["rows"][0]) or done.json["trials"] == 16
    import pyarrow.parquet as pq

    assert "emd" in pq.read_schema("comparison/results.parquet").names


def test_all_that_can_be_compared_is_listed(hazemap):
    done = hazemap("compare", "--list")
    for words in ("quick", "gaussian-50", "--method adaptive-grid"):
        assert words in done.out
    machine = hazemap("compare", "--list", "--json").json
    assert machine["maps"]["city"]["needs data"] is False and "AG" in machine["methods"]


def test_a_trial_that_fails_is_said_and_makes_the_command_fail(undrawn, hazemap, small, monkeypatch):
    def measured(tasks, maps, jobs):
        for number, task in enumerate(tasks):
            yield (
                Done(task, None, "no luck")
                if number == 3
                else Done(task, *attempted(task.trial, maps[task.digest], set()))
            )

    monkeypatch.setattr(running, "measured", measured)
    done = hazemap(*small)
    assert done.code == 1 and "no luck" in done.err and "1 trials failed" in done.err
    assert "15 trials" in done.out


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("slow",), "there is no comparison 'slow'"),
        (("--map", "twitter"), "there is no map 'twitter'; there are city"),
        (("--map", "atlantis"), "there is no map"),
        (("--map", "a b=one.npy"), "NAME=FILE"),
        (("--map", "city=none.npy"), "not there"),
        (("--map", "city", "--method", "magic"), "there is no method 'magic'"),
        (("--map", "city", "-e", "-1"), "epsilon must be above 0"),
        (("--map", "city", "--repetitions", "0"), "--repetitions"),
    ],
)
def test_comparisons_of_nonsense_are_refused(wrong, words, hazemap):
    done = hazemap("compare", *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_any_comparison_can_be_measured_beside_what_is_done_today(here, hazemap, small, tmp_path):
    words = (
        "--baseline",
        "k-anonymity:5",
        "--map",
        "one=one.npy",
        "--method",
        "flat:3",
        "-e",
        "1",
        "--repetitions",
        "1",
    )
    done = hazemap("compare", "quick", *words, "-o", "out")
    assert done.code == 0, done.err
    page = " ".join((tmp_path / "out" / "page.html").read_text().split())
    for said in (
        "<b>k-anonymity:5</b> on one",
        "These methods: flat:3, k-anonymity:5; on one; ε 1.",
        "Somebody who knows",
    ):
        assert said in page
