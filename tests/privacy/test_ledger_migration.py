"""Ledgers of an older hazemap (schema 1): all they hold stays, and what they do not say is asked for, once."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from tests.privacy.older_ledger import old, statement

from hazemap.errors import CapExceeded, LedgerError, OtherUnit
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import ProtectedUnit
from hazemap.privacy.privacy_unit import DEVICE, ROW, TEXT, VALUES_ONLY, Unit
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement

USERS = Unit.person("user", TEXT)
VALUES = Unit.person("user", TEXT, model=VALUES_ONLY)
A_DEVICE = "a person: all rows on one device"
OF_VALUES = "a person's values alone (not whereabouts): those of all rows of one id"


def pages(ledger: Ledger) -> dict[tuple[str, str], tuple[Budget | None, int]]:
    return {(status.name, status.model): (status.cap, status.charges) for status in ledger.datasets()}


def test_every_charge_and_every_cap_stays_and_looking_writes_nothing(tmp_path: Path) -> None:
    pair = ApproxDP(1, 1e-6)
    ledger = old(
        tmp_path / "ledger.sqlite",
        {"nyc": PureDP(9), "nyc (values only)": ZCDP(5), "oslo": pair, "bare": None, "trees": None},
        [
            ("nyc", PureDP("1/3"), A_PERSON),
            ("nyc (values only)", ZCDP("0.1"), OF_VALUES),
            ("nyc", PureDP(2), None),
            ("oslo", pair, A_DEVICE),
            ("trees", PureDP(1), A_ROW),
            ("nyc (values only)", PureDP("0.5"), None),
        ],
    )
    before = ledger.path.read_bytes()
    expected = {
        ("bare", "full"): (None, 0),
        ("nyc", "full"): (PureDP(9), 2),
        ("nyc", "values-only"): (ZCDP(5), 2),
        ("oslo", "full"): (pair, 1),
        ("trees", "full"): (None, 1),
    }
    assert pages(ledger) == expected
    records = ledger.history()
    assert [(each.charge.id, each.charge.dataset, each.charge.price) for each in records] == [
        (1, "nyc", PureDP("1/3")),
        (2, "nyc", ZCDP("0.1")),
        (3, "nyc", PureDP(2)),
        (4, "oslo", pair),
        (5, "trees", PureDP(1)),
        (6, "nyc", PureDP("0.5")),
    ]
    assert [each.charge.unit for each in records] == [None, None, None, DEVICE, ROW, None]
    assert [each.released for each in records] == [True, True, False, True, True, False]
    assert ledger.path.read_bytes() == before
    assert ledger.charge("new", PureDP(1), "a map", USERS).id == 7
    assert pages(ledger) == expected | {("new", "full"): (None, 1)}
    assert ledger.history()[:-1] == records
    values = ledger.status("nyc", VALUES_ONLY)
    first, second = PureDP("1/3"), PureDP(2)
    assert values.spent.value == 4 * (first.rho + second.rho) + ZCDP("0.1").rho + PureDP("0.5").rho


def test_a_values_cap_in_pure_epsilon_beside_a_map_in_rho_has_nothing_left_and_can_be_raised(tmp_path: Path) -> None:
    ledger = old(
        tmp_path / "ledger.sqlite",
        {"nyc": None, "nyc (values only)": PureDP(5), "oslo": None},
        [("nyc", ZCDP("0.1"), A_PERSON), ("nyc (values only)", PureDP(1), OF_VALUES)],
    )
    assert pages(ledger)["nyc", "values-only"] == (PureDP(5), 1)  # each page is shown, and those of others
    ledger.protect("nyc", ProtectedUnit("person", "user"))
    status = ledger.status("nyc", VALUES_ONLY)
    assert (status.spent, status.remaining) == (PrivacyAmount("ρ", Fraction(9, 10)), PrivacyAmount("ε", Fraction(0)))
    for unit in (USERS, VALUES):
        with pytest.raises(CapExceeded, match=r"has ε = 0 left .*imply no finite pure ε; give it a cap in ρ"):
            ledger.charge("nyc", PureDP("0.001"), "a map", unit)
    ledger.cap("nyc", ZCDP(1), model=VALUES_ONLY)
    ledger.charge("nyc", ZCDP("0.1"), "values", VALUES)
    assert ledger.status("nyc", VALUES_ONLY).remaining == PrivacyAmount("ρ", Fraction(0))


def test_who_charges_persons_next_is_asked_by_which_column_they_were_told_apart(tmp_path: Path) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"new york": None}, [("new york", PureDP(1), A_PERSON)])
    with pytest.raises(OtherUnit, match=r"by which column.*`hazemap ledger unit 'new york' --person COLUMN`"):
        ledger.charge("new york", PureDP(1), "a map", USERS)
    assert len(ledger.history()) == 1
    with pytest.raises(OtherUnit, match="say that they are about a person"):
        ledger.protect("new york", ProtectedUnit("row"))
    ledger.protect("new york", ProtectedUnit("person", "user"), why="it is in the log of May")
    ledger.charge("new york", PureDP(1), "a map", USERS)
    with pytest.raises(OtherUnit):
        ledger.charge("new york", PureDP(1), "a map", Unit.person("trip", TEXT))
    [change] = ledger.changes("new york")
    assert (change.old, change.new, change.why) == (None, ProtectedUnit("person", "user"), "it is in the log of May")


def test_rows_and_devices_are_known_from_their_statements(tmp_path: Path) -> None:
    charges = [("trees", PureDP(1), A_ROW), ("town", PureDP(1), A_DEVICE)]
    ledger = old(tmp_path / "ledger.sqlite", {"trees": None, "town": None}, charges)
    ledger.charge("trees", PureDP(1), "a map", ROW)
    ledger.charge("town", PureDP(1), "a campaign", DEVICE)
    for name, unit in (("trees", USERS), ("town", USERS), ("trees", DEVICE), ("town", ROW)):
        with pytest.raises(OtherUnit):
            ledger.charge(name, PureDP(1), "another", unit)


@pytest.mark.parametrize(
    "whom", [ProtectedUnit("person", "user"), ProtectedUnit("row"), ProtectedUnit("device")], ids=str
)
def test_what_was_not_released_may_be_anybodys_so_the_steward_says_whose(tmp_path: Path, whom: ProtectedUnit) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"nyc": PureDP(5)}, [("nyc", PureDP(1), None)])
    for unit in (USERS, ROW, DEVICE, VALUES):
        with pytest.raises(OtherUnit, match=r"--person COLUMN`, or with `.*--rows`"):
            ledger.account("nyc", "a map", unit).check(PureDP(1))
    ledger.cap("nyc", PureDP(4), protects=whom)
    assert ledger.datasets()[0].protects == whom


@pytest.mark.parametrize("other", [A_ROW, A_DEVICE])
def test_a_page_that_added_what_cannot_be_added_is_closed(tmp_path: Path, other: str) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"nyc": None}, [("nyc", PureDP(1), A_PERSON), ("nyc", PureDP(1), other)])
    for refused in (
        lambda: ledger.charge("nyc", PureDP(1), "a map", USERS),
        lambda: ledger.protect("nyc", ProtectedUnit("person", "user")),
    ):
        with pytest.raises(OtherUnit, match=r"several units .*whose sum holds for nobody"):
            refused()
    assert len(ledger.history("nyc")) == 2


def test_a_campaign_that_took_the_name_of_a_values_only_page_keeps_it_and_the_page_is_closed(tmp_path: Path) -> None:
    charges = [("x (values only)", PureDP(1), A_DEVICE), ("x (values only)", PureDP(1), OF_VALUES)]
    ledger = old(tmp_path / "ledger.sqlite", {"x (values only)": PureDP(3), "x": None}, charges)
    assert pages(ledger) == {("x", "full"): (None, 0), ("x (values only)", "full"): (PureDP(3), 2)}
    assert len(ledger.history("x (values only)")) == 2
    ledger.charge("x", PureDP(1), "a map", USERS)


def test_a_charge_that_was_not_noted_as_released_can_still_be(tmp_path: Path) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"x (values only)": None}, [("x (values only)", PureDP(1), None)])
    ledger.released(1, Statement.from_json(json.loads(statement("x", PureDP(1), A_PERSON))), "x.parquet")
    assert ledger.history()[0].released


def test_an_older_ledger_that_is_damaged_is_not_brought_up_to_date(tmp_path: Path) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"nyc": None}, [("nyc", PureDP(1), A_PERSON)] * 50)
    whole = bytearray(ledger.path.read_bytes())
    whole[2 * 4096 : 3 * 4096] = bytes(range(256)) * 16
    ledger.path.write_bytes(whole)
    for call in (ledger.history, lambda: ledger.charge("oslo", PureDP(1), "a map", USERS)):
        with pytest.raises(LedgerError, match="backup"):
            call()
    assert ledger.path.read_bytes() == whole


def test_a_refused_charge_leaves_an_older_ledger_as_it_was(tmp_path: Path) -> None:
    ledger = old(tmp_path / "ledger.sqlite", {"nyc": None}, [("nyc", PureDP(1), A_PERSON)])
    before = ledger.path.read_bytes()
    with pytest.raises(OtherUnit):
        ledger.charge("nyc", PureDP(1), "a map", USERS)
    assert ledger.path.read_bytes() == before
