"""Commands with a ledger of many stewards: a release, one that is cut off, statistics, a schedule."""

from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.test_schedule import ORDER
from tests.privacy.team import Team, new_team, teams

from hazemap.errors import InputError
from hazemap.execution.crash_recovery import recoverable
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release
from hazemap.studio.stewards import Stewards
from hazemap.trust.curator import Curator

pytestmark = pytest.mark.slow

BOX = "--box=13.2,52.4,13.6,52.6"
MAP = ("release", "visits.parquet", "--person", "person", "-e", "1", BOX, "--dataset", "nyc")


@pytest.fixture(scope="module")
def server():
    with teams() as url:
        yield url


@pytest.fixture
def team(server) -> Team:
    return new_team(server)


def test_the_whole_of_it(team, hazemap, visits, monkeypatch, home):
    monkeypatch.setenv("HAZEMAP_LEDGER", team.url("ann"))
    refused = hazemap(*MAP, "-o", "map.parquet")
    assert refused.code == 3
    assert "no charge without one" in refused.err.replace("\n", " ")
    assert hazemap("ledger", "cap", "nyc", "9").code == 5
    assert hazemap("ledger", "cap", "nyc", "4", "--ledger", team.url("olga"), "--why", "the board").code == 0
    assert hazemap(*MAP, "-o", "map.parquet").code == 0

    usual = Curator.answer

    def interrupted(self, *rest):
        usual(self, *rest)
        raise MemoryError

    monkeypatch.setattr(Curator, "answer", interrupted)
    broken = hazemap(*MAP, "-o", "second.parquet")
    assert broken.code == 1
    assert "hazemap recover 2" in broken.err
    monkeypatch.setattr(Curator, "answer", usual)
    [waiting] = recoverable(Ledger.default())
    assert (waiting.record.charge.id, waiting.record.who) == (2, "ann")
    monkeypatch.setenv("HAZEMAP_HOME", str(home / "elsewhere"))  # another steward's machine has none of it
    assert recoverable(team.ledger("ben")) == []
    monkeypatch.setenv("HAZEMAP_HOME", str(home))
    done = hazemap("recover", "2")
    assert done.code == 0, done.err
    assert Release.open("second.parquet").statement.dataset == "nyc"

    history = hazemap("ledger", "history", "--json", "--ledger", team.url("audrey")).json
    # the question that was being answered when the run was cut off is paid once more
    assert [(each["charge"], each["who"], each["released"]) for each in history["charges"]] == [
        (1, "ann", True),
        (2, "ann", True),
        (3, "ann", True),
    ]
    assert "olga" in hazemap("ledger", "history").out
    assert hazemap(*MAP, "-o", "third.parquet", "-e", "2").code == 3
    assert not any(home.glob("team-*.runs/*.journal"))
    assert len(list(home.glob("team-*.key"))) == 1
    assert not (home / "ledger.sqlite").exists()

    key = hazemap("policy", "key", "page.key").out.strip()
    options = ("--sign", "page.key", "-o", "page.json", "--ledger", team.url("audrey"))
    assert hazemap("ledger", "export", "nyc", *options).code == 0
    verified = hazemap("ledger", "verify", "page.json", "--key", key, "--json").json
    spent = sum(Fraction(each["price"]["epsilon"]) for each in history["charges"])
    assert (verified["charges"], verified["spent"]["full"]) == (3, {"measure": "ε", "value": str(spent)})
    assert hazemap("ledger", "forget", "--days", "1").code == 5
    assert hazemap("ledger", "forget", "--days", "1", "--ledger", team.url("olga")).code == 0


def test_tables_that_look_alike_are_noticed_among_stewards_who_share_the_key(team, hazemap, visits, monkeypatch):
    for name in ("nyc", "copy"):
        team.ledger("olga").cap(name, PureDP(1))
    monkeypatch.setenv("HAZEMAP_LEDGER", team.url("ann"))
    assert hazemap(*MAP, "-o", "map.parquet").code == 0
    monkeypatch.setenv("HAZEMAP_LEDGER", team.url("ben"))
    done = hazemap(*MAP[:-1], "copy", "-o", "copy.parquet")
    assert done.code == 0
    assert "looks like one that pays as 'nyc'" in done.err.replace("\n", " ")


def test_users_of_a_studio_share_a_database_by_logins_of_their_own(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    users = tmp_path / "users.toml"
    text = "[ann]\nfolder = 'a'\nledger = 'postgresql://ann@db.example/l'\n"
    text += "[ben]\nfolder = 'b'\nledger = 'postgresql://{}@db.example/l'\n"
    users.write_text(text.format("ben"))
    found = Stewards.of_file(users)
    assert found.by_name["ben"].ledger.place == "postgresql://ben@db.example/l"
    users.write_text(text.format("ann"))
    with pytest.raises(InputError, match="would share a ledger"):
        Stewards.of_file(users)


def test_a_schedule_that_runs_on_two_machines_pays_for_a_period_once(
    team, hazemap, points, tmp_path, monkeypatch, home
):
    year = [1_577_836_800 + 31_622_400 * (row % 2) for row in range(3_000)]
    table = {name: column[:3_000] for name, column in points.items()}
    pq.write_table(pa.table(table | {"at": pa.array(year, pa.timestamp("s"))}), tmp_path / "visits.parquet")
    (tmp_path / "release.toml").write_text(ORDER)
    team.ledger("olga").cap("visits", PureDP(5))
    states = []
    for login, machine in (("ann", "one"), ("ben", "two")):
        monkeypatch.setenv("HAZEMAP_LEDGER", team.url(login))
        monkeypatch.setenv("HAZEMAP_HOME", str(home / machine))
        done = hazemap("schedule", "run", "release.toml", "--now", "2022-01-01", "--json")
        assert done.code == 0, done.err
        states.append(([each["state"] for each in done.json["periods"]], done.json["there"]))
    assert states == [(["released", "released"], 0), ([], 2)]
    assert [each.occasion.period for each in team.ledger("audrey").history()] == ["2020", "2021"]
