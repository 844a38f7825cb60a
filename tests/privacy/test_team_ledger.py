"""The ledger of many stewards: what it holds, who may do what, and what its own functions refuse."""

import json
import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from tests.privacy.team import Team, new_team, teams

from hazemap.errors import CapExceeded, HazemapError, InputError, LedgerError, OtherUnit, PeriodPaid
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_postgresql import set_up
from hazemap.privacy.ledger_records import Occasion, ProtectedUnit
from hazemap.privacy.privacy_unit import DEVICE, ROW, Unit
from hazemap.privacy.statement import A_PERSON, Statement, budget_to_json
from hazemap.sources import postgresql
from hazemap.tables.contribution_bounding import AtMostRows

pytestmark = pytest.mark.slow

PEOPLE = Unit.person("user", "text")
VALUES = Unit.person("user", "text", model="values-only")


@pytest.fixture(scope="module")
def server():
    with teams() as url:
        yield url


@pytest.fixture
def team(server) -> Team:
    return new_team(server)


def statement(price: Budget, dataset: str = "nyc") -> Statement:
    return Statement(
        dataset=dataset,
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=price,
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


A_SEVENTH = PureDP("1/7")


def paid(
    cost: Budget = A_SEVENTH, whose: Unit = PEOPLE, *, dataset: str = "nyc", rho: str | None = None, **more: str
) -> str:
    """The call that writes a charge, as somebody would by hand."""
    values = {
        "model": whose.model,
        "unit": json.dumps(whose.to_json()),
        "price": json.dumps(budget_to_json(cost)),
        "rho": rho or str(cost.rho),
        "what": "a map",
        **more,
    }
    every = {"run": None, "schedule": None, "period": None, "allowance": None, "dataset": dataset, **values}
    quoted = {name: "NULL" if value is None else "'" + value.replace("'", "''") + "'" for name, value in every.items()}
    return f"SELECT * FROM write_charge({', '.join(f'of_{name} => {value}' for name, value in quoted.items())})"


@pytest.mark.parametrize("budget", [PureDP("1/7"), ZCDP("0.01"), ApproxDP(1, "1e-6")])
def test_a_release_in_two_charges_is_noted_where_they_make_up_its_price(budget, team, tmp_path: Path) -> None:
    team.ledger("olga").cap("nyc", ApproxDP(3, "1e-6"))
    ann, parts = team.ledger("ann"), (budget.part(Fraction(1, 10)), budget.part(Fraction(9, 10)))
    account = ann.account("nyc", "a map", PEOPLE, "run1", Occasion("nightly", "2026-03-29", ZCDP(1)), whole=budget)
    account.charge(parts[0])
    with pytest.raises(LedgerError, match="but charge 1 paid"):
        ann.released(1, statement(budget), None)
    account.charge(parts[1])
    account = ann.account("nyc", "a map", PEOPLE, "run2", whole=budget)
    account.charge(parts[0])
    [first, rest, _] = ann.history()
    assert (first.charge.price, rest.charge.price, rest.run) == (*parts, "run1:rest")
    [page] = ann.datasets()
    assert page.spent.value == budget.rho + parts[0].rho  # of the second run the look alone
    for wrong in (budget.part(Fraction(1, 2)), parts[0], PureDP(1)):
        with pytest.raises(LedgerError):
            ann.released(1, statement(wrong), None)
        with pytest.raises(LedgerError), ann.store.reading() as db:  # by hand
            db.execute("SELECT note_release(1, ?, NULL)", (json.dumps(statement(wrong).to_json()),))
    ann.released(1, statement(budget), "map.parquet", again=account.later or (2,))
    assert [each.file for each in ann.history()] == ["map.parquet", "map.parquet", None]


def test_it_keeps_what_the_file_keeps(team, tmp_path: Path) -> None:
    owner, ann = team.ledger("olga"), team.ledger("ann")
    file = Ledger(tmp_path / "ledger.sqlite")
    nightly = Occasion("nightly", "2026-03-29", PureDP(3))
    for ledger in (owner, file):
        ledger.cap("nyc", PureDP(1), why="the board")
        ledger.cap("nyc", ApproxDP(3, 1e-6))
        ledger.cap("nyc", ZCDP(5), model="values-only", protects=ProtectedUnit("person", "User"))
    for ledger in (ann, file):
        ledger.charge("nyc", PureDP("1/7"), "a\n map", PEOPLE, "run1")
        ledger.charge("nyc", ZCDP("0.01"), "another", VALUES)
        ledger.charge("nyc", PureDP("1/3"), "a night", PEOPLE, "run2", nightly)
        ledger.charge("nyc", PureDP("1/3"), "again", PEOPLE, "run2:1", nightly)
        ledger.released(1, statement(PureDP("1/7")), "/maps/naïve.parquet")
        ledger.released(3, statement(PureDP("1/3")), None, again=[4])
        with pytest.raises(LedgerError, match="released already"):
            ledger.released(1, statement(PureDP("1/7")), None)
        with pytest.raises(PeriodPaid):
            ledger.charge("nyc", PureDP("1/3"), "twice", PEOPLE, "run3", nightly)
        with pytest.raises(CapExceeded):
            ledger.charge("nyc", PureDP(9), "too much", PEOPLE)
        with pytest.raises(OtherUnit):
            ledger.charge("nyc", PureDP("1/7"), "rows", ROW)
        with pytest.raises(InputError, match="knows no data set 'oslo'"):
            ledger.history("oslo")
    audited = team.ledger("audrey")
    for found, expected in zip(audited.datasets(), file.datasets(), strict=True):
        assert (found.name, found.model, found.protects, found.cap) == (
            *(expected.name, expected.model, expected.protects, expected.cap),
        )
        assert (found.spent, found.remaining, found.charges) == (expected.spent, expected.remaining, expected.charges)
    for record, other in zip(audited.history("nyc"), file.history(), strict=True):
        assert (record.charge.id, record.charge.price, record.charge.what, record.charge.unit) == (
            *(other.charge.id, other.charge.price, other.charge.what, other.charge.unit),
        )
        assert (record.released, record.statement, record.file, record.run, record.occasion) == (
            *(other.released, other.statement, other.file, other.run, other.occasion),
        )
        assert (record.who, other.who) == ("ann", None)
    for change, noted in zip(audited.changes(), file.changes(), strict=True):
        assert (change.dataset, change.model, change.old, change.new, change.why) == (
            *(noted.dataset, noted.model, noted.old, noted.new, noted.why),
        )
        assert change.who == "olga"
    assert [each.charge for each in audited.periods("nightly")] == [3, 4]


STEWARD = {
    "charge": paid(),
    "note a release": f"SELECT note_release(1, $${json.dumps(statement(PureDP('1/7')).to_json())}$$, 'map.parquet')",
    "note a question asked again": "SELECT note_release_again(1, 'nyc', 'map.parquet')",
    "keep a fingerprint": "SELECT remember('nyc', '\\x00', 8)",
    "read fingerprints": "SELECT * FROM fingerprints",
}
OWNER = {
    "open a page": "SELECT open_page('oslo', 'full')",
    "raise a cap": """SELECT set_cap('nyc', 'full', '{"kind": "PureDP", "epsilon": "9"}', '81/2', 'mine')""",
    "say whom it protects": """SELECT set_protects('bare', '{"kind": "row"}', 'mine')""",
    "forget statements": "SELECT * FROM forget('2020-01-01T00:00:00Z', NULL)",
}
EITHER = {"begin to write": "SELECT begin_write(repeat('0', 32))", "ask for a token": "SELECT was_written('x')"}
READING = {
    f"read {table}": f"SELECT * FROM {table}"
    for table in ("ledger", "datasets", "pages", "charges", "changes", "forgotten")
}
NOBODY = {
    "lower a price": "UPDATE charges SET price = '{}', rho = '1/1000'",
    "undo a release": "UPDATE charges SET state = 'charged'",
    "delete a charge": "DELETE FROM charges",
    "empty the charges": "TRUNCATE charges CASCADE",
    "insert a charge": "INSERT INTO charges (id, dataset, model, unit, price, rho, time, who, what) "
    """VALUES (9, 'nyc', 'full', '{}', '{"kind": "PureDP", "epsilon": "-1"}', '-1', 'now', 'x', 'y')""",
    "insert a cap": "INSERT INTO pages VALUES ('oslo', 'full', NULL, NULL, 'now')",
    "change a cap": "UPDATE pages SET cap = NULL",
    "delete a page": "DELETE FROM pages",
    "change whom it protects": "UPDATE datasets SET protects = NULL",
    "rewrite the changes": "UPDATE changes SET who = 'somebody'",
    "delete a change": "DELETE FROM changes",
    "note a change": "SELECT note_change('nyc', 'full', 'a', 'b', 'c')",
    "delete fingerprints": "DELETE FROM fingerprints",
    "read tokens": "SELECT * FROM writes",
    "forget what was forgotten": "DELETE FROM forgotten",
    "make itself newer": "UPDATE ledger SET version = 0",
    "replace a function": "CREATE OR REPLACE FUNCTION utc() RETURNS TEXT LANGUAGE sql AS 'SELECT now()::TEXT'",
    "shadow a function": "CREATE FUNCTION hazemap_ledger.utc(x INT) RETURNS INT LANGUAGE sql AS 'SELECT 1'",
    "drop the triggers": "DROP TRIGGER stays ON charges",
    "disable the triggers": "ALTER TABLE charges DISABLE TRIGGER ALL",
    "skip the triggers": "SET session_replication_role = replica",
    "make a table": "CREATE TABLE hazemap_ledger.mine (x INTEGER)",
    "drop the ledger": "DROP SCHEMA hazemap_ledger CASCADE",
    "become the owner of the tables": 'SET ROLE "hazemap_{database}_tables"',
    "join the owners": 'GRANT "hazemap_{database}_owner" TO CURRENT_USER',
}
MAY = {"steward": [STEWARD, EITHER, READING], "owner": [OWNER, EITHER, READING], "auditor": [READING], None: []}
ALL = {**STEWARD, **OWNER, **EITHER, **READING, **NOBODY}
NOT_ALLOWED = {"42501", "0LP01"}


@pytest.mark.parametrize(
    ("login", "group"), [("ann", "steward"), ("olga", "owner"), ("audrey", "auditor"), ("nobody", None)]
)
def test_the_database_lets_each_group_do_its_own_work_and_nothing_else(team, login, group) -> None:
    """Every attempt, by SQL that is written by hand: exactly those that a group may do go through."""
    psycopg = postgresql.driver()
    team.ledger("olga").cap("nyc", PureDP(5))
    team.ledger("olga").cap("bare", PureDP(5))
    if login != "ann":
        team.ledger("ann").charge("nyc", PureDP(1), "a map", PEOPLE)
    allowed = {name for some in MAY[group] for name in some}
    database = postgresql.driver().conninfo.conninfo_to_dict(team.admin)["dbname"]
    went = {}
    for name, attempt in ALL.items():
        try:
            team.raw(login, attempt.replace("{database}", database))
            went[name] = "done"
        except psycopg.Error as error:
            went[name] = "not allowed" if error.sqlstate in NOT_ALLOWED | {"3F000", "42P01", "42883"} else str(error)
    assert went == {name: "done" if name in allowed else "not allowed" for name in ALL}
    assert [each.charge.price for each in team.ledger("audrey").history()] == [
        PureDP("1/7") if login == "ann" else PureDP(1)
    ]


def test_not_even_the_administrator_deletes_a_charge_by_mistake(team) -> None:
    psycopg = postgresql.driver()
    team.ledger("olga").cap("nyc", PureDP(5))
    team.ledger("ann").charge("nyc", PureDP(1), "a map", PEOPLE)
    for mistake in ("DELETE FROM charges", "TRUNCATE charges", "UPDATE charges SET price = rho", "DELETE FROM changes"):
        with pytest.raises(psycopg.Error, match="append-only"):
            team.raw("hazemap", mistake)


WRONG = {
    "a price below zero": (paid(price='{"kind": "PureDP", "epsilon": "-1"}', rho="1/2"), "no budget"),
    "a price of zero": (paid(price='{"kind": "PureDP", "epsilon": "0"}', rho="0"), "above 0"),
    "a price over zero": (paid(price='{"kind": "PureDP", "epsilon": "1/0"}', rho="1/2"), "above 0"),
    "a rho below zero": (paid(rho="-1/98"), "above 0"),
    "a price of more digits than hazemap reads": (
        paid(price=json.dumps({"kind": "ZCDP", "rho": f"1/{10**150}"}), rho=f"1/{10**150}"),
        "no budget",
    ),
    "a price in floats": (paid(price='{"kind": "PureDP", "epsilon": "1e-9"}', rho="1/2"), "no budget"),
    "a price that is a number": (paid(price='{"kind": "PureDP", "epsilon": 1}', rho="1/2"), "no budget"),
    "a price with more in it": (paid(price='{"kind": "PureDP", "epsilon": "1", "x": "1"}', rho="1/2"), "no budget"),
    "a price that is NaN": (paid(price='{"kind": "PureDP", "epsilon": "NaN"}', rho="NaN"), "no budget"),
    "a price that is nothing": (paid(price="null"), "no budget"),
    "a price of another kind": (paid(price='{"kind": "Free", "epsilon": "1"}'), "no budget"),
    "a delta of one": (paid(price='{"kind": "ApproxDP", "epsilon": "1", "delta": "1"}', rho="1"), "no budget"),
    "a rho that is too small": (paid(PureDP(1), rho="1/1000"), "with the ρ that it costs"),
    "a rho of zcdp that is too small": (paid(ZCDP(1), rho="1/1000"), "with the ρ that it costs"),
    "a rho of a pair that is too small": (paid(ApproxDP(1, 1e-6), rho="1/1000"), "with the ρ that it costs"),
    "more than the cap": (paid(PureDP(6)), "no room"),
    "a little more than the cap": (paid(PureDP(Fraction(10**30 * 5 + 1, 10**30))), "no room"),
    "zcdp under a cap in pure epsilon": (paid(ZCDP("1/1000")), "nothing but pure ε"),
    "a data set without a page": (paid(dataset="oslo"), "without a cap"),
    "a page without a cap": (paid(whose=VALUES), "without a cap"),
    "rows of people": (paid(whose=ROW), "protects others"),
    "a unit of another model": (paid(whose=ROW, model="values-only"), "no unit"),
    "a unit of nobody": (paid(unit='{"kind": "person", "model": "full"}'), "no unit"),
    "a unit without a column": (paid(PureDP(1)).replace('"user"', "null"), "no unit"),
    "no unit at all": (paid(unit="null"), "no unit"),
    "a line break": (paid(what="a\nb"), "charges_what_check"),
    "codes for a terminal": (paid(what="\x1b[2J"), "charges_what_check"),
    "a period without a schedule": (paid(period="2026"), "charges_check"),
    "an allowance that is none": (paid(schedule="s", period="2026", allowance="{}"), "no budget"),
}


def test_a_steward_cannot_write_a_charge_that_hazemap_would_not(team) -> None:
    psycopg = postgresql.driver()
    team.ledger("olga").cap("nyc", PureDP(5), protects=ProtectedUnit("person", "user"))
    for name, (attempt, words) in WRONG.items():
        try:
            found = str(team.raw("ann", attempt))
        except psycopg.Error as error:
            found = str(error)
        assert words in found.partition("\nCONTEXT")[0], name
    assert team.ledger("audrey").history() == []


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_a_weaker_isolation_is_refused(team, isolation) -> None:
    psycopg = postgresql.driver()
    team.ledger("olga").cap("nyc", PureDP(5))
    with pytest.raises(psycopg.Error, match="serialisable"):
        team.raw("ann", paid(), isolation=isolation)
    assert team.raw("ann", paid())[0][0] == 1


def test_a_run_and_a_period_are_paid_once_whoever_writes(team) -> None:
    psycopg = postgresql.driver()
    team.ledger("olga").cap("nyc", PureDP(5))
    period = {"schedule": "nightly", "period": "2026-01-01", "allowance": '{"kind": "PureDP", "epsilon": "1"}'}
    team.raw("ann", paid(run="one", **period))
    for again in (paid(run="one"), paid(run="two", **period), paid(**period)):
        with pytest.raises(psycopg.Error, match=r"paid already|charge_of_period"):
            team.raw("ben", again)
    with pytest.raises(LedgerError, match="this run has paid already; nothing was written"):
        team.ledger("ben").charge("nyc", A_SEVENTH, "the same run", PEOPLE, "one")
    team.raw("ann", paid(run="one:1", **period))
    assert [each.charge.id for each in team.ledger("audrey").history()] == [1, 2]  # no number is lost


def test_only_who_paid_says_what_for(team) -> None:
    team.ledger("olga").cap("nyc", PureDP(5))
    ann, ben = team.ledger("ann"), team.ledger("ben")
    ann.charge("nyc", PureDP(1), "a map", PEOPLE)
    with pytest.raises(LedgerError, match="by who paid it"):
        ben.released(1, statement(PureDP(1)), "his.parquet")
    for wrong in ("{}", "null", '{"budget": {"kind": "PureDP", "epsilon": "1/2"}}'):
        with pytest.raises(postgresql.driver().Error, match="with the statement of the release"):
            team.raw("ann", f"SELECT note_release(1, '{wrong}', 'hers.parquet')")
    ann.released(1, statement(PureDP(1)), "hers.parquet")
    assert team.ledger("audrey").history()[0].file == "hers.parquet"


def test_refusals_say_who_may(team) -> None:
    team.ledger("olga").cap("nyc", PureDP(5))
    for login, attempt in (
        ("ann", lambda book: book.cap("nyc", PureDP(9))),
        ("audrey", lambda book: book.charge("nyc", PureDP(1), "a map", PEOPLE)),
        ("olga", lambda book: book.charge("nyc", PureDP(1), "a map", PEOPLE)),
        ("nobody", lambda book: book.datasets()),
    ):
        with pytest.raises(LedgerError, match="owners set caps"):
            attempt(team.ledger(login))
    for act in (team.ledger("ann").check, lambda *of: team.ledger("ann").charge(*of[:2], "a map", of[2])):
        with pytest.raises(CapExceeded, match="no charge without one"):
            act("oslo", PureDP(1), PEOPLE)
    with pytest.raises(LedgerError, match="hazemap ledger init"):
        Ledger(team.admin.replace(team.admin.split("?")[0], "postgresql:///postgres")).datasets()
    with pytest.raises(LedgerError, match="cannot be reached"):
        team.ledger("stranger").datasets()


PRICES: list[Budget] = [
    PureDP("1/7"),
    PureDP("1/3"),
    PureDP("0.4"),
    PureDP(1),
    ZCDP("1/9"),
    ZCDP("0.02"),
    ApproxDP(1, 1e-6),
]
CAPS: list[Budget] = [PureDP(2), PureDP("1.5"), ZCDP(1), ApproxDP(3, 1e-6), ZCDP("0.5")]


def test_its_functions_refuse_just_what_hazemap_refuses(team, tmp_path: Path) -> None:
    """300 random charges by hand beside the file's ledger, which has checks of its own: the same go through."""
    psycopg, chance = postgresql.driver(), random.Random(17)
    file, owner = Ledger(tmp_path / "ledger.sqlite"), team.ledger("olga")
    went = {True: 0, False: 0}
    with closing(postgresql.connect(team.url("ann"))) as db:
        db.execute("SET search_path = hazemap_ledger")
        for number in range(30):
            name = f"d{number}"
            for model, share in (("full", 1.0), ("values-only", 0.7)):
                if chance.random() < share:
                    cap = chance.choice(CAPS)
                    for book in (file, owner):
                        book.cap(name, cap, model=model)
            for _ in range(10):
                price, unit = chance.choice(PRICES), chance.choice([PEOPLE, PEOPLE, VALUES])
                try:
                    file.charge(name, price, "a map", unit)
                    expected = True
                except CapExceeded:
                    expected = False
                try:
                    db.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
                    db.execute(paid(price, unit, dataset=name))
                    db.execute("COMMIT")
                    found = True
                except psycopg.Error as error:
                    if error.sqlstate != "HZ001":
                        raise
                    db.execute("ROLLBACK")
                    found = False
                assert found == expected, (name, price, unit)
                went[found] += 1
    assert min(went.values()) > 50
    assert [(each.spent, each.remaining) for each in owner.datasets()] == [
        (each.spent, each.remaining) for each in file.datasets()
    ]


def test_every_pair_that_hazemap_books_is_taken(team) -> None:
    """The database's least ρ of (ε, δ) is below the one that hazemap books, over sizes far beyond use."""
    epsilons = [Fraction(each) for each in ("1/1000", "0.1", "0.7", "1", "3", "20", "300")]
    deltas = [Fraction(1, 10**power) for power in (1, 2, 6, 12, 40, 149)] + [Fraction(9, 10), 1 - Fraction(1, 10**9)]
    asked, little = 0, []
    with closing(postgresql.connect(team.admin)) as db:
        db.execute("SET search_path = hazemap_ledger")
        for epsilon, delta in product(epsilons, deltas):
            try:
                pair = ApproxDP(epsilon, delta)
                rho = pair.rho
            except InputError:
                continue
            text = json.dumps(budget_to_json(pair))
            db.execute("SELECT checked_budget(%s, %s)", (text, str(rho)))
            try:
                db.execute("SELECT checked_budget(%s, %s)", (text, str(rho / 3)))
                little.append((pair, rho))
            except postgresql.driver().Error:
                asked += 1
    assert asked > 40, little


def test_making_it_again_changes_nothing_that_it_holds(team) -> None:
    team.ledger("olga").cap("nyc", PureDP(5))
    team.ledger("ann").charge("nyc", PureDP(1), "a map", PEOPLE)
    before = team.raw("hazemap", "SELECT identity FROM ledger"), team.ledger("audrey").history()
    set_up(team.admin)
    assert (team.raw("hazemap", "SELECT identity FROM ledger"), team.ledger("audrey").history()) == before
    team.ledger("ann").charge("nyc", PureDP(1), "a map", PEOPLE)
    with pytest.raises(LedgerError, match="CREATEROLE"):
        set_up(team.url("ann"))
    team.raw("hazemap", "UPDATE ledger SET version = 1")
    with pytest.raises(LedgerError, match=r"by an older hazemap: .*`hazemap ledger init`"):
        team.ledger("ann").datasets()
    set_up(team.admin)
    assert len(team.ledger("ann").history()) == 2
    team.raw("hazemap", "UPDATE ledger SET version = 99")
    for late in (
        lambda: set_up(team.admin),
        team.ledger("ann").datasets,
        lambda: team.ledger("olga").cap("a", ZCDP(1)),
    ):
        with pytest.raises(LedgerError, match="newer hazemap"):
            late()


def test_whoever_may_make_roles_and_schemas_can_make_it_without_being_superuser(server) -> None:
    with closing(postgresql.connect(server)) as db:
        db.execute("CREATE ROLE maker LOGIN CREATEROLE")
        db.execute("CREATE DATABASE made OWNER maker ENCODING 'UTF8' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    url = server.replace("///postgres?", "///made?").replace("user=hazemap", "user=maker")
    groups = set_up(url)
    with closing(postgresql.connect(url)) as db:
        db.execute(f'GRANT "{groups.owner}" TO olga')
        with pytest.raises(postgresql.driver().Error, match="permission denied"):
            db.execute("DELETE FROM hazemap_ledger.charges")
    assert Ledger(url.replace("user=maker", "user=olga")).cap("nyc", PureDP(1)).cap == PureDP(1)


def test_statements_are_forgotten_and_charges_are_not(team) -> None:
    owner, ann = team.ledger("olga"), team.ledger("ann")
    owner.cap("nyc", PureDP(5))
    for number in (1, 2, 3):
        ann.charge("nyc", PureDP(1), "a map", PEOPLE)
        if number < 3:
            ann.released(number, statement(PureDP(1)), f"{number}.parquet")
    ann.store.write(lambda db: db.remember("nyc", b"print", 8))
    before = owner.datasets()
    assert owner.forget(datetime.now(UTC) - timedelta(days=1)) == (0, 0)
    team.raw("hazemap", "ALTER TABLE charges DISABLE TRIGGER price_stays")
    team.raw("hazemap", "UPDATE charges SET time = '2020-01-01T00:00:00Z' WHERE id <> 2")
    assert owner.forget(datetime(2021, 1, 1, tzinfo=UTC)) == (1, 0)
    team.raw("hazemap", "UPDATE charges SET time = '2020-01-01T00:00:00Z'")
    assert owner.forget(datetime(2021, 1, 1, tzinfo=UTC), "nyc") == (1, 1)
    found = team.ledger("audrey").history()
    assert [(each.charge.id, each.released, each.statement, each.file) for each in found] == [
        (1, True, None, "1.parquet"),
        (2, True, None, "2.parquet"),
        (3, False, None, None),
    ]
    assert owner.datasets() == before
    for wrong in (datetime.now(UTC) + timedelta(days=1), datetime(2021, 1, 1)):  # what is refused
        with pytest.raises(InputError, match="before a time that is over"):
            owner.forget(wrong)
    with pytest.raises(LedgerError, match="owners set caps"):
        ann.forget(datetime(2021, 1, 1, tzinfo=UTC))
    told = team.raw("audrey", "SELECT dataset, statements, fingerprints, who FROM forgotten ORDER BY id")
    assert told == [(None, 0, 0, "olga"), (None, 1, 0, "olga"), ("nyc", 1, 1, "olga")]


def test_a_password_is_in_no_message(team, monkeypatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cr3t-of-ann")
    told = []
    for attempt in (
        lambda: team.ledger("stranger").datasets(),
        lambda: team.ledger("ann").cap("nyc", PureDP(1)),
        lambda: Ledger(team.url("ann").replace("host=", "hots=")).datasets(),
        lambda: set_up(team.url("stranger")),
        lambda: set_up(team.url("ann")),
    ):
        with pytest.raises(HazemapError) as caught:
            attempt()
        told.append(repr(caught.value))
    assert "s3cr3t" not in "".join(told)


def test_devices_pay_too(team) -> None:
    team.ledger("olga").cap("phones", PureDP(1))
    team.ledger("ann").charge("phones", PureDP("1/2"), "a campaign", DEVICE)
    [page] = team.ledger("audrey").datasets()
    assert (page.protects, page.spent) == (ProtectedUnit("device"), PrivacyAmount("ε", Fraction(1, 2)))
