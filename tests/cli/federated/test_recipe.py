"""A recipe is looked at before anybody is asked: what it asks and costs, and whether devices would answer."""

import json
import re

import pytest

from hazemap.federated.recipes import policy_document
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_json, recipe_from_toml


@pytest.fixture
def recipe(hazemap, tmp_path):
    """The example in a file, and the policy that fits it."""
    (tmp_path / "words.toml").write_text(hazemap("recipe", "example").out)
    (tmp_path / "keyboard.toml").write_text(policy_document.EXAMPLE)
    return tmp_path / "words.toml"


def test_the_example_is_answered_under_the_example_of_a_policy(hazemap, recipe):
    found = hazemap("recipe", "check", "words.toml", "--policy", "keyboard.toml", "--people", "100000", "--json")
    assert found.code == 0
    facts = found.json
    assert facts["bins"] == (1 + 7) * (1 + 3 * (1 + 1 + 9))
    assert facts["fields"] == ["keyboard.ngram", "profile.age"]
    assert facts["stddev"] == pytest.approx(269.1, abs=0.1)
    assert facts["least_cohort"] == 466
    assert facts["epsilon_achieved"] < 0.06
    assert facts["answered"]
    shown = hazemap("recipe", "check", "words.toml", "--policy", "keyboard.toml")
    assert shown.code == 0
    assert "answered by every device that has told nothing yet" in shown.out
    alone = hazemap("recipe", "check", "words.toml")
    assert alone.code == 0
    assert "--policy says which fields are read" in alone.out


@pytest.mark.slow
def test_the_best_chances_are_written_and_cost_no_more(hazemap, recipe):
    """A tenth of 10,000 people have a standard error of 21 instead of 36, at the same price; devices check it again."""
    text = recipe.read_text().replace('local_epsilon = "2"', 'local_epsilon = "8"')
    recipe.write_text(text)
    assert hazemap("recipe", "write", "words.toml", "--best", "0.1", "-o", "best.toml").code == 0
    found = hazemap("recipe", "check", "best.toml", "--json").json
    assert found["price_kept"] and found["keep"] > 0.9 and found["turn_on"] < 0.1
    assert found["stddev_of_a_tenth"] < 21
    explained = hazemap("device", "explain", "best.toml", "--policy", "keyboard.toml").out
    assert re.search(r"stays\s+with\s+a\s+chance\s+of\s+9\d", explained)
    (recipe.parent / "loud.toml").write_text((recipe.parent / "best.toml").read_text().replace('"8"', '"5"'))
    assert "choose a larger turn_on" in hazemap("recipe", "check", "loud.toml").err


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"next_word"', '"adverts"', "knows no analysis adverts"),
        ("better suggestions", "better adverts", "approved for another purpose"),
        ("profile.age, keyboard.ngram\n", "profile.locale, keyboard.ngram\n", "read profile.locale"),
        ("profile.age, keyboard.ngram\n", "profile.age\n", "rows of 1 columns"),
        ('local_epsilon = "2"', 'local_epsilon = "3"', "may have ε₀ = 2 at most"),
        ('epsilon = "0.3"', 'epsilon = "0.4"', "the field profile.age may cost ε = 0.3"),
        ('epsilon = "0.3"', 'epsilon = "0.01"', "amount to"),
        ("minimum_cohort = 10000", "minimum_cohort = 900", "at least 1,000 people"),
        ('locale = ["en_GB", "en_US"]', 'town = ["Rome"]', "town is no approved cohort field"),
        ('"en_GB", "en_US"', '"en_GB", "xx"', "locale xx, which this policy does not know"),
    ],
)
def test_what_no_device_answers_is_said_with_its_reason(hazemap, recipe, old, new, reason):
    text = recipe.read_text()
    assert old in text
    recipe.write_text(text.replace(old, new))
    found = hazemap("recipe", "check", "words.toml", "--policy", "keyboard.toml")
    assert found.code == 4
    assert reason in re.sub(r"\s+", " ", found.out)
    assert hazemap("recipe", "check", "words.toml", "--policy", "keyboard.toml", "--json").json["reasons"]


def test_a_recipe_is_written_whole_and_stays_the_same(hazemap, recipe, tmp_path):
    whole = recipe_from_toml(EXAMPLE)
    written = hazemap("recipe", "write", "words.toml", "-o", "words.json", "--json").json
    assert written["digest"] == whole.digest
    assert recipe_from_json((tmp_path / "words.json").read_text()) == whole
    assert hazemap("recipe", "write", "words.json", "-o", "again.toml").out.strip() == whole.digest
    assert recipe_from_toml((tmp_path / "again.toml").read_text()) == whole
    assert hazemap("recipe", "write", "words.json", "-o", "again.toml").code == 2
    assert hazemap("recipe", "write", "words.json", "-o", "again.yaml").code == 2


def test_a_person_is_told_in_plain_words_what_would_be_sent(hazemap, recipe):
    found = hazemap("device", "explain", "words.toml", "--policy", "keyboard.toml")
    assert found.code == 0
    said = re.sub(r"\s+", " ", found.out)
    for words in (
        "better suggestions for the next word",
        "whose locale is en_GB or en_US",
        "ngram (of your keyboard events), age (of your profile events)",
        "10 to below 20",
        'begins with "hello world", "how are", "i got"',
        "one of 273 boxes",
        "a chance of 11.9 %",
        "10,000 people or more",
        "by a factor of 7.39 at most",
        "one in 1,000,000",
    ):
        assert words in said
    jargon = r"ε|δ|epsilon|\bbins?\b|cohort|one-hot|random|query|SQL|differential|OOV|\[10"
    assert not re.search(jargon, said, re.IGNORECASE)
    refused = recipe.read_text().replace("profile.age, keyboard.ngram\n", "profile.locale, keyboard.ngram\n")
    recipe.write_text(refused)
    assert hazemap("device", "explain", "words.toml", "--policy", "keyboard.toml").code == 4


def test_every_rule_and_carrier_has_words(hazemap, recipe):
    text = recipe.read_text().replace('"secure sums"', '"two servers"').replace('"none"', '"random"')
    text = text[: text.index("[[features]]")] + (
        '[[features]]\nname = "kind"\ncategories = ["home", "work"]\n'
        '[[features]]\nname = "first"\nprefixes = [""]\ntokens = ["hello"]\n'
        '[[features]]\nname = "mark"\nbeginnings = ["ab"]\nalphabet = "xyz"\nstep = 1\n'
        '[[features]]\nname = "place"\ncells = { quadtree = { box = [2.2, 48.8, 2.5, 48.9], level = 3 } }\n'
    )
    recipe.write_text(text.replace('delta = "1e-6"', "delta = 0"))
    said = re.sub(r"\s+", " ", hazemap("device", "explain", "words.toml").out)
    for words in (
        "home, work",
        "its first word",
        'begins with "ab", and the next 1 of the characters x, y, z',
        "which of 64 areas",
        "two servers",
        "a box taken by chance",
    ):
        assert words in said
    assert "but for a chance" not in said


@pytest.mark.parametrize("text", ["", "{", "id = 1", "\0", EXAMPLE.replace("SELECT", "DELETE")])
def test_a_file_that_is_no_recipe_is_refused_in_words(hazemap, tmp_path, text):
    (tmp_path / "wrong.toml").write_text(text)
    found = hazemap("recipe", "check", "wrong.toml", "--json")
    assert found.code == 2
    assert json.loads(found.out)["error"]["type"] == "InputError"
    assert hazemap("recipe", "check", "none.toml").code == 2
