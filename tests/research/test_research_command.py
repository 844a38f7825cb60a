"""`python -m research.compare`: the same command with evaluation data, on maps and on values of people."""

import numpy as np
import pandas as pd
import pytest

from hazemap.draw import figure_layout as drawn
from hazemap.lab.compare import run_comparison as running
from hazemap.lab.compare.run_comparison import Done, attempted


@pytest.fixture
def here(monkeypatch):
    """In this process: starting others takes seconds."""
    monkeypatch.setattr(drawn, "DPI", 50)

    def measured(tasks, maps, jobs):
        for task in tasks:
            yield Done(task, *attempted(task.trial, maps[task.digest], set()))

    monkeypatch.setattr(running, "measured", measured)


def test_a_comparison_of_means_is_run_like_any_other(here, compare, tmp_path):
    rng = np.random.default_rng(1)
    table = {"user": rng.integers(0, 20, 200), "speed_kmh": rng.normal(20, 5, 200)}
    pd.DataFrame(table).to_parquet(tmp_path / "itms_surat_cell.parquet")
    wanted = ("users-means", "--data", ".", "--method", "balanced", "--method", "Levy, median", "-e", "1")
    done = compare(*wanted, "--repetitions", "2", "-o", "out")
    assert done.code == 0, done.err
    for words in ("surat-cell (20", "balanced", "Levy, median", "MAE", "4 trials, 4 of them new"):
        assert words in done.out
    assert "20 people, 200 values of 0 to 65" in (tmp_path / "out" / "page.md").read_text()
    assert (tmp_path / "out" / "figures" / "users-means.png").exists()
    assert compare(*wanted, "--repetitions", "2", "-o", "out", "--json").json["new"] == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("quick",), "--data FOLDER"),
        (("slow",), "there is no comparison 'slow'; there are quick, today, htf-4"),
        (("users-means",), "surat-cell is made of the evaluation data: say where that is with --data FOLDER"),
        (("users-chop", "--data", "."), "austin_bus_2015.parquet is not in the folder"),
        (("users-distributions", "--map", "gaussian-20"), "gaussian-20 holds nothing that chosen could be compared on"),
        (("users-distributions", "--method", "AG"), "AG is no method for two-humps"),
        (("quick", "--map", "two-humps"), "two-humps holds nothing that"),
    ],
)
def test_tables_that_are_not_here_and_methods_for_others_are_refused(wrong, words, compare):
    done = compare(*wrong)
    assert done.code != 0 and done.out == ""
    assert words in done.err


def test_maps_and_tables_of_the_evaluation_data_are_listed(compare):
    done = compare("--list")
    for words in ("quick", "twitter", "(--data)", "gaussian-50", "--method adaptive-grid"):
        assert words in done.out
    assert "tables of values" in done.out and "users-lengths" in done.out and "austin-cells" in done.out
    assert compare("--list", "--json").json["tables"]["two-humps"]["needs data"] is False
