"""Galleries, figures and pages of the documentation that comparisons on evaluation data make."""

import numpy as np
import pandas as pd
import pytest

from hazemap.draw import figure_layout as drawn
from hazemap.errors import FileError
from hazemap.lab.compare.charts import ranking
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.results import Results
from research.compare import documentation_page as docs
from research.compare.documentation_page import documented
from research.compare.evaluation_datasets import evaluation_datasets
from research.compare.map_gallery import draw_gallery
from research.compare.parameter_figures import FigurePart, along
from research.compare.presets import PRESETS
from research.compare.presets.federated import FEDERATED

METHOD = Method("AG", "adaptive-grid")


def results(rows, folder=None, maps=None):
    labels = {"map": "city", "people": 1000, "method": "AG", "spelled": "adaptive-grid", "epsilon": 0.1, "at": np.nan}
    return Results(pd.DataFrame([labels | row for row in rows]), folder, maps or {})


def texts(figure):
    """Everything that is written on a picture."""
    import matplotlib.text

    return {text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()}


def some_results():
    return results([{"map": place, "mre": 0.1 * number} for place in ("city", "twitter") for number in (1, 2, 3)])


@pytest.fixture
def pictured(tmp_path):
    """A folder as a gallery leaves it."""
    rng = np.random.default_rng(2)
    place = GroundTruthMap.of("city", rng.poisson(3.0, (32, 32)))
    (tmp_path / "pictures").mkdir()
    rows = []
    for name in ("AG", "UG"):
        np.save(tmp_path / "pictures" / f"{name}.npy", (place.counts + rng.normal(0, 1, (32, 32))).astype(np.float32))
        rows.append({"method": name, "mre": 0.1, "l1": 0.5, "picture": f"pictures/{name}.npy"})
    return results(rows, tmp_path, {"city": place})


def test_a_gallery_shows_the_truth_each_method_and_the_difference(pictured, monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    figure = draw_gallery(pictured, "city", "A city")
    assert {"the truth", "AG", "UG", "people in a pixel", "fewer or more than there are"} <= texts(figure)
    assert [axes.get_label() for axes in figure.axes if axes.get_label()[:2] in ("th", "AG", "UG")] == [
        *("the truth 0", "AG 0", "AG 1", "UG 0", "UG 1"),
    ]


def test_a_picture_that_is_gone_is_said(pictured):
    (pictured.folder / "pictures" / "AG.npy").unlink()
    with pytest.raises(FileError, match="--afresh"):
        draw_gallery(pictured, "city", "A city")


def test_pages_of_the_documentation_have_no_pictures_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    monkeypatch.setitem(docs.SHOWN, "some", ("shown",))
    figures = (("shown", ranking("mre", "One")), ("hidden", ranking("mre", "Two")))
    monkeypatch.setitem(
        PRESETS, "some", Preset("some", "an example", ("city",), (METHOD,), ("0.1",), 3, ("mre",), figures=figures)
    )
    (tmp_path / "all" / "some").mkdir(parents=True)
    some_results().frame.to_parquet(tmp_path / "all" / "some" / "results.parquet")
    for name in ("results", "images"):
        (tmp_path / "docs" / name).mkdir(parents=True)
    path = documented(tmp_path / "all", evaluation_datasets(), tmp_path / "docs", ["some"], "pages")
    assert "compare-shown.png" in path.read_text() and "hidden" not in path.read_text()
    assert [file.name for file in (tmp_path / "docs" / "images").iterdir()] == ["compare-shown.png"]
    with pytest.raises(FileError, match="no results of a comparison"):
        documented(tmp_path, evaluation_datasets(), tmp_path / "docs", ["some"], "pages")


def test_long_tables_behind_many_words_of_a_page_are_files_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(docs, "WORDS", 22)
    monkeypatch.setattr(docs, "ROWS", 3)
    table = "| a | b |\n|---|---|\n| **1** ± 2 | x, y |\n| 3 | z |\n"
    text = f"# Title\n\n{table}\n## One (2 k)\n\n{table}\nWords.\n\n## Two\n\n| a |\n|---|\n| 1 |\n"
    path = docs.write_page(text, tmp_path / "page.md")
    link = "[The table](data/page/one-2-k.csv), as CSV.\n"
    assert path.read_text() == f"# Title\n\n{table}\n## One (2 k)\n\n{link}\nWords.\n\n## Two\n\n| a |\n|---|\n| 1 |\n"
    assert (tmp_path / "data" / "page" / "one-2-k.csv").read_text() == 'a,b\n1 ± 2,"x, y"\n3,z\n'
    assert docs.write_page("# Short\n", path).read_text() == "# Short\n"
    assert not (tmp_path / "data" / "page").exists(), "a table of an earlier page"


def test_the_federated_figure_finds_its_curves(monkeypatch):
    monkeypatch.setattr(drawn, "DPI", 50)
    rows = [{"method": "prefix tree", "set_c0": c0, "mse": c0, "numbers": 100 / c0} for c0 in (0.1, 0.4)]
    rows += [{"method": "adaptive", "set_most_numbers": most, "mse": 1.0, "numbers": most} for most in (400.0, np.nan)]
    rows += [{"method": "a grid of one sample, no privacy", "at": level, "mse": 1 / level} for level in (5.0, 6.0)]
    (_, draw), *_ = FEDERATED.figures
    figure = draw(results([row | {"set_people": 100_000} for row in rows]))
    assert {"prefix tree", "adaptive", "the best grid of one sample, no privacy"} <= texts(figure)


def test_methods_that_do_not_vary_are_drawn_across():
    rows = [{"at": x, "mre": 1.0 / x, "method": "kd"} for x in (1.0, 2.0, 4.0)] + [{"mre": 0.4, "method": "HTF"}]
    figure = along("at", "height", [FigurePart("a", "mre"), FigurePart("b", "mre")], "Heights", logarithmic=False)(
        results(rows)
    )
    assert {"kd", "HTF", "height", "Heights"} <= texts(figure)
    panel = next(axes for axes in figure.axes if axes.get_label() == "panel 0")
    across = [line for line in panel.lines if list(line.get_ydata()) == [40.0, 40.0]]
    assert len(across) == 1
