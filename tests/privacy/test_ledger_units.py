"""Fault 2: the ledger added what cannot be added. A charge says whose it is, and only the same people's add up."""

import json
import sqlite3
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hazemap.errors import CapExceeded, CodecError, HazemapWarning, InputError, LedgerError, OtherUnit
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_balance import read_budget, read_protected, read_unit
from hazemap.privacy.ledger_records import ProtectedUnit
from hazemap.privacy.privacy_unit import DEVICE, ROW, TEXT, VALUES_ONLY, WHOLE_NUMBERS, Unit
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson

USERS = Unit.person("user", TEXT)
VALUES = Unit.person("user", TEXT, model=VALUES_ONLY)
OTHERS = [Unit.person("trip", TEXT), ROW, DEVICE, Unit.person("trip", TEXT, model=VALUES_ONLY)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def spent(ledger: Ledger) -> dict[str, Fraction]:
    return {status.model: status.spent.value for status in ledger.datasets()}


def test_fault_2_rows_as_people_are_not_charged_to_the_page_on_which_persons_pay(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "a map", USERS)
    with pytest.raises(
        OtherUnit, match=r"people told apart by the column 'user'.*rows, each taken for a person"
    ) as said:
        ledger.charge("nyc", PureDP(1), "rows are people", ROW)
    assert "--dataset 'nyc, rows'" in str(said.value)
    assert len(ledger.history()) == 1
    ledger.charge("nyc, rows", PureDP(1), "rows are people", ROW)


def test_fault_2_trips_are_not_charged_to_the_page_on_which_users_pay(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "a map", USERS)
    with pytest.raises(OtherUnit, match=r"--person user.*--dataset 'nyc by trip'"):
        ledger.charge("nyc", PureDP(1), "a map", Unit.person("trip", TEXT))
    assert [record.charge.unit for record in ledger.history()] == [USERS]


def test_fault_2_full_statistics_reach_the_values_only_page_so_that_caps_of_one_do_not_lose_three(
    ledger: Ledger,
) -> None:
    ledger.cap("rides", PureDP(1))
    ledger.cap("rides", PureDP(1), model=VALUES_ONLY)
    with pytest.raises(CapExceeded, match=r"the values-only page of the data set 'rides' has ε = 1 left.*ε = 2 there"):
        ledger.charge("rides", PureDP(1), "statistics", USERS)
    ledger.charge("rides", PureDP("0.5"), "statistics", USERS)
    with pytest.raises(CapExceeded, match="ε = 0 left"):
        ledger.charge("rides", PureDP("0.001"), "values", VALUES)
    assert spent(ledger) == {"full": Fraction(1, 2), "values-only": 1}


def test_fault_2_a_campaign_cannot_take_the_name_of_a_values_only_page(ledger: Ledger) -> None:
    for attempt in (
        lambda: ledger.check("x (values only)", PureDP(1), DEVICE),
        lambda: ledger.charge("x  (values only) ", PureDP(1), "campaign", DEVICE),
        lambda: ledger.account("x (values only)", "campaign", DEVICE),
        lambda: ledger.cap("x (values only)", PureDP(1)),
        lambda: ledger.protect("x (values only)", ProtectedUnit("device")),
    ):
        with pytest.raises(InputError, match=r"once named a page.*--values-only"):
            attempt()
    assert ledger.datasets() == []


@pytest.mark.parametrize("first", [USERS, *OTHERS], ids=str)
def test_the_first_charge_fixes_whom_a_data_set_protects(ledger: Ledger, first: Unit) -> None:
    ledger.charge("nyc", PureDP(1), "first", first)
    for other in {ProtectedUnit.of(unit): unit for unit in [USERS, *OTHERS]}.values():
        if ProtectedUnit.of(other) == ProtectedUnit.of(first):
            ledger.charge("nyc", PureDP(1), "again", other)
        else:
            for refused in (ledger.account("nyc", "other", other).charge, ledger.account("nyc", "other", other).check):
                with pytest.raises(OtherUnit, match="prices of the two do not add up"):
                    refused(PureDP(1))
    assert {ProtectedUnit.of(record.charge.unit) for record in ledger.history()} == {ProtectedUnit.of(first)}


def test_a_refused_charge_protects_nobody(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    with pytest.raises(CapExceeded):
        ledger.charge("nyc", PureDP(2), "too much", ROW)
    assert ledger.datasets()[0].protects is None
    ledger.charge("nyc", PureDP(1), "a map", USERS)


def test_a_cap_may_say_whom_a_data_set_protects(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1), protects=ProtectedUnit("person", "User"))
    with pytest.raises(OtherUnit):
        ledger.charge("nyc", PureDP(1), "a map", ROW)
    ledger.protect("nyc", ProtectedUnit("person", "trip"))  # nothing was charged: it may still be changed
    ledger.protect("nyc", ProtectedUnit("person", "user"))
    ledger.charge("nyc", PureDP(1), "a map", USERS)
    assert ledger.datasets()[0].protects == ProtectedUnit("person", "user", TEXT)
    with pytest.raises(OtherUnit, match="has paid for people told apart by the column 'user' already"):
        ledger.protect("nyc", ProtectedUnit("person", "trip"))


def test_who_has_no_ids_has_no_values_only_page(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "a map", ROW)
    with pytest.raises(InputError, match="nobody's values have a page"):
        ledger.cap("nyc", PureDP(1), model=VALUES_ONLY)
    ledger.cap("oslo", PureDP(1), model=VALUES_ONLY)
    with pytest.raises(OtherUnit, match="has a values-only page"):
        ledger.protect("oslo", ProtectedUnit("device"))
    with pytest.raises(OtherUnit):
        ledger.charge("oslo", PureDP("0.1"), "a map", ROW)


def test_ids_that_are_read_otherwise_are_a_warning_and_the_same_page(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "from the CSV", USERS)
    with pytest.warns(HazemapWarning, match="7 and 07 are one person as whole numbers, and two as text"):
        ledger.charge("nyc", PureDP(1), "from Parquet", Unit.person("User", WHOLE_NUMBERS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.charge("nyc", PureDP(1), "from the CSV, found", Unit.person("user", TEXT, guessed=True))
    assert spent(ledger) == {"full": 3}


def test_where_warnings_are_errors_a_caution_costs_nothing(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "from the CSV", USERS)
    account = ledger.account("nyc", "from Parquet", Unit.person("user", WHOLE_NUMBERS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HazemapWarning):
            account.charge(PureDP(1))
    assert account.receipt is None
    assert spent(ledger) == {"full": 1}


@pytest.mark.parametrize("other", [VALUES, ROW, DEVICE, Unit.person("trip", TEXT)], ids=str)
def test_a_statement_about_others_than_those_who_paid_is_not_noted(ledger: Ledger, other: Unit) -> None:
    charge = ledger.charge("nyc", PureDP(1), "a map", USERS)
    about = (A_PERSON, AtMostRows(1)) if other != ROW else (A_ROW, RowIsPerson())
    words = ("nyc", about[0], "one added or removed", PureDP(1), about[1], "curator", (), "discrete Laplace", (), ())
    stated = Statement(*words, "flat", "2026-01-02", "0.1.0", StatementFacts(other))
    with pytest.raises(LedgerError, match=r"the statement is about .*, but charge 1 paid for a person: all rows of"):
        ledger.released(charge.id, stated, None)
    assert not ledger.history()[0].released
    ledger.released(charge.id, replace(stated, unit=A_PERSON, bounding=AtMostRows(1), circumstances=UNSAID), None)


def test_what_is_no_unit_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="whose privacy"):
        ledger.charge("nyc", PureDP(1), "a map", "a person")  # type: ignore[arg-type]
    assert not ledger.path.exists()


# the two models


def test_charges_of_the_full_model_count_under_values_only_at_the_price_of_a_replacement(ledger: Ledger) -> None:
    pair = ApproxDP(1, 1e-6)
    ledger.charge("rides", PureDP("0.5"), "pure", USERS)
    ledger.charge("rides", ZCDP("0.1"), "concentrated", USERS)
    ledger.charge("rides", pair, "approximate", USERS)
    ledger.charge("rides", ZCDP("0.3"), "values", VALUES)
    full = Fraction(1, 8) + Fraction(1, 10) + pair.rho
    assert spent(ledger) == {"full": full, "values-only": 4 * full + Fraction(3, 10)}


def test_values_only_charges_do_not_count_under_the_full_model(ledger: Ledger) -> None:
    ledger.cap("rides", PureDP(1))
    ledger.cap("rides", PureDP(9), model=VALUES_ONLY)
    ledger.charge("rides", PureDP(7), "values", VALUES)
    ledger.charge("rides", PureDP(1), "a map", USERS)
    assert spent(ledger) == {"full": 1, "values-only": 9}


@pytest.mark.parametrize("kind", [PureDP, ZCDP])
def test_a_refusal_by_the_values_only_page_names_what_may_be_asked_for(ledger: Ledger, kind) -> None:
    for limit, offer in ((PureDP(1), "ε = 0.5"), (ZCDP(2), "ε = 1" if kind is PureDP else "ρ = 0.5")):
        ledger.cap("rides", limit, model=VALUES_ONLY)
        if (kind, type(limit)) == (ZCDP, PureDP):
            with pytest.raises(CapExceeded, match="implies no finite pure ε"):
                ledger.charge("rides", kind(5), "too much", USERS)
        else:
            with pytest.raises(CapExceeded, match=rf"ask for at most {offer}, or .*--values-only"):
                ledger.charge("rides", kind(5), "too much", USERS)
    ledger.charge("rides", kind(offer.split(" = ")[1]), "what was offered", USERS)
    assert ledger.status("rides", VALUES_ONLY).remaining.value == 0


def test_a_full_charge_in_rho_keeps_a_cap_in_pure_epsilon_from_values(ledger: Ledger) -> None:
    ledger.charge("rides", ZCDP("0.1"), "concentrated", USERS)
    with pytest.raises(InputError, match="the values-only page of the data set 'rides' has paid in ρ"):
        ledger.cap("rides", PureDP(5), model=VALUES_ONLY)
    assert [status.model for status in ledger.datasets()] == ["full"]


def test_a_cap_on_whereabouts_covers_no_values_only_charge(ledger: Ledger) -> None:
    ledger.cap("rides", PureDP(9))
    for refused in (
        lambda: ledger.check("rides", PureDP(1), VALUES_ONLY),
        lambda: ledger.charge("rides", PureDP(1), "values", VALUES),
    ):
        with pytest.raises(CapExceeded, match=r"tells these exactly.*hazemap ledger cap rides … --values-only"):
            refused()


# the history of caps


def test_every_change_of_a_cap_is_kept_with_when_who_and_why(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    ledger.cap("nyc", PureDP(2), why="the board,\nof 3 May")
    ledger.cap("nyc", ZCDP(1), model=VALUES_ONLY)
    ledger.cap("oslo", PureDP(3), protects=ProtectedUnit("person", "user"))
    changes = ledger.changes("nyc")
    assert [(change.model, change.old, change.new, change.why) for change in changes] == [
        ("full", None, PureDP(1), None),
        ("full", PureDP(1), PureDP(2), "the board, of 3 May"),
        (VALUES_ONLY, None, ZCDP(1), None),
    ]
    assert all(change.who and change.time.endswith("Z") for change in changes)
    assert [(change.model, change.new) for change in ledger.changes("oslo")] == [
        (None, ProtectedUnit("person", "user")),
        ("full", PureDP(3)),
    ]
    assert len(ledger.changes()) == 5


def test_a_cap_that_is_refused_leaves_no_history(ledger: Ledger) -> None:
    ledger.charge("nyc", ZCDP(1), "a map", USERS)
    with pytest.raises(InputError):
        ledger.cap("nyc", PureDP(1), protects=ProtectedUnit("person", "user"), why="impossible")
    assert ledger.changes() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE charges SET unit = '{}'", "a unit that hazemap did not write"),
        ("UPDATE datasets SET protects = '[]'", "does not say whom"),
        ('UPDATE datasets SET protects = \'{"kind": "everybody"}\'', "does not say whom"),
    ],
)
def test_units_changed_by_hand_are_not_believed(ledger: Ledger, change: str, words: str) -> None:
    ledger.charge("nyc", PureDP(1), "a map", USERS)
    with sqlite3.connect(ledger.path) as db:
        db.execute(change)
    with pytest.raises(LedgerError, match=words):
        ledger.history(), ledger.charge("nyc", PureDP(1), "a map", USERS)


def test_whom_a_data_set_protects_comes_back_from_its_json() -> None:
    for protected in (
        ProtectedUnit.of(USERS),
        ProtectedUnit("person", "user"),
        ProtectedUnit("row"),
        ProtectedUnit("device"),
    ):
        assert ProtectedUnit.from_json(json.loads(json.dumps(protected.to_json()))) == protected


# what is written in the ledger, and read from it


def fresh(plain: object) -> object:
    """The same from JSON: texts that are equal, and no longer the very ones in the code."""
    return json.loads(json.dumps(plain))


def test_units_and_whom_they_are_about_are_what_they_were_in_letters_read_from_a_file() -> None:
    words = {
        USERS: ("a person: all rows of one id in the column 'user', read as text, letter by letter", "user"),
        VALUES: (
            "a person's values alone: those of all rows of one id in the column 'user', read as text, letter by letter",
            "user",
        ),
        ROW: ("a row, taken for a person of its own", None),
        DEVICE: ("a person: all rows on one device", None),
    }
    whom = {
        "person": "people told apart by the column 'user'",
        "row": "rows, each taken for a person of its own",
        "device": "the people of devices",
    }
    for unit, (said, column) in words.items():
        read = Unit.from_json(fresh(unit.to_json()))
        assert (read, str(read), read.column, read.to_json()) == (unit, said, column, unit.to_json())
        about = ProtectedUnit.from_json(fresh(ProtectedUnit.of(unit).to_json()))
        assert about == ProtectedUnit.of(read) and str(about) == whom[unit.kind]
        assert about.agrees(read) and about.caution("nyc", read) is None
        for other in words:
            assert about.agrees(other) == (unit.kind == other.kind)
    assert ProtectedUnit("person", "user").caution("nyc", USERS) is None


@pytest.mark.parametrize(
    ("mine", "other", "words"),
    [
        (USERS, ROW, ("adds up what people told apart by", "about rows", "--person user", "'nyc, rows'")),
        (ROW, USERS, ("adds up what rows", "the column 'user'", "--bounding 'rows are people'", "'nyc by user'")),
        (DEVICE, ROW, ("adds up what the people of devices", "`hazemap campaign`", "'nyc, rows'")),
        (ROW, DEVICE, ("about the people of devices", "'nyc, devices'")),
    ],
)
def test_a_refusal_says_whom_the_page_is_about_and_what_to_do(mine: Unit, other: Unit, words: tuple[str, ...]) -> None:
    said = ProtectedUnit.from_json(fresh(ProtectedUnit.of(mine).to_json())).refusal(
        "nyc", Unit.from_json(fresh(other.to_json()))
    )
    assert all(each in said for each in words)


@pytest.mark.parametrize(
    "wrong",
    [{}, [], "person", {"kind": "row", "id_column": "user"}, {"kind": "row", "read_as": "text"}, {"kind": "nobody"}],
)
def test_json_that_says_of_nobody_that_they_are_protected_is_refused(wrong: object) -> None:
    with pytest.raises(CodecError):
        ProtectedUnit.from_json(fresh(wrong))


@pytest.mark.parametrize(
    "more", [{}, {"id_column": ""}, {"id_column": "u", "x": "y"}, {"id_column": "u", "read_as": ""}]
)
def test_what_is_said_of_a_column_of_ids_has_its_fields_and_no_others(more: dict[str, str]) -> None:
    words = "an object with a kind" if "x" in more else "this JSON does not say whom a data set protects"
    if more.get("read_as") == "":
        assert ProtectedUnit.from_json({"kind": "person", **more}).read_as == ""
    else:
        with pytest.raises(CodecError, match=words):
            ProtectedUnit.from_json({"kind": "person", **more})
    with pytest.raises(CodecError, match="an object with a kind"):
        ProtectedUnit.from_json(fresh(more))


def test_names_of_columns_have_1_to_300_characters() -> None:
    for column, words in (("u", "w"), ("u" * 300, "w" * 300)):
        assert Unit.person(column, words).id_column == column
        for wrong in ((column + "u" * 300, words), ("", words), (column, words + "w" * 300), (column, "")):
            with pytest.raises(InputError):
                Unit.person(*wrong)


@pytest.mark.parametrize("text", [None, 7, "{", "[]", "7", '"ε"', '{"epsilon": "0"}', b"\xff"])
def test_prices_units_and_people_that_hazemap_did_not_write_are_not_believed(text: object) -> None:
    with pytest.raises(LedgerError, match="a price that hazemap did not write"):
        read_budget(text)  # type: ignore[arg-type]
    for read, words in ((read_unit, "a unit that hazemap did not write"), (read_protected, "does not say whom")):
        if text is None:
            assert read(text) is None
        else:
            with pytest.raises(LedgerError, match=words):
                read(text)  # type: ignore[operator]


@pytest.mark.parametrize("rho", ["x'31'", "'0'", "'-1'", "'1/0'", "'much'"])
def test_a_rho_that_is_none_is_not_believed(ledger: Ledger, rho: str) -> None:
    ledger.charge("nyc", ZCDP(1), "a map", USERS)
    with sqlite3.connect(ledger.path) as db:
        db.execute(f"UPDATE charges SET rho = {rho}")
    with pytest.raises(LedgerError, match="a ρ that hazemap did not write"):
        ledger.datasets()


@pytest.mark.parametrize("file", ["nyc.parquet", None])
def test_charges_for_questions_asked_once_more_are_noted_with_the_first_and_no_others(ledger: Ledger, file) -> None:
    for dataset in ("nyc", "nyc", "oslo", "nyc", "nyc"):
        ledger.charge(dataset, PureDP(1), "a map", USERS, run=f"of {dataset}")
    words = (
        "nyc",
        A_PERSON,
        "one added or removed",
        PureDP(1),
        AtMostRows(1),
        "curator",
        (),
        "discrete Laplace",
        (),
        (),
    )
    ledger.released(2, Statement(*words, "flat", "2026-01-02", "0.1.0"), file, again=[3, 4, 9])
    found = [(record.released, record.file, record.statement is None) for record in ledger.history()]
    assert found == [(at in (1, 3), file if at in (1, 3) else None, at != 1) for at in range(5)]
    assert [record.run for record in ledger.history("oslo")] == ["of oslo"]
    with pytest.raises(InputError, match="knows no data set 'rom'; it knows 'nyc', 'oslo'"):
        ledger.changes("rom")
    with pytest.raises(InputError, match="it knows none"):
        Ledger(ledger.path.with_name("other.sqlite")).history("nyc")


def test_a_name_has_200_characters_at_most(ledger: Ledger) -> None:
    assert ledger.charge("x" * 200, PureDP(1), "a map", USERS).dataset == "x" * 200
    with pytest.raises(InputError, match="1 to 200 printable"):
        ledger.charge("x" * 201, PureDP(1), "a map", USERS)


def test_pages_are_told_by_their_names_and_only_where_there_are_any(ledger: Ledger) -> None:
    assert ledger.status("nyc", VALUES_ONLY) is None
    ledger.cap("nyc", PureDP(2), model=VALUES_ONLY)
    ledger.charge("nyc", PureDP("0.5"), "values", VALUES)
    ledger.charge("amsterdam", PureDP(1), "a map", DEVICE)
    assert [(status.name, status.model, status.charges) for status in ledger.datasets()] == [
        ("amsterdam", "full", 1),
        ("nyc", VALUES_ONLY, 1),
    ]
    assert ledger.status("nyc", "full") is None and ledger.status("amsterdam", VALUES_ONLY) is None
    with pytest.raises(CapExceeded, match=r"ε = 1\.5 left of its cap ε = 2"):
        ledger.check("nyc", PureDP("1.6"), VALUES_ONLY)
    ledger.check("nyc", PureDP("1.5"), VALUES_ONLY)
    ledger.check("nyc", PureDP("0.75"), "full")
    with pytest.raises(CapExceeded, match=r"asks for ε = 0\.76, which costs ε = 1\.52 there"):
        ledger.check("nyc", PureDP("0.76"), "full")
