import os
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from hazemap.errors import InputError, LedgerError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.duplicate_tables import Fingerprints
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_file import LedgerFile
from hazemap.privacy.privacy_unit import Unit
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.contribution_bounding import AtMostRows

PEOPLE = Unit.person("user", "text")

STATEMENT = Statement(
    dataset="nyc",
    unit=A_PERSON,
    neighbours="one person added or removed",
    budget=PureDP(1),
    bounding=AtMostRows(1),
    trust="curator",
    assumptions=(),
    noise="discrete Laplace",
    public=(),
    charged=(),
    method="flat grid",
    created="2026-01-02",
    version="0.1.0",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


def everything(ledger: Ledger) -> list[Callable[[], object]]:
    return [
        lambda: ledger.charge("nyc", PureDP("0.01"), "a map", PEOPLE),
        lambda: ledger.cap("nyc", PureDP(9)),
        lambda: ledger.released(1, STATEMENT, None),
        ledger.datasets,
        ledger.history,
    ]


def filled(ledger: Ledger) -> bytes:
    ledger.cap("nyc", PureDP(1))
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    return ledger.path.read_bytes()


@pytest.mark.parametrize("keep", [2, 15, 99, 100, 4095, 4096, 8192, 12288])
def test_a_torn_ledger_is_damaged_and_not_an_empty_one(ledger: Ledger, keep: int) -> None:
    whole = filled(ledger)
    assert keep < len(whole)
    ledger.path.write_bytes(whole[:keep])
    for call in everything(ledger):
        with pytest.raises(LedgerError, match=r"damaged.*backup"):
            call()


@pytest.mark.parametrize("page", range(1, 4))
def test_a_ledger_with_a_page_of_noise_is_damaged(ledger: Ledger, page: int) -> None:
    whole = bytearray(filled(ledger))
    whole[page * 4096 : (page + 1) * 4096] = bytes(range(256)) * 16
    ledger.path.write_bytes(whole)
    for call in everything(ledger):
        with pytest.raises(LedgerError, match=r"damaged.*backup"):
            call()


def test_a_file_that_is_no_database_is_not_touched(ledger: Ledger) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text("user,lon,lat\n" * 1000)
    for call in everything(ledger):
        with pytest.raises(LedgerError, match="is not a ledger, or is damaged"):
            call()
    assert ledger.path.read_text() == "user,lon,lat\n" * 1000


def test_the_database_of_another_program_is_not_touched(ledger: Ledger) -> None:
    ledger.path.parent.mkdir()
    with sqlite3.connect(ledger.path) as db:
        db.execute("CREATE TABLE charges (amount REAL)")
    for call in everything(ledger):
        with pytest.raises(LedgerError, match="no ledger of hazemap's"):
            call()


def test_a_ledger_of_a_newer_hazemap_is_not_touched(ledger: Ledger) -> None:
    filled(ledger)
    with sqlite3.connect(ledger.path) as db:
        db.execute("PRAGMA user_version = 4")
    for call in everything(ledger):
        with pytest.raises(LedgerError, match="newer hazemap: upgrade"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE charges SET price = '1'",
        "UPDATE charges SET price = '{'",
        'UPDATE charges SET price = \'{"kind": "ZCDP", "rho": "1/2"}\'',
        "UPDATE charges SET rho = '-1'",
        "UPDATE charges SET rho = 'much'",
        "UPDATE pages SET cap = x'ff00'",
        "UPDATE pages SET cap = '[]'",
        "PRAGMA user_version = 0",
        "DROP TABLE charges",
    ],
)
def test_a_ledger_changed_by_hand_allows_no_charge(ledger: Ledger, change: str) -> None:
    filled(ledger)
    with sqlite3.connect(ledger.path) as db:
        db.execute(change)
    with pytest.raises(LedgerError, match="backup"):
        ledger.charge("nyc", PureDP("0.01"), "a map", PEOPLE)


def test_a_statement_that_cannot_be_read_is_named(ledger: Ledger) -> None:
    filled(ledger)
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE charges SET statement = '{}'")
    with pytest.raises(LedgerError, match="the statement of charge 1 cannot be read"):
        ledger.history()


def test_an_empty_file_is_a_ledger_whose_making_was_interrupted(ledger: Ledger) -> None:
    ledger.path.parent.mkdir()
    ledger.path.touch()
    assert ledger.datasets() == []
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    assert str(ledger.datasets()[0].spent) == "ε = 1"


def test_a_ledger_kept_locked_is_said_to_be_in_use(ledger: Ledger) -> None:
    filled(ledger)
    impatient = Ledger(ledger.path, patience=0.2)
    with sqlite3.connect(ledger.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        for call in everything(impatient):
            with pytest.raises(LedgerError, match=r"in use by another process for 0\.2 s: nothing was written"):
                call()
        other.execute("ROLLBACK")
    assert len(ledger.history()) == 1


def test_a_ledger_waits_for_others_for_half_a_minute_at_least(ledger: Ledger) -> None:
    assert ledger.patience >= 30


def test_a_full_disk_charges_nothing_and_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(ledger)
    connect = sqlite3.connect

    def on_a_full_disk(*args, **options) -> sqlite3.Connection:
        db = connect(*args, **options)
        db.execute("PRAGMA max_page_count = 1")  # SQLite then answers SQLITE_FULL as soon as the file must grow
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", on_a_full_disk)
        with pytest.raises(LedgerError, match="the disk is full: nothing was written; make room"):
            ledger.charge("oslo", PureDP(1), "x" * 10_000, PEOPLE)
    assert [status.name for status in ledger.datasets()] == ["nyc"]


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    with pytest.raises(LedgerError, match=r"cannot be reached .*HAZEMAP_HOME"):
        Ledger(tmp_path / "home" / "ledger.sqlite").charge("nyc", PureDP(1), "a map", PEOPLE)


def test_a_ledger_that_is_a_folder_is_said(tmp_path: Path) -> None:
    for call in everything(Ledger(tmp_path)):
        with pytest.raises(LedgerError, match=r"cannot be opened .*HAZEMAP_HOME"):
            call()


def in_a_child_without_rights(work: Callable[[], None]) -> int:
    """Run in a fork that is nobody, because nothing is read-only to root."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("gone", ["removed", "emptied", "without a table"])
@pytest.mark.parametrize("kept", ["key", "journal"])
def test_a_ledger_that_is_gone_begins_anew_by_command_only(ledger: Ledger, gone: str, kept: str) -> None:
    filled(ledger)
    if kept == "key":
        Fingerprints(ledger).key()
    else:
        ledger.store.runs.mkdir()
        (ledger.store.runs / "5f3a.journal").write_bytes(b"x")
    with pytest.raises(InputError, match="is there, so nothing begins anew"):
        ledger.store.begin_anew()
    ledger.path.unlink()
    if gone == "emptied":
        ledger.path.touch()
    elif gone == "without a table":
        sqlite3.connect(ledger.path).execute("VACUUM")
    for call in everything(ledger):
        with pytest.raises(LedgerError, match=r"is gone or empty, but .* still there, .*begin-anew"):
            call()
    assert ledger.path.exists() == (gone != "removed")
    ledger.store.begin_anew()
    assert ledger.charge("nyc", PureDP(5), "a map", PEOPLE).id == 1


def test_a_ledger_from_which_charges_were_removed_is_refused(ledger: Ledger) -> None:
    filled(ledger)
    with sqlite3.connect(ledger.path) as db:
        db.execute("DELETE FROM charges")
    for call in everything(ledger):
        with pytest.raises(LedgerError, match="charges were removed"):
            call()


def test_what_lies_beside_a_ledger_is_not_made_before_it(ledger: Ledger) -> None:
    assert Fingerprints(ledger).key() and ledger.datasets() == [] and ledger.path.exists()


@pytest.mark.parametrize("ledger_there", [True, False])
def test_in_a_read_only_folder_nothing_is_charged_and_the_ledger_can_still_be_read(ledger_there: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        if ledger_there:
            filled(ledger)
            ledger.path.chmod(0o444)
        Path(folder).chmod(0o555)

        def work() -> None:
            assert len(ledger.history()) == ledger_there
            assert len(ledger.datasets()) == ledger_there
            with pytest.raises(LedgerError, match=r"nothing was written; make its folder writable"):
                ledger.charge("nyc", PureDP("0.01"), "a map", PEOPLE)

        assert in_a_child_without_rights(work) == 0
        Path(folder).chmod(0o755)


def test_what_a_charge_wrote_is_on_the_disk_before_it_returns(ledger: Ledger) -> None:
    filled(ledger)
    with LedgerFile(ledger.path, 1).writing() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA: the folder is synced as well
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert [file.name for file in ledger.path.parent.iterdir()] == ["ledger.sqlite"]
