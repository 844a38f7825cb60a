"""`hazemap policy`, and what a device does with one: accept, add events, budget, log."""

import json
import stat
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from tests.federated.device.reporting import request

from hazemap.cli.main import main
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog, RecipeLogEntry
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy_document import EXAMPLE
from hazemap.federated.recipes.recipe_file import EXAMPLE as RECIPE

UNIX = ("--time-format", "seconds")


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Run a command with --json: its exit code and its facts."""
    monkeypatch.setenv("HAZEMAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def key(said, tmp_path):
    """A signed example, and the key it was signed by."""
    _, facts = said("policy", "key", "policy.key")
    (tmp_path / "policy.toml").write_text(EXAMPLE)
    assert said("policy", "sign", "policy.toml", "--key-file", "policy.key", "-o", "signed.json")[0] == 0
    return facts["key"]


def test_a_policy_is_signed_verified_and_shown(said, key, tmp_path, capsys):
    assert stat.S_IMODE((tmp_path / "policy.key").stat().st_mode) == 0o600
    code, facts = said("policy", "verify", "signed.json", "--key", key)
    assert (code, facts["name"], facts["version"]) == (0, "keyboard_statistics", 1)
    assert said("policy", "verify", "signed.json", "--key", "00" * 32)[0] == 4
    assert said("policy", "verify", "signed.json", "--key", "no key")[0] == 2
    assert said("policy", "key", "policy.key")[0] == 2, "a key is never written over"
    shown = [said("policy", "show", name)[1] for name in ("policy.toml", "signed.json")]
    assert shown[0] == shown[1] and shown[0]["digest"] == facts["digest"]
    changed = json.loads((tmp_path / "signed.json").read_text())
    changed["policy"]["days"] = 31
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    assert said("policy", "verify", "changed.json", "--key", key)[0] == 4
    assert main(["policy", "show", "policy.toml"]) == 0
    assert "profile.age" in capsys.readouterr().out
    assert main(["policy", "example"]) == 0
    assert capsys.readouterr().out == EXAMPLE
    (tmp_path / "policy.toml").write_text("name = 1e999999999")
    assert said("policy", "show", "policy.toml")[0] == 2
    (tmp_path / "bad.key").write_text("zz")
    assert said("policy", "sign", "signed.json", "--key-file", "bad.key", "-o", "x.json")[0] == 2


def test_a_device_accepts_a_policy_keeps_events_and_shows_its_budgets(said, key, tmp_path, capsys):
    assert said("device", "accept", "signed.json")[0] == 4, "the first one needs its key"
    assert said("device", "accept", "signed.json", "--key", key)[0] == 0
    assert said("device", "accept", "signed.json")[0] == 0, "the same again"
    (tmp_path / "typed.csv").write_text("ngram,perplexity,at\nhello world,12.5,4000000000\nold,1.5,0\n")
    code, facts = said("device", "add", "typed.csv", "--stream", "keyboard", *UNIX)
    assert (code, facts["kept"], facts["older"], facts["devices"]) == (0, 1, 1, 1)
    assert said("device", "add", "typed.csv", "--stream", "profile")[0] == 2
    assert said("device", "add", "typed.csv", "--stream", "none")[0] == 2
    assert said("device", "add", "typed.csv", "--stream", "keyboard", "--keep", "3")[0] == 2
    code, facts = said("device", "budget")
    assert code == 0 and [each["kind"] for each in facts["budgets"]] == ["analysis", *["field"] * 3, *["device"] * 2]
    assert facts["budgets"][0]["allowed"] == "1/2" and facts["budgets"][0]["reports_used"] == 0
    assert main(["device", "budget"]) == 0
    assert "profile.age" in capsys.readouterr().out
    assert said("device", "log")[1] == {"log": []}
    assert main(["device", "forget", "--yes"]) == 0


def test_a_table_of_people_fills_a_fleet_and_a_second_one_finds_the_same_devices(said, key, tmp_path):
    said("device", "accept", "signed.json", "--key", key)
    rows = "".join(f"u{number % 5},phrase {number},0.5,4000000000\n" for number in range(20))
    (tmp_path / "typed.csv").write_text("user,ngram,perplexity,at\n" + rows)
    code, facts = said("device", "add", "typed.csv", "--stream", "keyboard", "--person", "user", *UNIX)
    assert (code, facts["kept"], facts["devices"]) == (0, 20, 5)
    places = "".join(f"u{number},13.4,52.5\n" for number in range(3, 8))
    (tmp_path / "places.csv").write_text("user,lon,lat\n" + places)
    code, facts = said("device", "add", "places.csv", "--person", "user")
    assert (code, facts["people"], facts["devices"], facts["added"]) == (0, 5, 8, 5)
    assert said("device", "add", "places.csv", "--person", "user", "--device", "1")[0] == 2
    assert said("device", "status", "--device", "4")[1]["rows"] == 1


def test_a_device_explains_a_recipe_by_the_policy_it_has_accepted_and_its_owners_rules(said, key, tmp_path, capsys):
    (tmp_path / "words.toml").write_text(RECIPE)
    code, facts = said("device", "explain", "words.toml")
    assert (code, facts["fields"]) == (0, None), "no policy says yet what is read"
    said("device", "accept", "signed.json", "--key", key)
    code, facts = said("device", "explain", "words.toml")
    assert (code, facts["fields"]) == (0, ["keyboard.ngram", "profile.age"])
    assert (facts["policy"], facts["version"], facts["reasons"]) == ("keyboard_statistics", 1, [])
    (tmp_path / "home" / "policy.toml").write_text('[recipes]\ndenied_fields = ["profile.age"]\n')
    code, facts = said("device", "explain", "words.toml")
    assert code == 4 and facts["reasons"] == ["this device does not let queries read profile.age"]
    assert main(["device", "explain", "words.toml"]) == 4
    assert "This device would refuse it: this device does not let queries read profile.age." in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_log_shows_recipes_to_people_and_to_machines(said, tmp_path, capsys):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with EncryptedStore.opened(tmp_path / "home" / "device.sqlite", create=True) as store:
        [device] = enrolment.add(store)
        line = RecipeLogEntry.about(request(), "words", "SELECT ngram FROM keyboard", "admitted", now)
        line = line.answered(request().price, b"\x21", (b"masked",)).sending(6_000).ended("answered to the end")
        log = ActivityLog(store, device)
        store.commit([[log.added(1, line)]])
    code, facts = said("device", "log")
    [found] = facts["log"]
    assert (code, found["kind"], found["verdict"], found["outcome"]) == (0, "recipe", "answered", "answered to the end")
    assert found["shares"] == [sha256(b"masked").hexdigest()] and found["report"] == "IQ=="
    assert main(["device", "log"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("recipe words", "reads keyboard.ngram", "answered; 6,000 bytes sent; answered to the end"):
        assert words in shown
