"""`hazemap ledger`."""

import pytest


def test_an_empty_ledger_says_so_and_is_not_made(hazemap, home):
    assert "no data set has paid anything yet" in hazemap("ledger", "list").out
    assert "nothing has been charged yet" in hazemap("ledger", "history").out
    assert not home.exists()


def test_a_cap_can_be_pure_approximate_or_concentrated(hazemap):
    assert hazemap("ledger", "cap", "a", "0.1").out == "a: cap ε = 0.1; spent ε = 0; left ε = 0.1\n"
    approximate = hazemap("ledger", "cap", "b", "1", "--delta", "1e-6", "--json").json
    assert approximate["cap"] == {"kind": "ApproxDP", "epsilon": "1", "delta": "1/1000000"}
    assert hazemap("ledger", "cap", "c", "--rho", "0.5", "--json").json["remaining"] == {"measure": "ρ", "value": 0.5}


def test_the_list_and_the_history_show_what_was_paid(release, hazemap):
    listed = hazemap("ledger", "list")
    assert "visits" in listed.out
    [status] = hazemap("ledger", "list", "--json").json["datasets"]
    assert (status["cap"], status["spent"], status["charges"]) == (None, {"measure": "ε", "value": 1.0}, 1)
    [charge] = hazemap("ledger", "history", "visits", "--json").json["charges"]
    assert charge["released"]
    assert charge["file"].endswith("map.parquet")
    assert "auto map in map.parquet" in hazemap("ledger", "history").out


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("cap", "a"), "give epsilon, epsilon and delta, or rho alone; found"),
        (("cap", "a", "0"), "above 0"),
        (("cap", "a", "1", "--rho", "1"), "found epsilon, rho"),
        (("history", "nobody"), "knows no data set 'nobody'"),
    ],
)
def test_mistakes_are_said(wrong, words, hazemap):
    done = hazemap("ledger", *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_foreign_ledger_is_never_written_to(hazemap, tmp_path):
    (tmp_path / "notes.sqlite").write_bytes(b"these are my notes" * 100)
    done = hazemap("ledger", "list", "--ledger", "notes.sqlite")
    assert done.code == 5
    assert "is not a ledger" in done.err


def test_another_ledger_can_be_named(hazemap, visits, tmp_path):
    options = ("-e", "1", "--box=13.2,52.4,13.6,52.6", "-o", "map.parquet", "--ledger", "other.sqlite")
    assert hazemap("release", "visits.parquet", *options).code == 0
    assert hazemap("ledger", "list", "--json").json["datasets"] == []
    assert len(hazemap("ledger", "list", "--ledger", "other.sqlite", "--json").json["datasets"]) == 1


def test_a_cap_says_why_and_whom_and_the_history_keeps_it(release, hazemap):
    assert hazemap("ledger", "cap", "visits", "3", "--why", "the board of 3 May").code == 0
    done = hazemap("ledger", "history", "visits", "--json").json
    assert done["charges"][0]["unit"] == {
        "kind": "person",
        "model": "full",
        "id_column": "person",
        "read_as": "whole numbers",
        "guessed": False,
    }
    [change] = done["changes"]
    assert (change["old"], change["new"]["epsilon"], change["why"]) == (None, "3", "the board of 3 May")
    assert change["who"] and "the board of 3 May" in hazemap("ledger", "history").out
    other = hazemap("release", "visits.parquet", "-e", "1", "-o", "rows.parquet", "--bounding", "rows are people")
    assert other.code == 2 and "let another data set pay: --dataset 'visits, rows'" in " ".join(other.err.split())
    refused = hazemap("ledger", "unit", "visits", "--rows")
    assert refused.code == 2 and "has paid for people told apart by the column 'person'" in refused.err


def test_a_steward_says_whom_a_data_set_protects(hazemap):
    assert hazemap("ledger", "unit", "nyc", "--person", "user").out == (
        "nyc: protects people told apart by the column 'user'\n"
    )
    assert hazemap("ledger", "cap", "oslo", "1", "--devices", "--json").json["protects"] == {"kind": "device"}
    assert "nobody yet" in hazemap("ledger", "cap", "bergen", "1").out + hazemap("ledger", "list").out
    assert "one of --person" in hazemap("ledger", "unit", "nyc").err
    assert "one kind of unit" in hazemap("ledger", "unit", "nyc", "--rows", "--devices").err


def test_a_signed_page_is_verified_and_a_changed_one_is_not(release, hazemap, tmp_path):
    key = hazemap("policy", "key", "page.key").out.strip()
    done = hazemap("ledger", "export", "visits", "--sign", "page.key", "-o", "page.json")
    assert (done.code, done.out) == (0, f"page.json: 1 charges of visits, signed by {key}\n")
    told = hazemap("ledger", "verify", "page.json", "--key", key, "--older", "page.json")
    assert told.code == 0
    assert "spent full: ε = 1" in told.out
    assert hazemap("ledger", "verify", "page.json", "--key", "00" * 32).code == 4
    page = tmp_path / "page.json"
    page.write_text(page.read_text().replace('"rho":"1/2"', '"rho":"1/3"'))
    assert "does not fit" in hazemap("ledger", "verify", "page.json", "--key", key).err
    for wrong in (("export", "nobody", "--sign", "page.key", "-o", "x"), ("verify", "nowhere.json", "--key", key)):
        assert hazemap("ledger", *wrong).code == 2


def test_only_old_statements_are_forgotten(release, hazemap):
    done = hazemap("ledger", "forget", "--days", "1", "--json").json
    assert (done["statements"], done["fingerprints"]) == (0, 0)
    for wrong in (("--days", "9999999"), ("nobody", "--days", "1")):
        assert hazemap("ledger", "forget", *wrong).code == 2


def test_a_variable_names_the_ledger(hazemap, monkeypatch):
    monkeypatch.setenv("HAZEMAP_LEDGER", "team.sqlite")
    assert hazemap("ledger", "cap", "nyc", "1").code == 0
    assert len(hazemap("ledger", "list", "--ledger", "team.sqlite", "--json").json["datasets"]) == 1
    monkeypatch.delenv("HAZEMAP_LEDGER")
    assert hazemap("ledger", "list", "--json").json["datasets"] == []


@pytest.mark.parametrize("command", [("ledger", "list", "--ledger"), ("recover", "--ledger"), ("ledger", "init")])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://ann:s3cr3t@db.example/ledger", "holds no password"),
        ("postgresql://db.example/ledger?password=s3cr3t", "holds no secret, 'password'"),
        ("mysql://db.example/s3cr3t", "postgresql://"),
    ],
)
def test_a_url_with_a_password_is_refused_and_not_shown(command, url, words, hazemap):
    done = hazemap(*command, url)
    assert (done.code, done.out) == (2, "")
    assert words in done.err.replace("\n", " ")
    assert "s3cr3t" not in done.err


def test_a_server_that_is_not_there_is_the_ledgers_fault(hazemap, tmp_path):
    for command in (("ledger", "list", "--ledger"), ("ledger", "init")):
        done = hazemap(*command, f"postgresql:///ledger?host={tmp_path}")
        assert (done.code, done.out) == (5, "")


def test_beginning_a_ledger_anew_is_confirmed(release, hazemap, home):
    (home / "ledger.sqlite").unlink()
    for command in (["ledger", "list"], ["ledger", "cap", "visits", "9"]):
        assert hazemap(*command).code == 5
    asked = hazemap("ledger", "begin-anew")
    assert asked.code == 2 and "every cap" in asked.err and "--yes" in asked.err
    assert not (home / "ledger.sqlite").exists()
    assert hazemap("ledger", "begin-anew", "--yes").code == 0
    assert "no data set has paid anything yet" in hazemap("ledger", "list").out
