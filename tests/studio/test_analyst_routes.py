"""What an analyst does in the studio: recipes written and checked, studies asked, answers with intervals."""

import json
import shlex
import time
from fractions import Fraction

import pytest
from tests.federated.server.asking_studies import SIGNED, Typist, recipe

from hazemap.cli.main import main
from hazemap.codec import dumps
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_to_json, recipe_to_toml
from hazemap.federated.service.operator_line import operator
from hazemap.queries.noisy_queries import Answer
from hazemap.releases import open_release
from hazemap.studio import server_answers
from hazemap.studio.coordinator_access import StrangeAnswer

from .coordinator_scene import SECRET, coordinator, hostile, operating, people
from .scene import Browser, Scene

ASKED = recipe(minimum_cohort=8)
TEXT = recipe_to_toml(ASKED)
STUDY = {
    "name": "spring",
    "analysis": "keyboard",
    "epsilon": "20",
    "delta": "1e-5",
    "reports": 4,
    "people": 12,
    "dropout": "0.25",
    "corrupt": "0",
    "stage": 600,
    "wait": 600,
}
ROUTES = [
    ("GET", "/v1/studies", None),
    ("POST", "/v1/study", {"name": "spring"}),
    ("POST", "/v1/study/begin", STUDY),
    ("POST", "/v1/study/ask", {"name": "spring", "text": TEXT}),
    ("POST", "/v1/study/answer", {"name": "spring", "round": 1}),
    ("POST", "/v1/study/release", {"name": "spring", "file": "words.parquet"}),
    ("POST", "/v1/study/stop", {"name": "spring"}),
]


def asked(browser, method, path, data):
    return browser.get(path) if method == "GET" else browser.post(path, data)


@pytest.fixture
def served(tmp_path):
    with coordinator(tmp_path / "coordinator") as url:
        scene = operating(tmp_path, url)
        with operator(url, tmp_path / "operator.token") as line:
            line.post("/v1/policies", SIGNED.to_json().encode())
        (scene.root / "keyboard.json").write_text(SIGNED.to_json())
        yield scene, url


def test_a_recipe_is_told_as_the_command_line_tells_it(served, capsys):
    scene, _ = served
    browser = scene.browser()
    assert browser.post("/v1/recipe/save", {"file": "words.toml", "text": TEXT}).status_code == 201
    assert browser.post("/v1/recipe/open", {"file": "words.toml"}).json()["text"] == TEXT
    for policy in ("", "keyboard.json"):
        found = browser.post("/v1/recipe/check", {"text": TEXT, "file": "words.toml", "policy": policy}).json()
        check, explain = found["same_as"]["command"].splitlines()
        capsys.readouterr()
        assert main(shlex.split(explain)[1:]) in (0, 4)
        words = capsys.readouterr().out
        assert " ".join(found["words"][0].split()) in " ".join(words.split())
        assert [
            " ".join(each.split()) for each in found["words"] if " ".join(each.split()) not in " ".join(words.split())
        ] == []
        assert main(shlex.split(check)[1:]) in (0, 4)
        said = " ".join(capsys.readouterr().out.split())
        assert all(" ".join(each.split()) in said for each in found["lines"])
        exec(compile(found["same_as"]["python"], "shown", "exec"), {})
    assert found["answered"] is True and found["digest"] == ASKED.digest and found["kept"]
    assert any("ngram" in each for each in found["words"])


def test_a_recipe_that_devices_refuse_says_every_reason(served):
    scene, _ = served
    dear = recipe_to_json(recipe(local_epsilon=Fraction(9), epsilon=Fraction(8)))
    found = scene.browser().post("/v1/recipe/check", {"text": dear, "policy": "keyboard.json"}).json()
    assert found["answered"] is False
    assert any(each.startswith("This device would refuse it: ") for each in found["words"])


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": ""},
        {"text": 7},
        {"text": "x" * 60_001},
        {"text": "id = 1"},
        {"text": "{"},
        {"text": "[" * 5_000},
        {"text": TEXT, "policy": "../keyboard.json"},
        {"text": TEXT, "policy": "/etc/passwd"},
        {"text": TEXT, "policy": "/etc/a.toml"},
        {"text": TEXT, "policy": "nothing.toml"},
        {"text": TEXT, "policy": "visits.csv"},
        {"text": TEXT, "policy": 7},
        {"text": TEXT, "people": "12"},
        {"text": TEXT, "people": -1},
        {"text": TEXT, "file": "../words.toml"},
        {"text": TEXT, "file": ["words.toml"]},
        {
            "text": TEXT.replace("SELECT ngram FROM keyboard", "SELECT * FROM read_csv('/etc/passwd')"),
            "policy": "p.toml",
        },
    ],
    ids=range(18),
)
def test_what_is_no_recipe_is_refused_in_words(tmp_path, data):
    scene = Scene(tmp_path)
    found = scene.browser().post("/v1/recipe/check", data)
    assert found.status_code == 422 and "root:" not in found.text, found.text


@pytest.mark.parametrize(
    "file", ["../words.toml", "visits.csv", "words.toml/..", "/tmp/words.toml", "", None, "visits.toml"]
)
def test_a_recipe_is_written_into_the_folder_and_over_no_file(tmp_path, file):
    scene = Scene(tmp_path)
    (scene.root / "visits.toml").write_text("mine")
    browser = scene.browser()
    assert browser.post("/v1/recipe/save", {"file": file, "text": TEXT}).status_code == 422
    assert {each.name for each in scene.root.iterdir()} == {"visits.csv", "visits.toml"}
    assert (scene.root / "visits.toml").read_text() == "mine"
    assert browser.post("/v1/recipe/save", {"file": "new.toml", "text": "no recipe"}).status_code == 422
    assert not (scene.root / "new.toml").exists()


def test_the_example_is_a_recipe(tmp_path):
    browser = Scene(tmp_path).browser()
    text = browser.get("/v1/recipe").json()["text"]
    assert text == EXAMPLE
    assert browser.post("/v1/recipe/check", {"text": text}).json()["bins"] == 272


def test_a_study_is_begun_as_its_command_and_its_python_begin_it(served, capsys):
    scene, _ = served
    browser = scene.browser()
    found = browser.post("/v1/study/review", {**STUDY, "name": "one"}).json()
    assert browser.get("/v1/studies").json()["studies"] == []
    exec(compile(found["same_as"]["python"], "shown", "exec"), {})
    other = browser.post("/v1/study/review", {**STUDY, "name": "two"}).json()["same_as"]["command"]
    assert main(shlex.split(other)[1:]) == 0, capsys.readouterr().err
    assert browser.post("/v1/study/begin", {**STUDY, "name": "three"}).status_code == 201
    assert set(browser.get("/v1/studies").json()["studies"]) == {"one", "two", "three"}
    own = ("name", "created", "same_as")
    rests = [browser.post("/v1/study", {"name": name}).json() for name in ("one", "two", "three")]
    rests = [{name: value for name, value in each.items() if name not in own} for each in rests]
    assert rests[0] == rests[1] == rests[2] and rests[0]["left"] == {"price": "ε = 20, δ = 1e-05", "reports": 4}
    for wrong in ({"people": 1}, {"epsilon": "0"}, {"trust": "local"}, {"more": 1}, {"name": "../x"}, {"wait": "soon"}):
        for path in ("/v1/study/review", "/v1/study/begin"):
            assert browser.post(path, {**STUDY, "name": "four", **wrong}).status_code == 422
    assert browser.post("/v1/study/stop", {"name": "three"}).status_code == 204
    assert browser.post("/v1/study", {"name": "three"}).json()["state"] == "stopped"
    again = browser.post("/v1/study/ask", {"name": "three", "text": TEXT})
    assert again.status_code == 422 and "stopped" in again.text


@pytest.mark.slow
def test_a_recipe_is_asked_once_and_answered_with_intervals(served, capsys):
    scene, url = served
    browser = scene.browser()
    assert browser.post("/v1/study/begin", STUDY).status_code == 201
    (scene.root / "words.toml").write_text(TEXT)
    typists = [Typist(0, 0, text="hello" if place % 3 else "world") for place in range(12)]
    with people(url, 12, devices=typists):
        begun = browser.post("/v1/study/ask", {"name": "spring", "text": TEXT, "file": "words.toml"}).json()
        until = time.monotonic() + 600
        while True:
            found = browser.post("/v1/study/answer", {"name": "spring", "round": begun["round"]}).json()
            if found["state"] != "running":
                break
            assert time.monotonic() < until, found
            time.sleep(0.1)
    assert found["state"] == "done", found
    lines = {each["labels"][0]: each for each in found["table"]["lines"]}
    assert lines["hello"]["low"] <= lines["hello"]["count"] <= lines["hello"]["high"]
    assert found["table"]["people"] >= 9 and found["left"] == {"price": "ε = 16, δ = 9e-06", "reports": 3}
    again = browser.post("/v1/study/ask", {"name": "spring", "text": TEXT}).json()
    assert again["round"] == begun["round"]
    assert browser.post("/v1/study", {"name": "spring"}).json()["left"] == found["left"]
    for command in (begun["same_as"]["command"], found["same_as"]["command"]):
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0
        assert "hello" in capsys.readouterr().out
    exec(compile(found["same_as"]["python"], "shown", "exec"), {})
    released = browser.post("/v1/study/release", {"name": "spring", "file": "answers.parquet"})
    assert released.status_code == 201, released.text
    assert open_release(scene.root / "answers.parquet").rounds
    assert browser.post("/v1/study/release", {"name": "spring", "file": "answers.parquet"}).status_code == 422


def test_nothing_of_an_analyst_is_there_without_a_server_or_a_session(tmp_path):
    scene = Scene(tmp_path)
    browser, stranger = scene.browser(), Browser(scene)
    for each in ROUTES:
        assert asked(browser, *each).status_code == 422
        assert asked(stranger, *each).status_code == 401
    for path in ("/v1/recipe/check", "/v1/recipe/open", "/v1/recipe/save"):
        assert stranger.post(path, {"text": TEXT, "file": "a.toml"}).status_code == 401
        assert browser.post(path, {"text": TEXT, "file": "a.toml"}, origin="http://evil.example").status_code == 403


@pytest.mark.parametrize(
    "data",
    [{"name": "../tokens"}, {"name": "a/b"}, {"name": 7}, {"name": "a", "round": 0}, {"name": "a", "round": "1/../2"}],
)
def test_no_study_or_round_reaches_another_address(tmp_path, data):
    with hostile({}) as (url, known):
        found = operating(tmp_path, url, SECRET).browser().post("/v1/study/answer", data)
        assert found.status_code == 422 and known == []


ROUND = {
    "round": 1,
    "recipe": ASKED.digest,
    "epsilon": "4",
    "delta": "1/1000000",
    "state": "done",
    "reason": "",
    "created": "2026",
    "ended": None,
    "text": dumps(ASKED),
    "answer": None,
}
FINE = {
    "name": "spring",
    "analysis": "keyboard",
    "created": "2026",
    "state": "open",
    "stopped": None,
    "reason": "",
    "budget": {"epsilon": "1/2", "delta": "0", "reports": 3},
    "left": {"epsilon": "1/2", "delta": "0", "reports": 3},
    "people": 12,
    "trust": "secure-sum",
    "assumptions": ["<b>all</b>"],
    "rounds": [],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "autumn"},
        {"left": {"epsilon": "1/0", "delta": "0", "reports": 3}},
        {"left": {"epsilon": "1/00", "delta": "0", "reports": 3}},
        {"left": {"epsilon": 0.5, "delta": "0", "reports": 3}},
        {"left": {"epsilon": "9" * 50, "delta": "0", "reports": 3}},
        {"left": {"epsilon": "1e99999999", "delta": "0", "reports": 3}},
        {"left": "much"},
        {"assumptions": "none"},
        {"rounds": [{}]},
        {"rounds": [{**ROUND, "round": True}]},
        {"people": -1},
    ],
    ids=range(11),
)
def test_a_study_of_another_form_is_refused_as_such(tmp_path, changes):
    for data, code in ((FINE, 200), ({**FINE, **changes}, 502)):
        with hostile({"/v1/studies/spring": (200, {}, json.dumps(data).encode())}) as (url, _):
            assert operating(tmp_path, url, SECRET).browser().post("/v1/study", {"name": "spring"}).status_code == code


def answer(size):
    import numpy as np

    return dumps(Answer(np.zeros(size, dtype=np.int64), np.ones(size), people=12))


def test_an_answer_to_another_recipe_is_refused_as_such():
    fine = {**ROUND, "answer": answer(ASKED.size)}
    assert server_answers.answered(fine)[0] == ASKED
    assert server_answers.answered(ROUND) is None
    for changes in (
        {"answer": answer(ASKED.size + 1)},
        {"answer": answer(0)},
        {"answer": "{}"},
        {"answer": 7},
        {"answer": ["x"]},
        {"text": None},
        {"text": dumps(recipe("other"))},
        {"text": "null"},
        {"recipe": "0" * 64},
    ):
        with pytest.raises(StrangeAnswer):
            server_answers.answered({**fine, **changes})


def test_the_token_of_an_analyst_stays_where_it_is(tmp_path):
    told = json.dumps({"error": f"wrong: {SECRET}"}).encode()
    for reply in ((200, {}, json.dumps({**FINE, "reason": SECRET}).encode()), (403, {}, told), (500, {}, told)):
        paths = [
            "/v1/studies",
            *(f"/v1/studies/spring{end}" for end in ("", "/rounds", "/rounds/1", "/release", "/stop")),
        ]
        with hostile(dict.fromkeys(paths, reply)) as (url, _):
            browser = operating(tmp_path, url, SECRET).browser()
            for each in ROUTES:
                found = asked(browser, *each)
                assert SECRET not in found.text and found.status_code != 401
