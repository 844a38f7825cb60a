"""Many processes on one ledger of many stewards, processes that are killed, and connections that are lost.

HAZEMAP_RACES and HAZEMAP_KILLS ask for more of them.
"""

import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import closing
from fractions import Fraction
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
from tests.privacy.team import Team, new_team, teams
from tests.privacy.test_team_ledger import PEOPLE, statement

from hazemap.errors import CapExceeded, LedgerError, PeriodPaid
from hazemap.privacy.budget import PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_postgresql import TeamLedger
from hazemap.privacy.ledger_records import Occasion
from hazemap.sources import postgresql

pytestmark = pytest.mark.slow

FORK = multiprocessing.get_context("fork")
RACES = int(os.environ.get("HAZEMAP_RACES", "50"))
KILLS = int(os.environ.get("HAZEMAP_KILLS", "10"))
RACERS = 4
PRICE = PureDP("1/7")
PATIENCE = 600.0
"""Waits for events end sooner or later on however slow a machine."""


@pytest.fixture(scope="module")
def server():
    with teams() as url:
        yield url


@pytest.fixture
def team(server) -> Team:
    return new_team(server)


def _racer(team: Team, login: str, start: Any, results: Any) -> None:
    ledger, won = team.ledger(login, PATIENCE), []
    for race in range(RACES):
        start.wait()
        try:
            ledger.charge(f"race {race}", PureDP(1), "the last", PEOPLE)
        except CapExceeded:
            continue
        won.append(race)
    results.put(won)


def _raced(team: Team, racer: Any, most: float = 1800) -> list[Any]:
    start, results = FORK.Barrier(RACERS), FORK.Queue()
    logins = ["ann", "ben"] * (RACERS // 2)
    racers = [FORK.Process(target=racer, args=(team, login, start, results)) for login in logins]
    for each in racers:
        each.start()
    found = [results.get(timeout=most) for _ in racers]
    for each in racers:
        each.join()
    return found


@pytest.mark.timeout(3600)
def test_of_four_processes_that_race_for_the_last_epsilon_exactly_one_gets_it(team) -> None:
    owner = team.ledger("olga")
    for race in range(RACES):
        owner.cap(f"race {race}", PureDP(1))
    won = _raced(team, _racer)
    assert sorted(chain(*won)) == list(range(RACES))
    assert sum(bool(each) for each in won) > 1  # nobody merely came first to every race
    assert {(page.spent, page.charges) for page in owner.datasets()} == {(PrivacyAmount("ε", Fraction(1)), 1)}
    assert sorted(record.charge.id for record in owner.history()) == list(range(1, RACES + 1))


def _payer(team: Team, login: str, start: Any, results: Any) -> None:
    ledger, paid = team.ledger(login, PATIENCE), []
    start.wait()
    for _ in range(RACES // 5):
        try:
            paid.append(ledger.charge("nyc", PRICE, "a seventh", PEOPLE).id)
        except CapExceeded:
            continue
    results.put(paid)


@pytest.mark.timeout(3600)
def test_four_processes_fill_a_cap_to_the_last_seventh_and_no_further(team) -> None:
    most = RACES // 5 * RACERS - 7
    team.ledger("olga").cap("nyc", PureDP(Fraction(most, 7)))
    paid = _raced(team, _payer)
    assert sorted(chain(*paid)) == list(range(1, most + 1))
    [page] = team.ledger("audrey").datasets()
    assert (page.spent, page.charges) == (PrivacyAmount("ε", Fraction(most, 7)), most)


def _nightly(team: Team, login: str, start: Any, results: Any) -> None:
    ledger, paid = team.ledger(login, PATIENCE), []
    for race in range(RACES // 5):
        start.wait()
        try:
            ledger.charge("nyc", PRICE, "a night", PEOPLE, None, Occasion("nightly", f"2026-{race}", PureDP(99)))
        except PeriodPaid:
            continue
        paid.append(race)
    results.put(paid)


def test_a_period_is_paid_once_whoever_comes_first(team) -> None:
    team.ledger("olga").cap("nyc", PureDP(10**6))
    assert sorted(chain(*_raced(team, _nightly))) == list(range(RACES // 5))


BYTES = b"a whole file" * 1_000


def _works(ledger: Ledger, files: Path) -> None:
    while True:
        charge = ledger.charge("nyc", PRICE, "a map", PEOPLE)
        part = files / f"{charge.id}.part"
        part.write_bytes(BYTES)
        part.replace(files / f"{charge.id}.map")
        ledger.released(charge.id, statement(PRICE), f"{charge.id}.map")


@pytest.mark.timeout(3600)
def test_a_process_that_is_killed_leaves_no_file_without_its_charge(team, tmp_path: Path) -> None:
    """Killed with SIGKILL at random instants, while another one pays as well."""
    team.ledger("olga").cap("nyc", PureDP(10**6))
    chance, other, between = random.Random(17), team.ledger("ben", PATIENCE), 0
    for kill in count():
        if kill >= KILLS and between:  # some fall after a charge and before its file, sooner or later
            return
        child = os.fork()
        if child == 0:
            try:
                _works(team.ledger("ann"), tmp_path)
            finally:
                os._exit(1)
        other.charge("nyc", PRICE, "a map of another", PEOPLE)
        time.sleep(chance.uniform(0, 0.1 * (1 + kill / KILLS)))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        other.charge("nyc", PRICE, "a map of another", PEOPLE)
        records = team.ledger("audrey").history()
        assert [record.charge.id for record in records] == list(range(1, len(records) + 1))
        [page] = team.ledger("audrey").datasets()
        assert page.spent.value == len(records) * PRICE.epsilon
        anns = {f"{record.charge.id}.map" for record in records if record.who == "ann"}
        there = {file.name for file in tmp_path.glob("*.map")}
        assert there <= anns
        assert {record.file for record in records if record.released} <= there
        assert all((tmp_path / name).read_bytes() == BYTES for name in there)
        assert sum(record.who == "ben" for record in records) == 2 * (kill + 1)
        between += len(anns) > len({record.file for record in records if record.released})


class Dropping:
    """A connection that is lost once: `before` what begins so is sent, or after the server has done it."""

    def __init__(self, db: Any, words: str, before: bool, lost: list[str]) -> None:
        self.db, self.words, self.before, self.lost = db, words, before, lost

    def execute(self, sql: str, values: Any = ()) -> Any:
        due = not self.lost and sql.startswith(self.words)
        if due and self.before:
            self._lose()
        done = self.db.execute(sql, values)
        if due:
            self._lose()
        return done

    def _lose(self) -> None:
        self.lost.append(self.words)
        self.db.close()
        raise postgresql.driver().OperationalError("the connection was lost")

    def close(self) -> None:
        self.db.close()


INSTANTS = ["BEGIN", "SELECT begin_write", "SELECT cap,", "SELECT * FROM write_charge", "COMMIT"]


def dropping(monkeypatch: pytest.MonkeyPatch, words: str, before: bool) -> list[str]:
    usual, lost = TeamLedger._connection, []
    monkeypatch.setattr(TeamLedger, "_connection", lambda self: Dropping(usual(self), words, before, lost))
    return lost


@pytest.mark.parametrize("words", INSTANTS)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_connection_that_is_lost_anywhere_in_a_charge_pays_once(team, monkeypatch, words, before) -> None:
    """With a cap that has room for one: an answer that was lost is not taken for a refusal either."""
    team.ledger("olga").cap("nyc", PRICE)
    lost = dropping(monkeypatch, words, before)
    charge = team.ledger("ann").charge("nyc", PRICE, "a map", PEOPLE)
    assert lost == [words]
    [record] = team.ledger("audrey").history()
    assert (record.charge, charge.id) == (charge, 1)


def test_without_tokens_a_lost_answer_would_be_paid_twice(team, monkeypatch) -> None:
    """The twin: it tries again, and does not look whether the first attempt counted."""
    team.ledger("olga").cap("nyc", PureDP(1))
    usual, tokens = TeamLedger._attempt, iter("abcdef")

    def forgetful(self: TeamLedger, db: Any, _token: str, body: Any, _ends: list[Any]) -> Any:
        return usual(self, db, next(tokens) * 32, body, [])

    monkeypatch.setattr(TeamLedger, "_attempt", forgetful)
    lost = dropping(monkeypatch, "COMMIT", before=False)
    team.ledger("ann").charge("nyc", PRICE, "a map", PEOPLE)
    assert lost == ["COMMIT"]
    assert len(team.ledger("audrey").history()) == 2


def test_a_cap_and_a_release_are_noted_once_as_well(team, monkeypatch) -> None:
    lost = dropping(monkeypatch, "COMMIT", before=False)
    team.ledger("olga").cap("nyc", PureDP(1))
    lost.clear()
    charge = team.ledger("ann").charge("nyc", PRICE, "a map", PEOPLE)
    lost.clear()
    team.ledger("ann").released(charge.id, statement(PRICE), "a.parquet")
    assert lost == ["COMMIT"]
    assert len(team.ledger("audrey").changes()) == 1
    assert [record.file for record in team.ledger("audrey").history()] == ["a.parquet"]


def test_a_server_that_stays_away_leaves_no_doubt_unsaid(team, monkeypatch) -> None:
    team.ledger("olga").cap("nyc", PureDP(1))
    lost = dropping(monkeypatch, "COMMIT", before=False)
    usual = TeamLedger._connection

    def away(self: TeamLedger) -> Any:
        if lost:
            raise postgresql.driver().OperationalError("no server there")
        return usual(self)

    monkeypatch.setattr(TeamLedger, "_connection", away)
    with pytest.raises(LedgerError, match=r"lost while it was writing.*see with `hazemap ledger history`"):
        team.ledger("ann", patience=0.5).charge("nyc", PRICE, "a map", PEOPLE)
    lost.append("for good")
    with pytest.raises(LedgerError, match=r"cannot be reached \(no server there\).*nothing was written"):
        team.ledger("ann", patience=0.5).charge("nyc", PRICE, "a map", PEOPLE)


def test_backends_that_are_ended_at_random_lose_nothing_and_pay_nothing_twice(team) -> None:
    team.ledger("olga").cap("nyc", PureDP(10**6))
    stop, ended = threading.Event(), Counter()
    chance = random.Random(3)

    def end() -> None:
        with closing(postgresql.connect(team.admin)) as db:
            while not stop.wait(chance.uniform(0, 0.15)):
                found = db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'"
                ).fetchall()
                ended["backends"] += len(found)

    other = threading.Thread(target=end)
    other.start()
    ledger, paid, refused = team.ledger("ann", PATIENCE), [], []
    try:
        while len(paid) < 3 * KILLS or not ended["backends"]:
            try:
                paid.append(ledger.charge("nyc", PRICE, "a map", PEOPLE).id)
            except LedgerError as error:
                refused.append(str(error))
    finally:
        stop.set()
        other.join()
    assert all("cannot be reached" in each for each in refused)  # ended while it was signing in: nothing had begun
    assert [record.charge.id for record in team.ledger("audrey").history()] == paid
