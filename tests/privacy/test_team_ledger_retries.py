"""What becomes of what PostgreSQL says, without a server: done again, or told with what to do."""

from typing import Any

import psycopg
import pytest

from hazemap.errors import CapExceeded, LedgerError
from hazemap.privacy.ledger_postgresql import VERSION, TeamLedger


class Row:
    def __init__(self, value: object) -> None:
        self.value = value

    def fetchone(self) -> tuple[object]:
        return (self.value,)


class Scripted:
    """A connection whose n-th transaction fails, where a script says so, with an error of a class of PostgreSQL's."""

    def __init__(self, script: list[str | None], log: list[str], counted: bool) -> None:
        self.script, self.log, self.counted = script, log, counted

    def execute(self, sql: str, _values: Any = ()) -> Row:
        self.log.append(sql.partition(" ")[0])
        if sql == "COMMIT" and self.script and (code := self.script.pop(0)):
            raise psycopg.errors.lookup(code)("what the server says") if code != "lost" else psycopg.OperationalError()
        return Row(self.counted if "was_written" in sql else VERSION)

    def close(self) -> None:
        self.log.append("closed")


def written(
    script: list[str | None], monkeypatch: pytest.MonkeyPatch, patience: float = 60, counted: bool = False
) -> tuple[Any, list[str]]:
    log: list[str] = []
    ledger, calls = TeamLedger("postgresql:///none", patience), iter(range(100))
    monkeypatch.setattr(TeamLedger, "_connection", lambda _self: Scripted(script, log, counted))
    return ledger.write(lambda _db: next(calls)), log


@pytest.mark.parametrize("code", ["40001", "40P01", "23505"])
def test_what_others_have_undone_is_done_again_from_the_start(code, monkeypatch) -> None:
    result, log = written([code, code, None], monkeypatch)
    assert result == 2
    assert log.count("COMMIT") == log.count("closed") == 3


@pytest.mark.parametrize(("counted", "result", "commits"), [(True, 0, 1), (False, 1, 2)])
def test_a_lost_answer_is_asked_for_before_anything_is_done_again(counted, result, commits, monkeypatch) -> None:
    found, log = written(["lost", None], monkeypatch, counted=counted)
    assert (found, log.count("COMMIT")) == (result, commits)


def test_it_is_done_again_until_its_patience_is_over(monkeypatch) -> None:
    with pytest.raises(LedgerError, match="in use by others for 0 s, or away: nothing was written"):
        written(["40001"] * 50, monkeypatch, patience=0)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("42501", LedgerError, "owners set caps"),
        ("42P01", LedgerError, "hazemap ledger init"),
        ("25006", LedgerError, "cannot be used .what the server says.: nothing was written"),
        ("57014", LedgerError, "in use by others"),
    ],
)
def test_everything_else_is_told_at_once(code, kind, words, monkeypatch) -> None:
    script = [code, None]
    with pytest.raises(kind, match=words):
        written(script, monkeypatch)
    assert script == [None]


def test_its_own_functions_words_are_errors_of_their_kind() -> None:
    ledger = TeamLedger("postgresql:///none", 60)

    class Own(psycopg.Error):
        sqlstate = "HZ001"

    assert isinstance(ledger._told(Own("no room")), CapExceeded)
    Own.sqlstate = "HZ002"
    assert "refuses: no room; nothing was written" in str(ledger._told(Own("no room")))
