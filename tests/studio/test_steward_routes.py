"""What a steward does in the studio: look, plan, see the price, release once, look at the map, recover."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hazemap
from hazemap import publish
from hazemap.cli.main import main
from hazemap.execution import run as execution
from hazemap.execution.crash_recovery import Recoverable
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.readers import file_formats, open_table
from hazemap.sources.source import parse_source
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.studio import stewards
from hazemap.studio.refusals import SENTENCES
from hazemap.studio.release_review import can_recover
from hazemap.studio.stewards import RootFolder, Steward, Stewards

from .scene import BOX, Browser, Scene, order, reviewed, write_table

NOWHERE = ["../secret.csv", "/etc/passwd", "a/../../secret.csv", "out.csv", "away/secret.csv", "..", "~/secret.csv"]
ODD = ["visits.csv\0", "*.csv", "vis\nits.csv", "x" * 5000, "\ud800.csv", "nothing.csv", "visits.csv:layer"]


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def test_a_folder_shows_tables_and_maps_and_nothing_hidden(scene):
    (scene.root / "more").mkdir()
    (scene.root / ".hidden.csv").write_text("user\n")
    (scene.root / "notes.docx").write_text("x")
    found = scene.browser().post("/v1/files", {"folder": ""}).json()
    assert [(each["name"], each["kind"]) for each in found["entries"]] == [("more", "folder"), ("visits.csv", "table")]


@pytest.mark.parametrize("name", NOWHERE + ODD)
def test_no_name_leads_out_of_the_folder_neither_by_dots_nor_by_links(scene, name):
    write_table(scene.root.parent / "secret.csv")
    (scene.root / "out.csv").symlink_to(scene.root.parent / "secret.csv")
    (scene.root / "away").symlink_to(scene.root.parent)
    browser = scene.browser()
    asked = [("/v1/table", {"source": name}), ("/v1/review", order(source=name)), ("/v1/map", {"file": name})]
    asked += [("/v1/map/export", {"file": name, "ending": ".csv"}), ("/v1/compare", {"first": name, "second": name})]
    asked += [("/v1/review", order(output=name))] if name in NOWHERE else []
    for path, data in asked:
        found = browser.post(path, data) if "\ud800" not in name else None
        if found is not None:
            assert found.status_code == 422, (path, found.text)
            assert "columns" not in found.json()
    shown = browser.post("/v1/files", {"folder": ""}).json()["entries"]
    assert {each["name"] for each in shown} == {"visits.csv"}


def test_a_folder_of_files_with_a_link_that_leads_out_is_no_table(scene):
    write_table(scene.root.parent / "secret.csv")
    (scene.root / "many").mkdir()
    write_table(scene.root / "many" / "a.csv")
    assert scene.browser().post("/v1/table", {"source": "many"}).status_code == 200
    (scene.root / "many" / "b.csv").symlink_to(scene.root.parent / "secret.csv")
    found = scene.browser().post("/v1/table", {"source": "many"})
    assert found.status_code == 422 and "outside" in found.text


@pytest.mark.parametrize(
    "more",
    [
        {"cells": "districts:/etc/passwd"},
        {"prior": "/etc/passwd"},
        {"overwrite": True},
        {"plane": "10,10"},
        {"method": 7},
        {"epsilon": 0.5},
        {"epsilon": "1e999"},
        {"mark": ["x" * 3000]},
    ],
)
def test_a_form_says_only_what_is_on_the_list(scene, more):
    assert scene.browser().post("/v1/review", order(**more)).status_code == 422


def test_columns_are_found_and_the_first_rows_shown_and_kept_nowhere(scene):
    before = set(scene.root.parent.rglob("*"))
    found = scene.browser().post("/v1/table", {"source": "visits.csv"}).json()
    assert found["guessed"] == {"person": "user", "lon": "lon", "lat": "lat"}
    assert [each["name"] for each in found["columns"]] == ["user", "lon", "lat"]
    assert len(found["rows"]) == 8 and found["rows"][0][0] == "0"
    assert set(scene.root.parent.rglob("*")) == before


def test_rows_are_shown_on_this_machine_alone(tmp_path):
    (tmp_path / "users.toml").write_text('[ann]\nfolder = "data"\nledger = "ann/ledger.sqlite"\n')
    (tmp_path / "data").mkdir()
    pem = tmp_path / "a.pem"
    pem.write_text("")
    stewards = Stewards.of_file(tmp_path / "users.toml")
    served = {"host": "192.0.2.1", "certificate": pem, "key": pem}
    scene = Scene(tmp_path, cap=None, stewards=stewards, **served)
    browser = Browser(scene)
    there = "https://192.0.2.1:8475"
    browser.client.base_url = there
    token = (tmp_path / "ann.token").read_text().strip()
    found = browser.client.post("/v1/session", json={"token": token}, headers={"origin": there})
    assert "secure" in found.headers["set-cookie"].lower()
    browser.key = found.json()["key"]
    found = browser.post("/v1/table", {"source": "visits.csv"}, origin=there)
    assert found.json()["rows"] == [] and found.json()["guessed"]["person"] == "user"


def test_a_plan_and_its_picture_touch_no_data(scene, monkeypatch):
    def touched(*_, **__):
        raise AssertionError("a plan has opened a table")

    for module, name in ((open_table, "open_files"), (open_table, "open_table"), (execution, "open_table")):
        monkeypatch.setattr(module, name, touched)
    for name in ("files_of", "open_files", "_csv"):
        monkeypatch.setattr(file_formats, name, touched)
    monkeypatch.setattr(stewards, "source_of", touched)
    browser, asked = scene.browser(), {"box": BOX, "epsilon": "1", "cells": "quadtree:7", "people": 5_000}
    figures = browser.post("/v1/plan", asked).json()
    picture = browser.post("/v1/plan/picture", asked).json()
    assert figures["levels"] and figures["same_as"]["command"].startswith(f"cd {scene.root}\nhazemap plan --box {BOX}")
    assert picture["shown"].startswith("data:image/png;base64,") and picture["truth"] != picture["shown"]
    assert browser.post("/v1/plan", {**asked, "source": "visits.csv"}).status_code == 422
    for wrong in ({"people": "5000"}, {"people": True}, {"people": 3}, {"box": ""}, {"epsilon": ""}):
        assert browser.post("/v1/plan/picture", {**asked, **wrong}).status_code == 422
    assert browser.post("/v1/table", {"source": "visits.csv"}).status_code == 500  # the twin: it does open one
    assert browser.post("/v1/review", order()).status_code == 500


def test_a_release_says_its_price_is_made_once_and_shown(scene):
    browser = scene.browser()
    review = browser.post("/v1/review", order()).json()
    assert (review["price"], review["said"]["left"], review["left_then"]) == ("ε = 0.6", "ε = 1", "ε = 0.4")
    assert scene.book.status("visits", "full").charges == 0
    asked = {"order": order(), "key": review["key"]}
    made = browser.post("/v1/releases", asked)
    assert made.status_code == 201
    run = browser.get(f"/v1/runs/{made.json()['run']}").json()
    assert (run["state"], run["file"], run["left"]) == ("done", "map.parquet", "ε = 0.4")
    assert (scene.root / "map.parquet").exists()
    again = browser.post("/v1/releases", asked)
    assert again.status_code == 200 and again.json()["run"] == run["run"]
    assert scene.book.status("visits", "full").charges == 1
    about = browser.post("/v1/map", {"file": "map.parquet"}).json()
    assert about["price"] == "ε = 0.6" and about["total"]["best_guess"] > 0 and "ε = 0.6" in about["statement"]
    picture = browser.post("/v1/map/picture", {"file": "map.parquet"})
    assert picture.content.startswith(b"\x89PNG") and picture.headers["content-type"] == "image/png"
    out = browser.post("/v1/map/export", {"file": "map.parquet", "ending": ".geojson"}).json()
    content = browser.client.get(out["url"])
    assert content.headers["content-disposition"].endswith("map.geojson") and b"FeatureCollection" in content.content
    ledger = browser.post("/v1/ledger", {"dataset": "visits"}).json()
    assert [each["file"] for each in ledger["charges"]] == ["map.parquet"] and ledger["recoverable"] == []
    assert browser.post("/v1/ledger", {"dataset": "nobody"}).json()["pages"] == []


def test_overspending_is_refused_in_words_and_costs_nothing(scene):
    browser = scene.browser()
    found = browser.post("/v1/review", order(epsilon="1.5"))
    assert found.status_code == 402 and found.json()["error"]["type"] == "CapExceeded"
    assert "has ε = 1 left of its cap ε = 1" in found.json()["error"]["message"]
    key = reviewed(browser)["key"]
    assert browser.post("/v1/releases", {"order": order(epsilon="1.5"), "key": key}).status_code == 402
    assert scene.book.status("visits", "full").charges == 0
    assert not (scene.root / "map.parquet").exists()


def test_a_second_tab_cannot_spend_twice(tmp_path):
    scene = Scene(tmp_path, wait=True)
    one, two = scene.browser(), scene.browser()
    first, same, other = reviewed(one), reviewed(two), reviewed(two, output="b.parquet", epsilon="0.3")
    assert first == same
    begun = one.post("/v1/releases", first).json()
    assert two.post("/v1/releases", same).json()["run"] == begun["run"]  # the same order is the same run
    found = two.post("/v1/releases", other)  # another one waits
    assert found.status_code == 409 and "under way" in found.text
    assert len(scene.waiting) == 1
    scene.waiting.pop()()
    assert scene.book.status("visits", "full").charges == 1
    found = two.post("/v1/releases", other)  # what it saw of the ledger is old
    assert found.status_code == 422 and "changed since you looked" in found.text
    assert two.post("/v1/releases", same).json()["state"] == "done"
    assert scene.book.status("visits", "full").charges == 1


def test_a_yes_is_looked_at_again_when_its_run_begins(tmp_path):
    scene = Scene(tmp_path, wait=True)
    browser = scene.browser()
    begun = browser.post("/v1/releases", reviewed(browser, epsilon="0.2")).json()
    more = {"person": "user", "epsilon": "0.1", "box": BOX, "cells": "quadtree:4"}
    publish.release(scene.root / "visits.csv", ledger=scene.book, **more)
    scene.waiting.pop()()
    run = browser.get(f"/v1/runs/{begun['run']}").json()
    assert run["state"] == "failed" and "changed since you looked" in run["error"]["message"]
    assert scene.book.status("visits", "full").charges == 1


def test_the_command_and_the_python_that_are_shown_ask_for_the_same(scene, monkeypatch):
    browser, asked = scene.browser(), order(bounding="rows:3", method="flat:4", person="user", dataset="a b")
    asked["box"] = "-13.6,52.4,-13.2,52.6"
    same = browser.post("/v1/review", asked).json()["same_as"]
    wanted = ReleaseSpec.from_json(asked)
    monkeypatch.chdir(scene.root)
    folder, command = same["command"].split("\n")
    assert shlex.split(folder) == ["cd", str(scene.root)]
    assert main([*shlex.split(command)[1:], "--write-spec", "spec.toml"]) == 0
    assert ReleaseSpec.from_toml(Path("spec.toml").read_text()) == wanted
    taken = []
    monkeypatch.setattr(hazemap, "release", lambda source, **named: taken.append((source, named)), raising=False)
    exec(same["python"], {})
    [(source, named)] = taken
    assert named.pop("ledger") == scene.book
    assert ReleaseSpec.of(source, **named) == wanted


def test_the_command_says_what_is_missing(tmp_path, capsys):
    assert main(["studio"]) == 2
    assert main(["studio", str(tmp_path / "nothing")]) == 2
    assert main(["studio", "--users", str(tmp_path / "nobody.toml")]) == 2
    assert main(["studio", "--users", "users.toml", "--ledger", "ledger.sqlite"]) == 2
    assert main(["studio", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "price", "words"),
    [
        ({"epsilon": "", "rho": "0.05"}, "ρ = 0.05", "--rho 0.05"),
        ({"delta": "1e-6"}, "(ε, δ) = (0.6, 1e-06)", "--epsilon 0.6 --delta 1e-6"),
        ({"mark": ["sick", "kind=bike"]}, "ε = 0.6", "--mark sick --mark kind=bike"),
        ({"slots": "hour-of-day", "time_zone": "Europe/Berlin"}, "ε = 0.6", "--slots hour-of-day"),
    ],
)
def test_prices_in_delta_or_rho_and_marks_and_slots_are_ordered_as_on_the_command_line(tmp_path, asked, price, words):
    found = Scene(tmp_path, cap=None).browser().post("/v1/review", order(**asked))
    assert found.status_code == 200, found.text
    assert found.json()["price"] == price and words in found.json()["same_as"]["command"]


@pytest.mark.parametrize("changed", ["a charge elsewhere", "a cap", "another order", "another process", "no key"])
def test_a_key_fits_one_order_and_one_state_of_the_ledger(scene, tmp_path, changed):
    browser = scene.browser()
    asked = reviewed(browser, epsilon="0.2")
    if changed == "a charge elsewhere":
        more = {"person": "user", "epsilon": "0.1", "box": BOX, "cells": "quadtree:4"}
        publish.release(scene.root / "visits.csv", ledger=scene.book, **more)
    elif changed == "a cap":
        scene.book.cap("visits", PureDP("0.9"))
    elif changed == "another order":
        asked["order"]["epsilon"] = "0.3"
    elif changed == "another process":
        browser = Scene(tmp_path, cap=None).browser()
    else:
        asked["key"] = ""
    before = scene.book.status("visits", "full").charges
    assert browser.post("/v1/releases", asked).status_code == 422
    assert scene.book.status("visits", "full").charges == before


def test_a_file_that_is_there_is_not_replaced(scene):
    (scene.root / "map.parquet").write_bytes(b"mine")
    found = scene.browser().post("/v1/review", order())
    assert found.status_code == 422 and "is there already" in found.text
    assert (scene.root / "map.parquet").read_bytes() == b"mine"


def test_a_run_that_fails_says_why_and_may_be_tried_again(scene):
    browser = scene.browser()
    asked = reviewed(browser, person="nobody")
    for _ in range(2):
        run = browser.post("/v1/releases", asked).json()
        assert run["state"] == "failed" and "'nobody'" in run["error"]["message"]
    assert scene.book.status("visits", "full").charges == 0
    assert [each["state"] for each in browser.get("/v1/runs").json()["runs"]] == ["failed", "failed"]


def test_a_run_is_stopped_before_its_charge_at_no_cost_and_may_be_begun_again(tmp_path):
    scene = Scene(tmp_path, wait=True)
    browser = scene.browser()
    asked = reviewed(browser)
    run = browser.post("/v1/releases", asked).json()["run"]
    assert browser.post(f"/v1/runs/{run}/stop").json()["stopping"]
    scene.waiting.pop()()
    found = browser.get(f"/v1/runs/{run}").json()
    assert (found["state"], found["paid"], found["error"]["said"]["sentence"]) == ("stopped", False, "runStopped")
    assert scene.book.status("visits", "full").charges == 0 and not (scene.root / "map.parquet").exists()
    assert browser.post("/v1/ledger").json()["recoverable"] == []
    again = browser.post("/v1/releases", asked).json()["run"]
    scene.waiting.pop()()
    assert browser.post(f"/v1/runs/{again}/stop").json()["state"] == "done"  # what is over stays what it is
    assert browser.post("/v1/runs/of-somebody-else/stop").status_code == 404


def test_a_run_that_is_stopped_after_its_charge_is_recovered_at_no_second_price(tmp_path, monkeypatch):
    scene = Scene(tmp_path, wait=True)
    browser = scene.browser()
    run = browser.post("/v1/releases", reviewed(browser)).json()["run"]
    keep = execution.Journal.answer

    def answered(journal, answer):
        keep(journal, answer)
        browser.post(f"/v1/runs/{run}/stop")

    with monkeypatch.context() as patched:
        patched.setattr(execution.Journal, "answer", answered)
        scene.waiting.pop()()
    found = browser.get(f"/v1/runs/{run}").json()
    assert (found["state"], found["paid"]) == ("stopped", True) and "has paid ε = 0.6" in found["error"]["message"]
    [waiting] = browser.post("/v1/ledger").json()["recoverable"]
    assert waiting["possible"] and not waiting["running"] and "answers are kept" in waiting["state"]
    for told_to_stop in (True, False):
        run = browser.post("/v1/recover", {"charge": waiting["charge"]}).json()["run"]
        if told_to_stop:
            browser.post(f"/v1/runs/{run}/stop")
        scene.waiting.pop()()
        found = browser.get(f"/v1/runs/{run}").json()
        assert (found["state"], found["paid"]) == ("stopped" if told_to_stop else "done", True)
    assert scene.book.status("visits", "full").charges == 1
    assert str(scene.book.status("visits", "full").spent) == "ε = 0.6"
    assert hazemap.open(scene.root / "map.parquet").statement.budget == PureDP("0.6")


@pytest.mark.usefixtures("looks")
def test_a_run_that_ends_after_its_look_says_so_and_goes_on_for_the_rest_once(scene, monkeypatch):
    monkeypatch.setattr(Stream, "from_os", classmethod(lambda _: Stream.fixed(b"of nobody")))  # 1 in 20 would go on
    browser = scene.browser()
    asked = reviewed(browser, box="12.2,52.4,12.6,52.6")  # nobody is there
    run = browser.post("/v1/releases", asked).json()
    assert (run["state"], run["rest"], run["error"]["said"]["sentence"]) == ("looked", "ε = 0.54", "endedAfterLook")
    assert run["error"]["said"]["words"] == {"paid": "ε = 0.06", "rest": "ε = 0.54"}
    assert "people are on the map" in run["error"]["message"] and not (scene.root / "map.parquet").exists()
    assert browser.post("/v1/releases", asked).json() == run  # the same answer, and nothing is paid again
    [waiting] = browser.post("/v1/ledger").json()["recoverable"]
    assert (waiting["charge"], waiting["rest"], waiting["possible"]) == (run["charge"], "ε = 0.54", True)
    assert waiting["same_as"]["command"].startswith(f"cd {scene.root}\nhazemap recover {run['charge']} --continue")
    assert browser.post("/v1/recover", {"charge": run["charge"]}).json()["state"] == "looked"
    assert browser.post("/v1/recover", {"charge": run["charge"], "go_on": 1}).status_code == 422
    assert str(scene.book.status("visits", "full").spent) == "ε = 0.06"
    done = browser.post("/v1/recover", {"charge": run["charge"], "go_on": True}).json()
    assert (done["state"], done["file"], done["left"]) == ("done", "map.parquet", "ε = 0.4")
    assert browser.post("/v1/recover", {"charge": run["charge"], "go_on": True}).status_code == 422
    assert str(scene.book.status("visits", "full").spent) == "ε = 0.6"


def of_values(**more):
    """Statistics of the table's lat, as a form orders them."""
    asked = order(kind="statistics", value="lat", low=0, high=60, cells="h3:7", slots="always", variance=True)
    return {**asked, "quantiles": [0.5], "mean_of": "records", "select": False, **more}


def test_statistics_are_ordered_as_on_the_command_line_and_shown(tmp_path, monkeypatch):
    scene = Scene(tmp_path, cap=None)
    browser = scene.browser()
    review = browser.post("/v1/review", of_values()).json()
    assert review["price"] == "ε = 0.6"
    command = shlex.split(review["same_as"]["command"].split("\n")[1])
    assert command[:2] == ["hazemap", "stats"] and "--low" in command and "--variance" in command
    assert command[command.index("--mean-of") + 1] == "records"
    monkeypatch.chdir(scene.root)
    assert main([*command[1:], "--write-spec", "spec.toml"]) == 0
    asked = {name: value for name, value in of_values().items() if name not in ("kind", "select")}
    assert StatisticsSpec.from_toml(Path("spec.toml").read_text()) == StatisticsSpec.from_json(asked)
    taken = []
    monkeypatch.setattr(hazemap, "stats", lambda source, **named: taken.append((source, named)), raising=False)
    exec(review["same_as"]["python"], {})
    assert taken[0][1].pop("ledger") == scene.book
    assert StatisticsSpec.of(taken[0][0], **taken[0][1]) == StatisticsSpec.from_json(asked)
    run = browser.post("/v1/releases", {"order": of_values(), "key": review["key"]}).json()
    assert run["state"] == "done", run
    found = browser.post("/v1/map", {"file": "map.parquet"}).json()
    assert found["kind"] == "Statistics" and found["total"] is None
    assert scene.book.status("visits", "full").charges == 1


def test_statistics_are_planned_without_data(tmp_path):
    browser = Scene(tmp_path, cap=None).browser()
    asked = {name: value for name, value in of_values().items() if name not in ("source", "value", "output")}
    found = browser.post("/v1/plan", asked).json()
    assert [each["max_cells_per_person"] for each in found["reaches"]] == [4, 8, 16] and found["cap"] == 8
    assert "hazemap stats --plan --value VALUE" in found["same_as"]["command"]
    assert browser.post("/v1/plan/picture", asked).status_code == 422
    assert browser.post("/v1/plan", {**asked, "source": "visits.csv"}).status_code == 422
    assert browser.post("/v1/plan", {**asked, "high": -5}).status_code == 422


DISTRICT = {"type": "Polygon", "coordinates": [[[13.2, 52.4], [13.6, 52.4], [13.6, 52.6], [13.2, 52.6], [13.2, 52.4]]]}


def test_districts_of_the_folder_are_mapped_and_no_others(scene, tmp_path):
    feature = {"type": "Feature", "properties": {"name": "Middle"}, "geometry": DISTRICT}
    text = json.dumps({"type": "FeatureCollection", "features": [feature]})
    for place in (scene.root / "town.geojson", tmp_path / "away.geojson"):
        place.write_text(text)
    (scene.root / "link.geojson").symlink_to(tmp_path / "away.geojson")
    vrt = f"<OGRVRTDataSource><OGRVRTLayer name='away'><SrcDataSource>{tmp_path}/away.geojson</SrcDataSource>"
    (scene.root / "other.geojson").write_text(f"{vrt}</OGRVRTLayer></OGRVRTDataSource>")
    (scene.root / "other.vrt").write_text(f"{vrt}</OGRVRTLayer></OGRVRTDataSource>")
    browser = scene.browser()
    asked = order(cells="districts:town.geojson:name", method="flat")
    del asked["box"]
    for wrong in (
        "/etc/passwd",
        "../away.geojson",
        "link.geojson",
        "other.geojson",
        "other.vrt",
        "",
        "town.geojson,",
        ".",
    ):
        assert browser.post("/v1/review", {**asked, "cells": f"districts:{wrong}"}).status_code == 422, wrong
    found = browser.post("/v1/review", asked)
    assert found.status_code == 200, found.text
    assert "districts:town.geojson:name" in found.json()["same_as"]["command"]
    run = browser.post("/v1/releases", {"order": asked, "key": found.json()["key"]}).json()
    assert run["state"] == "done", run
    assert browser.post("/v1/map", {"file": "map.parquet"}).json()["cells"] >= 1


def test_what_the_studio_refuses_has_a_sentence_of_the_catalogue(scene):
    browser = scene.browser()
    asked = {
        "overCap": ("/v1/review", order(epsilon="1.5")),
        "leadsOut": ("/v1/map", {"file": "../map.parquet"}),
        "noSuchFile": ("/v1/map", {"file": "nothing.parquet"}),
        "chooseATable": ("/v1/review", {**order(), "source": ""}),
        "nameAFile": ("/v1/review", {**order(), "output": ""}),
        "planBox": ("/v1/plan", {"epsilon": "1", "people": 500}),
        "nothingToRecover": ("/v1/recover", {"charge": 7}),
        "noServer": ("/v1/campaign", {"name": "a"}),
    }
    for sentence, (path, data) in asked.items():
        found = browser.post(path, data).json()["error"]
        assert found["said"]["sentence"] == sentence, (sentence, found)
        if not found["said"]["more"]:
            assert found["message"] == SENTENCES[sentence].format(**found["said"]["words"])


def test_two_maps_are_compared(scene):
    browser = scene.browser()
    for name in ("a.parquet", "b.parquet"):
        assert browser.post("/v1/releases", reviewed(browser, epsilon="0.3", output=name)).json()["state"] == "done"
    found = browser.post("/v1/compare", {"first": "a.parquet", "second": "b.parquet"}).json()
    assert found["picture"].startswith("data:image/png") and len(found["maps"]) == 2


def test_two_users_see_their_own_data_sets_only(tmp_path):
    users = ""
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name / f"{name}s.csv")
        users += f'[{name}]\nfolder = "{name}"\nledger = "{name}.sqlite"\n'
    (tmp_path / "users.toml").write_text(users)
    scene = Scene(tmp_path, stewards=Stewards.of_file(tmp_path / "users.toml"))
    tokens = {name: (tmp_path / f"{name}.token").read_text().strip() for name in ("ann", "bob")}
    assert {(tmp_path / f"{name}.token").stat().st_mode & 0o777 for name in tokens} == {0o600}
    ann, bob = Browser(scene), Browser(scene)
    assert ann.sign_in(token=tokens["ann"]).json()["name"] == "ann"
    assert bob.sign_in(token=tokens["bob"]).json()["name"] == "bob"
    assert Browser(scene).sign_in(token="x" * 43).status_code == 401
    run = ann.post("/v1/releases", reviewed(ann, source="anns.csv")).json()
    assert run["state"] == "done"
    seen = {name: each.post("/v1/files").text for name, each in (("ann", ann), ("bob", bob))}
    assert "anns.csv" in seen["ann"] and "anns.csv" not in seen["bob"] and "bobs.csv" in seen["bob"]
    assert bob.post("/v1/table", {"source": "anns.csv"}).status_code == 422
    assert bob.post("/v1/table", {"source": "../ann/anns.csv"}).status_code == 422
    assert bob.get(f"/v1/runs/{run['run']}").status_code == 404 and bob.get("/v1/runs").json() == {"runs": []}
    assert bob.post("/v1/ledger").json()["pages"] == []
    assert [page["dataset"] for page in ann.post("/v1/ledger").json()["pages"]] == ["anns"]
    (tmp_path / "ann.token").unlink()  # a token ends with its file, and the sessions with it
    assert ann.get("/v1/runs").status_code == 401 and bob.get("/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names nobody"),
        ("[ann]\nfolder = 'a'\nledger = 'x'\n[bob]\nfolder = 'a'\nledger = 'y'\n", "each other's files"),
        ("[ann]\nfolder = 'a'\nledger = 'x'\n[bob]\nfolder = 'a/b'\nledger = 'y'\n", "each other's files"),
        ("[ann]\nfolder = 'a'\nledger = 'x'\n[bob]\nfolder = 'c'\nledger = 'x'\n", "share a ledger"),
        ("[ann]\nfolder = 'a'\nledger = 'x'\ntoken = 't'\n[bob]\nfolder = 'c'\nledger = 'y'\ntoken = 't'\n", "token"),
        ("[ann]\nfolder = 'a'\nledger = 'a/x'\n", "among their files"),
        ("[ann]\nfolder = 'a'\nledger = 'x'\ntoken = 'a/t'\n", "among their files"),
        ("[ann]\nfolder = 'a'\n", "folder and a ledger"),
        ("[ann]\nfolder = 'a'\nledger = 7\n", "are texts"),
        ("['../ann']\nfolder = 'a'\nledger = 'x'\n", "a user's name"),
        ("ann = 1\n", "folder and a ledger"),
        ("[ann", "not TOML"),
    ],
)
def test_users_who_would_see_each_other_are_refused(tmp_path, text, why):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(Exception, match=why):
        Stewards.of_file(tmp_path / "users.toml")


KILLED = """
import os, sys
from hazemap.execution import run
run.finish = lambda *_: os._exit(9)
from hazemap.publish import release
from hazemap.privacy.ledger import Ledger
asked = {"epsilon": "0.5", "box": sys.argv[3], "cells": "quadtree:5", "output": sys.argv[4], "go_on": True}
release(sys.argv[1], ledger=Ledger(sys.argv[2]), **asked)
"""


def test_a_release_that_was_killed_is_offered_and_recovered_at_no_price(scene):
    words = (scene.root / "visits.csv", scene.book.path, BOX, scene.root / "map.parquet")
    ended = subprocess.run([sys.executable, "-c", KILLED, *map(str, words)], check=False, capture_output=True)
    assert ended.returncode == 9, ended.stderr
    browser = scene.browser()
    [waiting] = browser.post("/v1/ledger").json()["recoverable"]
    assert (waiting["possible"], waiting["free"], waiting["price"]) == (True, True, "ε = 0.05")  # of its look
    assert waiting["same_as"]["command"].startswith(f"cd {scene.root}\nhazemap recover {waiting['charge']}")
    run = browser.post("/v1/recover", {"charge": waiting["charge"]}).json()
    assert (run["state"], run["file"], run["left"]) == ("done", "map.parquet", "ε = 0.5")
    assert browser.post("/v1/ledger").json()["recoverable"] == []
    for wrong in (waiting["charge"], 99, "1", True, None):
        assert browser.post("/v1/recover", {"charge": wrong}).status_code == 422


def test_a_file_of_elsewhere_is_recovered_by_the_command_line(scene, tmp_path):
    words = (scene.root / "visits.csv", scene.book.path, BOX, tmp_path / "away.parquet")
    subprocess.run([sys.executable, "-c", KILLED, *map(str, words)], check=False, capture_output=True)
    browser = scene.browser()
    [waiting] = browser.post("/v1/ledger").json()["recoverable"]
    assert not waiting["possible"]
    assert "command line" in browser.post("/v1/recover", {"charge": waiting["charge"]}).text
    assert not (tmp_path / "away.parquet").exists()
    assert Path(Ledger(scene.book.path).path).exists()


@pytest.mark.parametrize(
    ("source", "possible"),
    [("visits.csv", True), ("../visits.csv", False), ("postgresql:///db?table=visits", False), ("s3://city/x", False)],
)
def test_the_studio_asks_no_table_outside_of_its_folder_to_recover_a_release(tmp_path, monkeypatch, source, possible):
    monkeypatch.chdir(tmp_path)  # where a URL that is taken for a path would lie in the folder
    who = Steward("ann", RootFolder.at(tmp_path), Ledger(tmp_path / "ledger.sqlite"))
    waiting = Recoverable(None, str(tmp_path / "map.parquet"), parse_source(source), 0, False, False)
    assert can_recover(who, waiting) is possible
    assert can_recover(who, replace(waiting, ended=True))
