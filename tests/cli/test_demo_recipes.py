"""`hazemap demo recipes`."""

import json
from pathlib import Path

import pytest

from hazemap.cli.demo.processes import made_up, pairs, policy
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_the_demo_ends_with_words_budgets_and_a_log_and_leaves_the_ledger_alone(hazemap, tmp_path, home):
    done = hazemap("demo", "recipes", "--people", "500", "--folder", "recipes", "--json")
    assert done.code == 0, done.err
    facts = done.json
    assert [each["round"] for each in facts["rounds"]] == [1, 2]
    assert facts["chat"] == "made up"
    assert {each["words"] for each in facts["found"]} & {"how", "i", "the", "want", "do", "to"}
    assert [each["kind"] for each in facts["budgets"]] == ["analysis", "field", "device", "device"]
    log = (Path(tmp_path) / "recipes" / "recipes.jsonl").read_text().splitlines()
    assert (RECIPE_LOG_FORMAT.checked(log).entries, json.loads(log[0])["kind"]) == (3, "policy")
    assert not home.exists(), "the demo touched the ledger of its user"


def test_lines_become_pairs_of_words_that_the_policy_lets_be_read():
    assert pairs(["Hi, how ARE you?", ""]) == ["hi how", "how are", "are you", "you"]
    assert pairs(made_up(1, 1)[0]) == pairs(made_up(1, 1)[0])
    assert str(policy("6").fields[0].field) == "chat.ngram"
