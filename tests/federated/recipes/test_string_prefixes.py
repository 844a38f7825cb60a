"""Strings by their beginnings: every string has the bucket that its characters say."""

from itertools import combinations, product
from unicodedata import is_normalized

import pytest
from tests.federated.recipes.asking import recipe

from hazemap.codec import MESSAGE, dumps, loads
from hazemap.errors import InputError
from hazemap.federated.recipes.features import StringPrefixes
from hazemap.federated.recipes.recipe import KNOWN


@pytest.mark.parametrize("step", [1, 2, 3])
def test_every_short_string_has_the_bucket_that_its_characters_say(step):
    rule = StringPrefixes(("ba", "a"), "ab", step)
    labels = rule.labels()
    assert len(labels) == rule.size == len(set(labels))
    for text in ("".join(letters) for many in range(6) for letters in product("abc", repeat=many)):
        label = labels[rule.buckets([[text]])[0]]
        prefix = next((each for each in rule.prefixes if text.startswith(each)), None)
        rest = text.removeprefix(prefix or "")
        if prefix is None:
            assert label == "(other)"
        elif set(rest[:step]) - set("ab"):
            assert label == f"{prefix} (other)"
        elif len(rest) < step:
            assert label == f"{prefix}{rest} (end)"
        else:
            assert label == prefix + rest[:step]


def test_the_string_of_a_bucket_falls_into_it():
    rule = StringPrefixes(("b",), "abc", 3)
    for bucket in range(2, rule.size):
        text, ends = rule.string(bucket)
        assert rule.buckets([[text]])[0] == bucket and ends == (len(text) < 4)
    for bucket in (-1, 0, 1, rule.size):
        with pytest.raises(InputError, match="no string"):
            rule.string(bucket)


def test_strings_over_an_alphabet_that_is_admitted_stay_in_normal_form():
    """Over letters that compose, and marks that are reordered: every triple of an alphabet that is not refused."""
    letters = "ae\u0301\u0323\u1100\u1161\u11a8\uac00\u0345q\u00e9"
    admitted = 0
    for alphabet in ("".join(some) for some in combinations(letters, 3)):
        try:
            StringPrefixes(("",), alphabet, 1)
        except InputError:
            continue
        admitted += 1
        assert all(is_normalized("NFC", "".join(text)) for text in product(alphabet, repeat=3))
    assert admitted > 5


def test_strings_are_compared_in_normal_form_and_other_values_are_others():
    rule = StringPrefixes(("",), "é", 1)
    assert rule.buckets([["e\u0301", 7, None]]).tolist() == [3, 0, 0]


@pytest.mark.parametrize(
    ("prefixes", "alphabet", "step"),
    [
        (("a", "ab"), "ab", 1), (("a", "a"), "ab", 1), ((), "ab", 1), (("a",), "", 1), (("a",), "aa", 1),
        (("a",), "ab", 0), (("a",), "ab", 17), (("a",), "abcdefghij", 6), (("a", "b"), "ab", 19), (("\x00",), "ab", 1),
        (("a",), "e\u0301", 1), (("a",), "\u1100\u1161", 1), (("a",), "".join(map(chr, range(0x4E00, 0x4F01))), 1),
    ],
)  # fmt: skip
def test_prefixes_that_could_not_be_told_apart_or_are_too_many_are_refused(prefixes, alphabet, step):
    with pytest.raises(InputError):
        StringPrefixes(prefixes, alphabet, step)


def test_a_recipe_for_strings_travels():
    asked = recipe(StringPrefixes(("a",), "ab", 2))
    assert loads(dumps(asked), KNOWN, type(asked), MESSAGE) == asked
