"""Whose privacy a price is about."""

from types import SimpleNamespace

import pytest

from hazemap.errors import CodecError, InputError
from hazemap.privacy.privacy_unit import DEVICE, ROW, VALUES_ONLY, Unit

PEOPLE = Unit.person("user", "text", guessed=True)
UNITS = [PEOPLE, ROW, DEVICE, Unit.person("uid", "whole numbers", model=VALUES_ONLY)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_comes_back_from_its_json(unit):
    assert Unit.from_json(unit.to_json()) == unit


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "family"},
        {"kind": "person"},
        {"kind": "person", "id_column": "", "read_as": "text"},
        {"kind": "person", "id_column": "x" * 301, "read_as": "text"},
        {"kind": "person", "id_column": 7, "read_as": "text"},
        {"kind": "person", "id_column": "user"},
        {"kind": "person", "id_column": "user", "read_as": "text", "guessed": 1},
        {"kind": "person", "id_column": "user", "read_as": "text", "model": "some"},
        {"kind": "row", "id_column": "user"},
        {"kind": "device", "guessed": True},
        {"kind": "row", "model": "values-only"},
    ],
    ids=str,
)
def test_a_unit_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        Unit(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {"kind": "row"},
        ROW.to_json() | {"guessed": False},
        PEOPLE.to_json() | {"more": 1},
        PEOPLE.to_json() | {"guessed": 1},
        PEOPLE.to_json() | {"id_column": None},
        DEVICE.to_json() | {"kind": ["device"]},
    ],
    ids=str,
)
def test_json_that_is_no_unit_is_refused(wrong):
    with pytest.raises(CodecError):
        Unit.from_json(wrong)


def test_a_table_without_ids_has_rows_for_people():
    assert Unit.of(None) == ROW
    ids = SimpleNamespace(name="uid", read_as="text", guessed=True)
    assert Unit.of(ids, VALUES_ONLY) == Unit.person("uid", "text", True, VALUES_ONLY)


def test_a_columns_name_is_one_however_its_letters_are_composed_and_whatever_their_case():
    assert Unit.person("Us\u0065\u0301r", "text").column == Unit.person("us\u00c9R", "text").column
