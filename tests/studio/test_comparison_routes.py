"""What a researcher does in the studio: methods side by side, also on a map of their own, as points with numbers."""

import shlex

import numpy as np
import pandas as pd
import pytest

from hazemap.cli.main import main
from hazemap.lab.compare import run_comparison
from hazemap.lab.compare.presets import ComparisonOrder
from hazemap.lab.compare.results import Results
from hazemap.studio import comparison_routes

from .scene import Browser, Scene, write_table

ORDER = {
    "folder": "comparison",
    "maps": ["dust"],
    "own": [],
    "methods": ["UG", "flat:3"],
    "epsilons": ["0.5", "1"],
    "repetitions": 2,
}


def rows(folder, **changes):
    """Results as a comparison writes them."""
    folder.mkdir()
    found = [
        {"map": "dust", "method": method, "epsilon": epsilon, "mre": 0.1 * place, "l1": 1.0, "seconds": 0.01}
        for place, method in enumerate(("UG", "AG"), 1)
        for epsilon in (0.5, 1.0, float("inf"))
        for _ in range(3)
    ]
    pd.DataFrame([{**each, **changes} for each in found]).to_parquet(folder / "results.parquet")


def upload(browser, name, content):
    headers = browser.headers(**{"x-hazemap-name": name, "content-type": "application/octet-stream"})
    return browser.client.post("/v1/comparison/map", content=content, headers=headers)


def test_results_are_points_with_their_numbers_and_in_words(tmp_path):
    scene = Scene(tmp_path)
    rows(scene.root / "comparison")
    found = scene.browser().post("/v1/comparison/figures", {"folder": "comparison"}).json()
    [place] = found["maps"]
    assert [each["score"] for each in place["scores"]] == ["mre", "l1", "seconds"]
    [ug, ag] = place["scores"][0]["methods"]
    assert (ug["name"], ag["name"]) == ("UG", "AG")
    assert [each["epsilon"] for each in ug["points"]] == [0.5, 1.0]  # what has no ε is no point of a curve
    mean = Results.read(scene.root / "comparison" / "results.parquet").where(method="AG", epsilon=1.0).mean("mre")
    assert ag["points"][1]["mean"] == pytest.approx(100 * mean.mean) and ag["points"][1]["number"] == mean.number
    assert ag["points"][1]["mean_said"] == "20.000"


@pytest.mark.parametrize("folder", ["nothing", "..", "/tmp", "", 7, "comparison/../..", "visits.csv"])
def test_a_folder_without_results_is_said_so(tmp_path, folder):
    found = Scene(tmp_path).browser().post("/v1/comparison/figures", {"folder": folder})
    assert found.status_code == 422, found.text


def test_results_that_are_none_are_said_so(tmp_path):
    scene = Scene(tmp_path)
    browser = scene.browser()
    (scene.root / "a").mkdir()
    (scene.root / "a" / "results.parquet").write_bytes(b"PAR1 none")
    rows(scene.root / "b", map=7, method=None, mre=float("nan"))
    pd.DataFrame({"x": [1]}).to_parquet(scene.root / "a" / "other.parquet")
    (scene.root / "c").symlink_to("/tmp")
    rows(scene.root / "d", mre="much")
    for folder in ("a", "c", "d"):
        found = browser.post("/v1/comparison/figures", {"folder": folder})
        assert found.status_code == 422, found.text
    found = browser.post("/v1/comparison/figures", {"folder": "b"})
    assert found.status_code == 200 and "mre" not in {each["score"] for each in found.json()["maps"][0]["scores"]}


@pytest.mark.parametrize(
    "changes",
    [
        {"maps": []},
        {"maps": ["nowhere"]},
        {"maps": ["own=/etc/passwd"]},
        {"maps": "dust"},
        {"maps": ["dust"] * 13},
        {"own": ["../secret.csv"]},
        {"own": ["nothing.csv"]},
        {"own": ["visits.docx"]},
        {"methods": []},
        {"methods": ["no such method"]},
        {"methods": [7]},
        {"epsilons": ["0"]},
        {"epsilons": ["soon"]},
        {"epsilons": []},
        {"repetitions": 0},
        {"repetitions": True},
        {"repetitions": 21},
        {"folder": ""},
        {"folder": "../x"},
        {"folder": "."},
        {"folder": "full"},
    ],
    ids=range(21),
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(tmp_path, monkeypatch, changes):
    monkeypatch.setattr(comparison_routes, "compared", lambda *_, **__: pytest.fail("measured"))
    scene = Scene(tmp_path)
    (scene.root / "full").mkdir()
    (scene.root / "full" / "mine.txt").write_text("mine")
    found = scene.browser().post("/v1/comparison/run", {**ORDER, **changes})
    assert found.status_code == 422, found.text


def test_the_command_and_the_python_that_are_shown_are_the_same_comparison(tmp_path, monkeypatch):
    seen = []

    def noted(trials, atlas, folder, **_):
        seen.append(([(t.place, t.method.name, t.epsilon, t.repetition) for t in trials], atlas.own, folder))
        raise KeyboardInterrupt

    for module in (comparison_routes, run_comparison):
        monkeypatch.setattr(module, "compared", noted)
    scene = Scene(tmp_path, wait=True)
    browser = scene.browser()
    same = browser.post("/v1/comparison/run", {**ORDER, "own": ["visits.csv"]}).json()["same_as"]
    with pytest.raises(KeyboardInterrupt):
        scene.waiting[0]()
    main(shlex.split(same["command"])[1:])
    with pytest.raises(KeyboardInterrupt):
        exec(compile(same["python"], "shown", "exec"), {"__name__": "__main__"})
    assert len(seen) == 3 and seen[0] == seen[1] == seen[2]
    assert len(seen[0][0]) == 2 * 2 * 2 * 2


def test_a_map_that_is_dropped_is_kept_once_and_read_before(tmp_path):
    scene = Scene(tmp_path)
    browser, table = scene.browser(), tmp_path / "people.csv"
    write_table(table, 50)
    found = upload(browser, "my%20town.csv", table.read_bytes())
    assert (found.status_code, found.json()) == (201, {"file": "my town.csv", "people": 50})
    assert (scene.root / "my town.csv").read_bytes() == table.read_bytes()
    assert upload(browser, "my%20town.csv", b"other").status_code == 422
    np.save(tmp_path / "a.npy", np.ones((4, 4)))
    assert upload(browser, "a.npy", (tmp_path / "a.npy").read_bytes()).json()["people"] == 16
    order, _ = comparison_routes.ordered({**ORDER, "own": ["my town.csv"]}, scene.stewards.by_name["steward"].root)
    assert order.own == (("my-town", scene.root / "my town.csv"),)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("..%2Fsecret.csv", b"user,lon,lat\n1,2,3\n"),
        ("%2Ftmp%2Fsecret.csv", b"user,lon,lat\n1,2,3\n"),
        ("a.exe", b"x"),
        ("", b"x"),
        ("a.csv", b""),
        ("a.csv", b"\x00\xff" * 99),
        ("a.npy", b"\x93NUMPY nothing"),
        ("a.tif", b"II*\x00"),
        ("a.parquet", b"PAR1"),
        ("visits.csv", b"user,lon,lat\n1,2,3\n"),
        ("a%00.csv", b"user,lon,lat\n1,2,3\n"),
        ("*.csv", b"user,lon,lat\n1,2,3\n"),
    ],
)
def test_what_is_no_map_does_not_come_into_the_folder(tmp_path, name, content):
    scene = Scene(tmp_path)
    before = (scene.root / "visits.csv").read_bytes()
    found = upload(scene.browser(), name, content)
    assert found.status_code == 422, found.text
    assert {each.name for each in scene.root.iterdir()} == {"visits.csv"}
    assert (scene.root / "visits.csv").read_bytes() == before


def test_a_map_without_an_end_is_not_read_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison_routes, "UPLOAD", 1 << 16)
    scene = Scene(tmp_path)
    assert upload(scene.browser(), "a.csv", b"x" * (1 << 17)).status_code == 413
    assert {each.name for each in scene.root.iterdir()} == {"visits.csv"}


def test_only_the_studios_own_page_compares(tmp_path):
    scene = Scene(tmp_path)
    browser, stranger = scene.browser(), Browser(scene)
    for path, data in (("run", ORDER), ("figures", {"folder": "comparison"}), ("map", {})):
        assert stranger.post(f"/v1/comparison/{path}", data).status_code == 401
        assert browser.post(f"/v1/comparison/{path}", data, origin="http://evil.example").status_code == 403


def test_an_order_without_changes_is_the_comparison_itself():
    from hazemap.lab.compare.presets import QUICK, Catalogue

    assert ComparisonOrder().preset(Catalogue()) == QUICK
