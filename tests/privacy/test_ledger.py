import os
import re
import sys
import tempfile
import threading
import unicodedata
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.errors import CapExceeded, InputError, LedgerError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import Occasion
from hazemap.privacy.ledger_units import left_in
from hazemap.privacy.privacy_unit import Model, Unit
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.contribution_bounding import AtMostRows

PEOPLE = Unit.person("user", "text")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


def statement(dataset: str = "nyc", budget: Budget | None = None) -> Statement:
    return Statement(
        dataset=dataset,
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=budget or PureDP(1),
        bounding=AtMostRows(1),
        trust="curator",
        assumptions=("the curator sees the table",),
        noise="discrete Laplace",
        public=("the box",),
        charged=("the counts",),
        method="flat grid",
        created="2026-01-02",
        version="0.1.0",
    )


def spent(ledger: Ledger, dataset: str = "nyc") -> str:
    return next(str(status.spent) for status in ledger.datasets() if status.name == dataset)


# caps


def test_ten_tenths_fill_a_cap_of_one_exactly_and_an_eleventh_is_refused(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    for _ in range(10):
        ledger.charge("nyc", PureDP(0.1), "a tenth", PEOPLE)
    with pytest.raises(CapExceeded) as refusal:
        ledger.charge("nyc", PureDP(0.1), "one too many", PEOPLE)
    assert str(refusal.value) == (
        "the data set 'nyc' has ε = 0 left of its cap ε = 1 (spent ε = 1); this release asks for ε = 0.1: "
        "raise the cap with `hazemap ledger cap nyc …` if the people's agreement allows it"
    )
    assert spent(ledger) == "ε = 1"


def test_a_charge_of_the_whole_cap_is_allowed(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP("1/3"))
    ledger.charge("nyc", PureDP("1/3"), "everything", PEOPLE)
    assert ledger.datasets()[0].remaining == PrivacyAmount("ε", Fraction(0))


def test_a_charge_a_hair_above_the_cap_is_refused(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    with pytest.raises(CapExceeded):
        ledger.charge("nyc", PureDP(1 + Fraction(1, 10**40)), "a hair", PEOPLE)


def test_a_refusal_names_what_is_left_to_ask_for(ledger: Ledger) -> None:
    ledger.cap("new york", PureDP(1))
    ledger.charge("new york", PureDP("0.6"), "first", PEOPLE)
    with pytest.raises(CapExceeded, match=re.escape("ask for at most ε = 0.4, or raise")) as refusal:
        ledger.charge("new york", PureDP(1), "second", PEOPLE)
    assert "hazemap ledger cap 'new york' …" in str(refusal.value)


def test_a_refused_charge_writes_nothing(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    with pytest.raises(CapExceeded):
        ledger.charge("nyc", PureDP(2), "too much", PEOPLE)
    assert ledger.history() == []
    assert spent(ledger) == "ε = 0"


@pytest.mark.parametrize("price", [ZCDP("0.0001"), ApproxDP("0.01", 1e-9)])
def test_a_cap_in_pure_epsilon_refuses_what_implies_none(ledger: Ledger, price: Budget) -> None:
    ledger.cap("nyc", PureDP(100))
    with pytest.raises(CapExceeded, match="implies no finite pure ε: ask for pure ε"):
        ledger.charge("nyc", price, "Gaussian noise", PEOPLE)
    assert ledger.history() == []


def test_under_a_cap_in_rho_a_pure_epsilon_costs_half_its_square(ledger: Ledger) -> None:
    ledger.cap("nyc", ZCDP(1))
    ledger.charge("nyc", PureDP(1), "Laplace noise", PEOPLE)
    ledger.charge("nyc", ZCDP("0.25"), "Gaussian noise", PEOPLE)
    assert spent(ledger) == "ρ = 0.75"
    with pytest.raises(CapExceeded, match=r"asks for ε = 1, which costs ρ = 0\.5: ask for at most ε = 0\.7071"):
        ledger.charge("nyc", PureDP(1), "more", PEOPLE)
    with pytest.raises(CapExceeded, match=r"asks for ρ = 0\.5: ask for at most ρ = 0\.25, or"):
        ledger.charge("nyc", ZCDP("0.5"), "more", PEOPLE)
    ledger.charge("nyc", ZCDP("0.25"), "the rest", PEOPLE)
    assert ledger.datasets()[0].remaining == PrivacyAmount("ρ", Fraction(0))


def test_the_same_epsilon_and_delta_fill_their_own_cap(ledger: Ledger) -> None:
    ledger.cap("nyc", ApproxDP(1, 1e-6))
    ledger.charge("nyc", ApproxDP(1, 1e-6), "everything", PEOPLE)
    with pytest.raises(CapExceeded, match=r"ρ = 0 left of its cap \(ε, δ\) = \(1, 1e-06\)"):
        ledger.charge("nyc", ZCDP("1e-9"), "a hair", PEOPLE)


def test_shares_of_an_epsilon_and_delta_fill_it_exactly(ledger: Ledger) -> None:
    cap = ApproxDP(1, 1e-6)
    ledger.cap("nyc", cap)
    for _ in range(7):
        ledger.charge("nyc", cap.part(Fraction(1, 7)), "a seventh", PEOPLE)
    assert ledger.datasets()[0].remaining == PrivacyAmount("ρ", Fraction(0))


def test_without_a_cap_everything_is_charged_and_pure_epsilons_add(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(3), "first", PEOPLE)
    ledger.charge("nyc", PureDP("0.5"), "second", PEOPLE)
    [status] = ledger.datasets()
    assert (status.cap, status.remaining, status.charges) == (None, None, 2)
    assert status.spent == PrivacyAmount("ε", Fraction(7, 2))


def test_without_a_cap_mixed_charges_add_in_rho(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(2), "pure", PEOPLE)
    ledger.charge("nyc", ZCDP("0.5"), "concentrated", PEOPLE)
    ledger.charge("nyc", ApproxDP(1, 1e-6), "approximate", PEOPLE)
    assert ledger.datasets()[0].spent == PrivacyAmount("ρ", Fraction(5, 2) + ApproxDP(1, 1e-6).rho)


def test_a_data_set_that_has_paid_in_rho_takes_no_cap_in_pure_epsilon(ledger: Ledger) -> None:
    ledger.charge("nyc", ZCDP("0.5"), "Gaussian noise", PEOPLE)
    with pytest.raises(InputError, match="no cap in pure ε can hold"):
        ledger.cap("nyc", PureDP(10))
    assert ledger.datasets()[0].cap is None


def test_pure_charges_can_be_capped_in_rho_and_in_epsilon_again(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "pure", PEOPLE)
    assert ledger.cap("nyc", ZCDP(1)).remaining == PrivacyAmount("ρ", Fraction(1, 2))
    assert ledger.cap("nyc", PureDP(3)).remaining == PrivacyAmount("ε", Fraction(2))


def test_a_cap_below_what_is_spent_leaves_nothing_and_a_higher_one_leaves_the_rest(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(2), "early", PEOPLE)
    assert ledger.cap("nyc", PureDP(1)).remaining == PrivacyAmount("ε", Fraction(0))
    with pytest.raises(CapExceeded, match=r"spent ε = 2"):
        ledger.charge("nyc", PureDP("0.001"), "late", PEOPLE)
    assert ledger.cap("nyc", PureDP(3)).remaining == PrivacyAmount("ε", Fraction(1))


def test_one_data_set_does_not_pay_for_another(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    ledger.cap("oslo", PureDP(1))
    ledger.charge("nyc", PureDP(1), "all of nyc's", PEOPLE)
    ledger.charge("oslo", PureDP(1), "all of oslo's", PEOPLE)
    assert [(status.name, status.charges) for status in ledger.datasets()] == [("nyc", 1), ("oslo", 1)]


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([PureDP, ZCDP]),
    st.fractions(min_value=Fraction(1, 1000), max_value=100, max_denominator=10**9),
    st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=9973),
)
def test_who_asks_for_what_is_shown_to_be_left_is_not_refused(
    kind: type[PureDP] | type[ZCDP], cap: Fraction, share: Fraction
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        ledger.cap("nyc", kind(cap))
        ledger.charge("nyc", PureDP(cap * share if kind is PureDP else min(cap, Fraction(1)) * share), "a part", PEOPLE)
        with pytest.raises(CapExceeded) as refusal:
            ledger.charge("nyc", PureDP(1000), "too much", PEOPLE)
        offered = re.search(r"ask for at most ε = ([^,]+), or", str(refusal.value))
        if offered:
            ledger.charge("nyc", PureDP(offered[1]), "what is left", PEOPLE)
        else:
            assert ledger.datasets()[0].remaining.value == 0


# accounts and releases


def test_an_account_pays_once_and_keeps_its_receipt(ledger: Ledger) -> None:
    account = ledger.account("nyc", "a flat map", PEOPLE)
    assert account.receipt is None
    account.charge(PureDP(1))
    assert [record.charge.id for record in ledger.history()] == [account.receipt]
    with pytest.raises(LedgerError, match="has paid for its run of 'nyc' already"):
        account.charge(PureDP(1))
    assert len(ledger.history()) == 1


def test_an_account_that_is_refused_has_no_receipt_and_may_ask_for_less(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))
    account = ledger.account("nyc", "a flat map", PEOPLE)
    with pytest.raises(CapExceeded):
        account.charge(PureDP(2))
    assert account.receipt is None
    account.charge(PureDP(1))
    assert account.receipt is not None


def test_an_account_cannot_be_turned_to_another_data_set(ledger: Ledger) -> None:
    with pytest.raises(FrozenInstanceError):
        ledger.account("nyc", "a map", PEOPLE).dataset = "oslo"  # type: ignore[misc]


@pytest.mark.parametrize("budget", [PureDP("1/7"), ZCDP("0.01"), ApproxDP(1, "1e-6")])
def test_an_account_pays_in_two_parts_that_make_up_the_whole(ledger: Ledger, budget: Budget) -> None:
    parts = (budget.part(Fraction(1, 10)), budget.part(Fraction(9, 10)))
    account = ledger.account("nyc", "a map", PEOPLE, "run", whole=budget)
    account.charge(parts[0])
    with pytest.raises(LedgerError, match="has paid for its run"):
        account.charge(parts[0])
    with pytest.raises(LedgerError, match="but charge 1 paid"):
        ledger.released(1, statement(budget=budget), None)
    account.charge(parts[1])
    with pytest.raises(LedgerError, match="has paid for its run"):
        account.charge(parts[1])
    again = replace(account, paid=account.charges[0])
    again.charge(parts[0])
    again.charge(parts[1])
    assert (again.receipt, again.later, again.latest.total) == (1, (2,), account.latest.total)
    assert len(ledger.history()) == 2
    with pytest.raises(LedgerError, match="but charge 1 paid"):
        ledger.released(1, statement(budget=parts[1]), None)
    ledger.released(1, statement(budget=budget), "map.parquet", again=account.later)
    assert [(each.released, each.file) for each in ledger.history()] == [(True, "map.parquet")] * 2


@pytest.mark.parametrize("model", ["full", "values-only"])
def test_two_parts_of_a_pure_epsilon_are_booked_with_the_rho_of_the_whole(ledger: Ledger, model: Model) -> None:
    """ρ(ε/10) + ρ(9ε/10) is 0.82 ρ(ε), and a rest may spend all but what the look took: of 1/50, the other 49/50."""
    ledger.cap("nyc", ZCDP("0.5" if model == "full" else 2), model=model)
    account = ledger.account("nyc", "a map", PEOPLE, "run", whole=PureDP(1))
    account.charge(PureDP("0.1"))
    account.charge(PureDP("0.9"))
    page = ledger.status("nyc", model)
    assert page is not None and page.remaining == PrivacyAmount("ρ", Fraction(0))
    with pytest.raises(CapExceeded):
        ledger.charge("nyc", ZCDP("0.001"), "more", PEOPLE)


def test_the_rest_of_a_pure_epsilon_needs_room_for_what_the_look_left(ledger: Ledger) -> None:
    ledger.cap("nyc", ZCDP("0.5"))
    account = ledger.account("nyc", "a map", PEOPLE, "run", whole=PureDP(1))
    account.charge(PureDP("0.1"))
    ledger.charge("nyc", ZCDP("0.05"), "another", PEOPLE)
    with pytest.raises(CapExceeded, match=r"which costs ρ = 0\.495"):
        account.charge(PureDP("0.9"))
    assert spent(ledger) == "ρ = 0.055"


def test_a_year_in_rho_counts_the_whole_of_a_pure_epsilon_in_two_parts(ledger: Ledger) -> None:
    night = Occasion("nightly", "2026-01-01", ZCDP("0.5"))
    account = ledger.account("nyc", "a map", PEOPLE, "run", night, whole=PureDP(1))
    account.charge(PureDP("0.1"))
    account.charge(PureDP("0.9"))
    assert left_in("2026", ledger.periods("nightly"), night.allowance) == PrivacyAmount("ρ", Fraction(0))


def test_a_charge_is_released_with_its_statement_and_file(ledger: Ledger) -> None:
    charge = ledger.charge("nyc", PureDP(1), "a flat map\nover two lines", PEOPLE)
    assert not ledger.history()[0].released
    ledger.released(charge.id, statement(), "nyc.parquet")
    [record] = ledger.history("nyc")
    assert record.charge == charge
    assert record.charge.what == "a flat map over two lines"
    assert (record.released, record.statement, record.file) == (True, statement(), "nyc.parquet")


def test_a_release_may_have_no_file(ledger: Ledger) -> None:
    ledger.released(ledger.charge("nyc", PureDP(1), "in memory", PEOPLE).id, statement(), None)
    assert ledger.history()[0].file is None


def test_a_charge_is_released_once(ledger: Ledger) -> None:
    charge = ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    ledger.released(charge.id, statement(), "a.parquet")
    with pytest.raises(LedgerError, match="released already"):
        ledger.released(charge.id, statement(), "b.parquet")
    assert ledger.history()[0].file == "a.parquet"


def test_what_was_not_charged_cannot_be_released(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="holds no charge 7"):
        ledger.released(7, statement(), "nyc.parquet")


@pytest.mark.parametrize("wrong", [statement(budget=PureDP("0.5")), statement(dataset="oslo")])
def test_a_statement_must_name_the_data_set_and_the_price_that_were_charged(ledger: Ledger, wrong: Statement) -> None:
    charge = ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    with pytest.raises(LedgerError, match=rf"but charge {charge.id} paid ε = 1 of 'nyc'"):
        ledger.released(charge.id, wrong, "nyc.parquet")
    assert not ledger.history()[0].released


def test_history_is_in_order_and_can_be_of_one_data_set(ledger: Ledger) -> None:
    for dataset in ("nyc", "oslo", "nyc"):
        ledger.charge(dataset, PureDP(1), f"of {dataset}", PEOPLE)
    assert [record.charge.id for record in ledger.history()] == [1, 2, 3]
    assert [record.charge.id for record in ledger.history("nyc")] == [1, 3]


def test_the_history_of_an_unknown_data_set_names_the_known_ones(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    with pytest.raises(InputError, match="knows no data set 'nycc'; it knows 'nyc'"):
        ledger.history("nycc")


# names, places


def test_a_name_is_the_same_however_its_letters_are_composed(ledger: Ledger) -> None:
    ledger.cap(unicodedata.normalize("NFD", "Zürich"), PureDP(1))
    ledger.charge(unicodedata.normalize("NFC", " Zürich "), PureDP(1), "a map", PEOPLE)
    assert [status.name for status in ledger.datasets()] == ["Zürich"]
    ledger.released(1, statement(dataset=unicodedata.normalize("NFD", "Zürich")), None)


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "a\udcffb", "x" * 201])
def test_a_name_that_cannot_be_shown_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(InputError, match="--dataset"):
        ledger.charge(name, PureDP(1), "a map", PEOPLE)
    assert not ledger.path.exists()


def test_file_names_that_are_no_text_are_kept_readably(ledger: Ledger) -> None:
    ledger.charge("nyc", PureDP(1), os.fsdecode(b"of caf\xe9.csv"), PEOPLE)
    ledger.released(1, statement(), os.fsdecode(b"caf\xe9.parquet"))
    [record] = ledger.history()
    assert (record.charge.what, record.file) == ("of caf\\udce9.csv", "caf\\udce9.parquet")


def test_the_ledger_lives_where_hazemap_home_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HAZEMAP_HOME", str(tmp_path))
    assert Ledger.default().path == tmp_path / "ledger.sqlite"


def test_the_ledger_lives_by_default_in_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HAZEMAP_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert Ledger.default().path == tmp_path / "hazemap" / "ledger.sqlite"
    assert Ledger.default().path.parts[-2:] == ("hazemap", "ledger.sqlite")


def test_a_ledger_stays_where_it_was_when_the_folder_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(Path("ledger.sqlite"))
    monkeypatch.chdir("/")
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    assert (tmp_path / "ledger.sqlite").exists()


def test_looking_does_not_make_a_ledger(ledger: Ledger) -> None:
    assert ledger.datasets() == []
    assert ledger.history() == []
    assert not ledger.path.parent.exists()


def test_an_odd_path_is_taken_as_it_is(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a ?mode=ro#%41 é" / "ledger.sqlite")
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE)
    assert ledger.path.exists()


def test_a_price_of_absurdly_many_digits_is_refused_before_anything_is_written(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="digits"):
        ledger.charge("nyc", PureDP(Fraction(1, 10**200)), "a map", PEOPLE)
    assert not ledger.path.exists()


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    ledger.cap("nyc", PureDP(1))

    def pay() -> None:
        for _ in range(5):
            ledger.charge("nyc", PureDP(0.05), "a twentieth", PEOPLE)

    threads = [threading.Thread(target=pay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.datasets()[0].remaining == PrivacyAmount("ε", Fraction(0))


def test_a_check_refuses_what_a_charge_would_and_pays_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.account("nyc", "a map", PEOPLE).check(PureDP(5))  # unknown and uncapped: anything goes
    assert not ledger.path.exists()
    ledger.cap("nyc", PureDP(1))
    ledger.account("nyc", "a map", PEOPLE).check(PureDP(1))
    with pytest.raises(CapExceeded, match="nyc"):
        ledger.account("nyc", "a map", PEOPLE).check(PureDP(2))
    assert ledger.history() == []
