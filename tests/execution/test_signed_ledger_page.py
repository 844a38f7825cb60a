"""Signed pages of a ledger: what is on them, what is not, and what is noticed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hazemap.errors import InputError, Refused
from hazemap.execution.signed_ledger_page import SignedLedgerPage
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import Occasion
from hazemap.privacy.privacy_unit import Unit
from hazemap.privacy.signing_identities import Identity
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.contribution_bounding import AtMostRows

PEOPLE = Unit.person("user", "text")
VALUES = Unit.person("user", "text", model="values-only")
KEY = Identity.from_bytes(bytes(range(32)))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "ledger.sqlite")
    book.cap("nyc", ApproxDP(3, 1e-6), why="the board")
    book.cap("nyc", ZCDP(5), model="values-only")
    book.charge("nyc", PureDP("1/7"), "a map", PEOPLE, "0123456789abcdef", Occasion("n", "2026-01-01", PureDP(1)))
    book.charge("nyc", ApproxDP("0.1", 1e-6), "another", PEOPLE)
    book.charge("nyc", ZCDP("0.01"), "values", VALUES)
    book.charge("oslo", PureDP(1), "of others", PEOPLE)
    told = Statement(
        dataset="nyc",
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=PureDP("1/7"),
        bounding=AtMostRows(1),
        trust="curator",
        assumptions=(),
        noise="Laplace",
        public=(),
        charged=(),
        method="flat grid",
        created="2026-01-02",
        version="0.1.0",
    )
    book.released(1, told, "/home/ann/secret folder/map.parquet")
    book.store.write(lambda db: db.remember("nyc", b"fingerprint-of-nyc", 8))
    return book


def made(ledger: Ledger) -> SignedLedgerPage:
    return SignedLedgerPage.from_json(SignedLedgerPage.of(ledger, "nyc", KEY).to_json())


def test_a_page_holds_charges_and_changes_and_no_fingerprint_and_no_folder(ledger) -> None:
    page = made(ledger).verify(KEY.public)
    assert [charge["price"]["kind"] for charge in page["charges"]] == ["PureDP", "ApproxDP", "ZCDP"]
    assert page["charges"][0]["file"] == "map.parquet"
    assert page["charges"][0]["statement"]["budget"] == {"kind": "PureDP", "epsilon": "1/7"}
    assert [change["why"] for change in page["changes"]] == ["the board", None]
    assert [each["model"] for each in page["pages"]] == ["full", "values-only"]
    text = made(ledger).to_json()
    fingerprint = b"fingerprint-of-nyc"
    for secret in ("finger", fingerprint.hex(), "secret folder", "0123456789abcdef", "oslo"):
        assert secret not in text


def signed(page: dict) -> SignedLedgerPage:
    """As if whoever has the key signed it."""
    from hazemap.execution.signed_ledger_page import _message

    return SignedLedgerPage(page, KEY.public, KEY.sign(_message(page)))


def test_whatever_is_changed_is_noticed(ledger) -> None:
    whole = made(ledger)
    other = Identity.from_bytes(bytes(32))
    with pytest.raises(Refused, match="signed by the key"):
        whole.verify(other.public)
    for name in whole.page:
        with pytest.raises(Refused, match="does not fit"):
            replace(whole, page={**whole.page, name: "other"}).verify(KEY.public)
    with pytest.raises(Refused, match="does not fit"):
        replace(whole, signature=other.sign(b"")).verify(KEY.public)
    # a signature of the same key, of another kind
    with pytest.raises(Refused, match="does not fit"):
        replace(whole, signature=KEY.sign(b"hazemap policy 1" + bytes(32))).verify(KEY.public)


def test_a_page_whose_sums_are_wrong_is_refused_although_it_is_signed(ledger) -> None:
    page = json.loads(made(ledger).to_json())["page"]
    for change, words in (
        (lambda charges: charges.pop(), "charges, not 0"),
        (lambda charges: charges.append(charges[-1]), "numbers that grow"),
        (lambda charges: charges[0].update(rho="1/98000"), "add up"),
        (lambda charges: charges[0].update(rho="-1"), "did not write"),
        (lambda charges: charges[0].pop("model"), "KeyError"),
        (lambda charges: charges[0].update(price={"kind": "Free"}), "cannot be true"),
    ):
        wrong = json.loads(json.dumps(page))
        change(wrong["charges"])
        with pytest.raises(Refused, match=words):
            signed(wrong).verify(KEY.public)


def test_a_later_page_holds_all_that_an_older_one_does(ledger) -> None:
    older = made(ledger)
    ledger.charge("nyc", ZCDP("0.1"), "one more", VALUES)
    ledger.cap("nyc", ZCDP(6), model="values-only")
    later = made(ledger)
    assert len(later.verify(KEY.public, older)["charges"]) == 4
    assert later.verify(KEY.public, later)
    page = json.loads(older.to_json())["page"]
    renamed = [{**page["charges"][0], "what": "another map"}, *page["charges"][1:]]
    for lost, words in (
        ({**page, "charges": page["charges"][:2], "pages": page["pages"][:1]}, "charge 3 was on"),
        ({**page, "charges": renamed}, "charge 1 is another one"),
        ({**page, "changes": page["changes"][1:]}, "changes that were"),
        ({**page, "dataset": "oslo"}, "another data set"),
    ):
        with pytest.raises(Refused, match=words):
            signed(lost).verify(KEY.public, older)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"key": 1, "page": {}, "signature": "00"}', '{"key": "00", "page": [], "signature": ""}']
)
def test_other_files_are_refused(text) -> None:
    with pytest.raises(InputError):
        SignedLedgerPage.from_json(text)


def test_a_data_set_that_nobody_knows_has_no_page(ledger) -> None:
    with pytest.raises(InputError, match="no page of a data set 'paris'"):
        SignedLedgerPage.of(ledger, "paris", KEY)
