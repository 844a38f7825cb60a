"""The cap that a data set gets with its first charge."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.errors import CapExceeded, HazemapWarning, InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PrivacyAmount, PureDP
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Unit

PEOPLE = Unit.person("user", "text")
VALUES = replace(PEOPLE, model=VALUES_ONLY)


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def cap_of(ledger: Ledger, model=FULL):
    status = ledger.status("nyc", model)
    return status and status.cap


def test_the_first_charge_sets_the_usual_cap_and_later_ones_do_not_change_it(ledger, usual_cap):
    first = FirstCap.usual(PureDP(1))
    ledger.check("nyc", PureDP(1), PEOPLE, cap=first)
    assert ledger.datasets() == []
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE, cap=first)
    assert cap_of(ledger) == PureDP(3)
    [change] = ledger.changes("nyc")
    assert (change.old, change.new, change.why) == (None, PureDP(3), "with the first charge")
    ledger.charge("nyc", PureDP(2), "a map", PEOPLE, cap=FirstCap.usual(PureDP(9)))
    for refused in (ledger.charge, lambda *asked, cap: ledger.check(asked[0], asked[1], asked[3], cap=cap)):
        with pytest.raises(CapExceeded, match="has ε = 0 left of its cap ε = 3"):
            refused("nyc", PureDP("0.1"), "a map", PEOPLE, cap=first)
    assert cap_of(ledger) == PureDP(3) and len(ledger.changes()) == 1


def test_a_data_set_that_has_paid_without_a_cap_gets_one_only_if_it_is_said(ledger, usual_cap):
    ledger.charge("nyc", PureDP(5), "a map", PEOPLE)
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE, cap=FirstCap.usual(PureDP(1)))
    assert cap_of(ledger) is None
    ledger.charge("nyc", PureDP(1), "a map", PEOPLE, cap=FirstCap.of(PureDP(1), "7", no_cap=False))
    assert cap_of(ledger) == PureDP(7)
    with pytest.raises(InputError, match="has a cap already, ε = 7, and not ε = 9"):
        ledger.charge("nyc", PureDP(1), "a map", PEOPLE, cap=FirstCap.of(PureDP(1), 9, no_cap=False))


def test_a_charge_that_is_refused_leaves_no_cap_behind(ledger):
    with pytest.raises(CapExceeded):
        ledger.charge("nyc", PureDP(2), "a map", PEOPLE, cap=FirstCap(PureDP(1), said=True))
    assert ledger.datasets() == [] and ledger.changes() == []


def test_no_usual_cap_covers_the_values_of_people_whose_whereabouts_have_a_cap(ledger, usual_cap):
    ledger.cap("nyc", PureDP(1))
    with pytest.raises(CapExceeded, match="no cap of that kind covers it"):
        ledger.charge("nyc", PureDP(1), "speeds", VALUES, cap=FirstCap.usual(PureDP(1)))
    ledger.charge("nyc", PureDP(1), "speeds", VALUES, cap=FirstCap(PureDP(1), said=True))
    assert cap_of(ledger, VALUES_ONLY) == PureDP(1)


@pytest.mark.parametrize(
    ("price", "cap", "expected"),
    [
        (PureDP(1), None, PureDP(3)),
        (PureDP(5), None, PureDP(5)),
        (ApproxDP(1, "1e-9"), None, ApproxDP(3, "1e-9")),
        (ZCDP("0.1"), None, ApproxDP(3, "1e-6")),
        (ZCDP(2), None, ZCDP(2)),
        (PureDP(1), "0.5", PureDP("0.5")),
        (ZCDP(1), 4, ZCDP(4)),
        (ApproxDP(1, "1e-9"), 2, ApproxDP(2, "1e-9")),
        (ZCDP(1), PureDP(4), PureDP(4)),
    ],
)
def test_a_cap_is_in_the_terms_of_the_first_price_and_never_below_it(price, cap, expected, usual_cap):
    found = FirstCap.of(price, cap, no_cap=False)
    assert found.budget == expected and found.said == (cap is not None)
    assert FirstCap.of(price, None, no_cap=True) is None
    with pytest.raises(InputError, match="one of cap and no_cap"):
        FirstCap.of(price, 1, no_cap=True)


def test_what_was_paid_in_all_is_exact_and_stays_what_it_was(ledger):
    charges = [ledger.charge("nyc", PureDP(Fraction(1, each)), "a map", PEOPLE) for each in (3, 7)]
    charges.append(ledger.charge("nyc", PureDP("0.5"), "speeds", VALUES))
    totals = [
        PrivacyAmount("ε", each) for each in (Fraction(1, 3), Fraction(10, 21), 2 * Fraction(10, 21) + Fraction(1, 2))
    ]
    assert [charge.total for charge in charges] == totals
    ledger.charge("nyc", ZCDP("0.1"), "a map", PEOPLE)
    ledger.charge("oslo", PureDP(9), "a map", PEOPLE)
    assert [ledger.paid_by(charge) for charge in charges] == totals
    many = ledger.charge("rome", PureDP(Fraction(10**50, 3**120)), "a map", PEOPLE).total
    assert many.value >= Fraction(10**50, 3**120) and many.value.denominator <= 10**40


def table() -> pa.Table:
    return pa.table({"user": np.arange(300), "lon": np.full(300, 2.35), "lat": np.full(300, 48.85)})


def publish(ledger: Ledger, **more):
    asked = {"person": "user", "method": "flat:3", "box": "2.2,48.8,2.5,48.9", "dataset": "nyc", "ledger": ledger}
    return hazemap.release(table(), **asked, **{"epsilon": 1, **more})


def test_a_first_release_says_its_cap_and_every_statement_what_was_paid_in_all(ledger, tmp_path, usual_cap):
    with pytest.warns(HazemapWarning, match=r"for the first time, so it gets a cap: .* may cost ε = 3, ever"):
        first = publish(ledger, output=str(tmp_path / "map.parquet"))
    second = publish(ledger, epsilon="0.5")
    assert [each.statement.paid.value for each in (first, second)] == [1, Fraction(3, 2)]
    assert "ε = 0.5 (pure) of ε = 1.5 paid in all" in second.statement.line()
    assert hazemap.open(tmp_path / "map.parquet").statement == first.statement
    with pytest.raises(CapExceeded):
        publish(ledger, epsilon=2)
    with pytest.raises(InputError, match="has a cap already"):
        publish(ledger, cap=5)


def test_nothing_is_paid_where_the_warning_about_much_is_an_error(ledger, recwarn):
    publish(ledger, epsilon=3, no_cap=True)
    assert not [each for each in recwarn if "in all is much" in str(each.message)] and cap_of(ledger) is None
    with pytest.warns(HazemapWarning, match=r"ε = 3.5 in all is much: .* up to 33 times as sure"):
        publish(ledger, epsilon="0.5", no_cap=True)
    assert len(ledger.history()) == 2
