"""`hazemap study`, against a server without devices."""

import httpx
import pytest
from tests.federated.device.serving import OPERATOR, serving
from tests.federated.server.asking_studies import SIGNED, judge, recipe

from hazemap.codec import dumps
from hazemap.federated.recipes.recipe_file import recipe_to_json


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path / "server", judge=judge) as url:
        (tmp_path / "token").write_text(OPERATOR)
        (tmp_path / "policy.json").write_text(SIGNED.to_json())
        (tmp_path / "words.json").write_text(recipe_to_json(recipe()))
        yield url


def test_a_study_is_begun_looked_at_and_refused_in_words(hazemap, server):
    reach = ("--server", server, "--token-file", "token")
    assert hazemap("study", "status", "spring", *reach).code == 2
    begin = ("study", "begin", "spring", "--analysis", "keyboard", "--people", "200", "--delta", "1e-5", *reach)
    assert "no policy of its devices" in hazemap(*begin, "--epsilon", "4", "--reports", "3").err
    assert "rules the studies" in hazemap("study", "policy", "policy.json", *reach).out
    assert hazemap(*begin, "--epsilon", "21", "--reports", "3").code == 3
    begun = hazemap(*begin, "--epsilon", "2", "--reports", "3")
    assert "; the reports of " in begun.out and "noise" not in begun.out, "people add no noise to their reports"
    assert (begun.code, "ε, δ) = (2, 1e-05)" in begun.out) == (0, True)
    refused = hazemap("study", "ask", "spring", "words.json", *reach)
    assert (refused.code, "all rounds of the study spring together may cost" in refused.err) == (3, True)
    status = hazemap("study", "status", "spring", *reach, "--json").json
    assert (status["left"]["epsilon"], status["rounds"]) == ("2", [])
    assert "no round of spring has been answered" in hazemap("study", "results", "spring", *reach).err
    stopped = hazemap("study", "stop", "spring", *reach)
    assert (stopped.code, "after 0 rounds" in stopped.out) == (0, True)
    assert "stopped by operator" in hazemap("study", "status", "spring", *reach).out
    assert "asks nothing more" in hazemap("study", "ask", "spring", "words.json", *reach).err
    log = hazemap("study", "recipes", "--server", server)
    assert (log.code, "policy words, version 1" in log.out, "2 entries, whole" in log.out) == (0, True, True)
    assert "stop spring, of the analysis keyboard, after 0 rounds" in log.out
    assert httpx.get(f"{server}/v1/recipes").text.count("\n") == 2


def test_results_of_a_round_that_runs_are_waited_for_and_say_why_there_are_none(hazemap, server):
    reach = ("--server", server, "--token-file", "token")
    assert hazemap("study", "policy", "policy.json", *reach).code == 0
    begin = ("study", "begin", "spring", "--analysis", "keyboard", "--people", "200", "--delta", "1e-5", "--wait", "1")
    assert hazemap(*begin, "--epsilon", "10", "--reports", "3", *reach).code == 0
    where, as_operator = f"{server}/v1/studies/spring/rounds", {"Authorization": f"Bearer {OPERATOR}"}
    asked = httpx.post(where, content=dumps(recipe()), headers=as_operator)
    assert (asked.status_code, httpx.get(f"{where}/1", headers=as_operator).json()["text"]) == (201, None)
    found = hazemap("study", "results", "spring", "--round", "1", *reach)
    assert (found.code, "only 0 devices were there" in found.err) == (4, True), found.err


def test_answers_of_a_study_are_asked_inspected_and_exported_as_other_releases_are(hazemap, server, tmp_path):
    from tests.federated.study.test_study_answers import written

    written(tmp_path / "words.parquet")
    asked = hazemap("ask", "words.parquet", "--confidence", "0.9")
    assert (asked.code, "hello" in asked.out, "90 % interval" in asked.out) == (0, True, True)
    found = hazemap("ask", "words.parquet", "--json").json
    assert (found["study"], found["rounds"][1]["round"]) == ("spring", 3)
    assert len(found["lines"]) == sum(1 for line in found["lines"] if line["round"] in (1, 3))
    assert "exchanged for any others" in hazemap("inspect", "words.parquet").out
    assert hazemap("export", "words.parquet", "-o", "words.csv").code == 0
    for refused, words in (
        (("ask", "words.parquet", "--top", "3"), "--confidence alone"),
        (("show", "words.parquet"), "are no map"),
        (("inspect", "words.parquet", "--replay"), "nothing is replayed"),
        (("export", "words.parquet", "-o", "words.tif"), ".csv"),
        (("export", "words.parquet", "-o", "b.csv", "--pixel", "5"), "--pixel"),
        (("study", "release", "spring", "-o", "a.parquet", "--server", server, "--token-file", "token"), "no study"),
    ):
        done = hazemap(*refused)
        assert done.code == 2 and words in done.err, (refused, done.err)
    assert not (tmp_path / "a.parquet").exists()
