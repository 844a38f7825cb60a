"""A recipe: its bins are the product of its features, its texts come back as they were, and nothing absurd is one."""

import json
import random
import tomllib
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.cpu_time import within

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.codec import MESSAGE
from hazemap.errors import CodecError, FileError, InputError
from hazemap.federated.recipes.features import Categories, Feature, MapCells, NumericEdges, PrefixTree
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import KNOWN, CohortField, NoMatch, Recipe
from hazemap.federated.recipes.recipe_file import (
    EXAMPLE,
    SCHEMA,
    read_recipe,
    recipe_from_json,
    recipe_from_toml,
    recipe_to_json,
    recipe_to_toml,
)
from hazemap.federated.recipes.sql_query import Parameter, SqlQuery
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding
from hazemap.spatial.quadtree import Quadtree

DOCUMENT = tomllib.loads(EXAMPLE)
APPENDIX_B = recipe_from_toml(EXAMPLE)
TREE = Quadtree.world(depth=2)
PLACES = replace(
    APPENDIX_B,
    query=SqlQuery(
        "SELECT lon, lat, word\nFROM s\nWHERE x = :a AND y = '\\n\"' AND z < :b",
        (Parameter("a", 1), Parameter("b", 0.5)),
    ),
    features=(Feature("place", MapCells(Leaves.at_level(TREE, 1))), Feature("word", Categories(("a", "b", '"\\')))),
    cohort=(),
    delta=Fraction(1, 3_000_000),
    carrier=Carrier.TWO_SERVERS,
    no_match=NoMatch.RANDOM,
)  # fmt: skip


def test_the_recipe_of_appendix_b_has_as_many_bins_as_the_paper_says():
    assert APPENDIX_B.bins == (1 + 7) * (1 + 3 * (1 + 1 + 9))
    assert APPENDIX_B.size == APPENDIX_B.bins + 1
    assert APPENDIX_B.label(APPENDIX_B.bin_of((25, "hello world world"))) == ("[20, 30)", "hello world world")
    assert APPENDIX_B.label(APPENDIX_B.bin_of((25, "i got"))) == ("[20, 30)", "i got (end)")
    assert APPENDIX_B.label(APPENDIX_B.bin_of((5, "how are zebras"))) == ("(other)", "how are (other)")
    assert APPENDIX_B.label(APPENDIX_B.bin_of((None, None))) == ("(other)", "(other)")
    assert APPENDIX_B.label(APPENDIX_B.bins) == ("(none)", "(none)")


def test_every_bin_has_a_label_of_its_own_and_decoding_puts_each_number_beside_it():
    numbers = np.arange(APPENDIX_B.size, dtype=np.float64)
    found = APPENDIX_B.decoded(numbers)
    rows = list(zip(*found.labels.values(), found.people, strict=True))
    assert rows == [(*APPENDIX_B.label(place), place) for place in range(APPENDIX_B.bins)]
    assert len(set(rows)) == APPENDIX_B.bins
    assert found.none == APPENDIX_B.bins
    assert PLACES.decoded(numbers[: PLACES.size]).none is None


def test_a_recipe_without_a_bin_for_none_reports_a_random_one():
    assert PLACES.size == PLACES.bins == 5 * 4
    assert PLACES.none_bin is None
    assert PLACES.bin_of((2.35, 48.85, "b")) == 2 * 4 + 2


TWO_CHANCES = replace(APPENDIX_B, randomiser=UnaryEncoding(Fraction(7, 10), Fraction(1, 3)))


def test_a_recipe_may_name_the_two_chances_of_its_reports_within_its_local_epsilon():
    assert TWO_CHANCES.law.chances == (0.7, pytest.approx(1 / 3)) and APPENDIX_B.law == Asymmetric(Fraction(2))
    assert TWO_CHANCES.digest != APPENDIX_B.digest and "randomiser" not in codec.dumps(APPENDIX_B)
    wanted = 10_000 * (2 / 9 + 0.1 * (0.21 - 2 / 9)) / (0.7 - 1 / 3) ** 2
    assert TWO_CHANCES.standard_deviation(10_000, 0.1) ** 2 == pytest.approx(wanted)
    with pytest.raises(InputError, match=r"keep = 9/10 and turn_on = 1/10 tell ε = 4.39.*local ε of 2 at most"):
        replace(APPENDIX_B, randomiser=UnaryEncoding(Fraction(9, 10), Fraction(1, 10)))
    with pytest.raises(InputError, match="both keep and turn_on, or neither"):
        recipe_from_toml(EXAMPLE.replace('epsilon = "0.3"', 'epsilon = "0.3"\nkeep = "0.7"'))
    damaged = codec.dumps(TWO_CHANCES).replace("UnaryEncoding", "Asymmetric")
    with pytest.raises(CodecError):
        codec.loads(damaged, KNOWN, Recipe, MESSAGE)


@pytest.mark.parametrize("recipe", [APPENDIX_B, PLACES, TWO_CHANCES])
def test_texts_give_the_same_recipe_again(recipe):
    for again in (
        recipe_from_toml(recipe_to_toml(recipe)),
        recipe_from_json(recipe_to_json(recipe)),
        codec.loads(codec.dumps(recipe), KNOWN, Recipe, MESSAGE),
    ):
        assert again == recipe
        assert again.digest == recipe.digest


def test_the_digest_of_the_example_stays_what_it_is():
    """A recipe that devices hold must be the same to the next version of hazemap."""
    assert APPENDIX_B.digest == "a6aa1690dd0bca05c14bd7a8ce04fc6e353d45e12c2a133cc19ba8469cf5a752"


def test_the_standard_deviation_is_that_of_the_paper():
    from math import exp, sqrt

    wanted = sqrt(10_000 * 4 * exp(2)) / (exp(2) - 1)
    assert APPENDIX_B.standard_deviation(10_000) == pytest.approx(wanted, rel=1e-12)


def test_the_published_schema_is_the_one_in_the_code_and_admits_the_example():
    path = Path(__file__).parents[3] / "docs" / "reference" / "recipe.schema.json"
    assert json.loads(path.read_text()) == SCHEMA
    jsonschema = pytest.importorskip("jsonschema")
    for recipe in (APPENDIX_B, PLACES, TWO_CHANCES):
        jsonschema.validate(json.loads(recipe_to_json(recipe)), SCHEMA)
    jsonschema.validate(DOCUMENT, SCHEMA)


def test_cells_of_a_map_are_written_in_words():
    written = DOCUMENT | {
        "features": [
            {"name": "place", "cells": {"quadtree": {"box": [2.2, 48.8, 2.5, 48.9], "level": 3}}},
            {"name": "hexagon", "cells": {"h3": {"box": [2.2, 48.8, 2.5, 48.9], "resolution": 5}}},
        ]
    }
    recipe = recipe_from_json(json.dumps(written))
    assert recipe.columns == 4
    assert recipe.features[0].rule.size == 1 + 64
    assert recipe_from_toml(recipe_to_toml(recipe)) == recipe


def changed(**changes):
    return DOCUMENT | changes


CELLS = {"quadtree": {"box": [2.2, 48.8, 2.5, 48.9], "level": 3}}


@pytest.mark.parametrize(
    "document",
    [
        *([], "x", 1, {}, changed(id="A b"), changed(id="a" * 101), changed(version=0), changed(version=True)),
        *(changed(version=1 << 40), changed(purpose=" "), changed(purpose="e\u0301"), changed(purpose="x" * 3_000)),
        *(changed(purpose="a\u202eb"), changed(local_epsilon="0"), changed(local_epsilon="21"), changed(epsilon="3")),
        *(changed(epsilon="-1"), changed(epsilon="nan"), changed(epsilon="1e999999"), changed(epsilon=[1])),
        *(changed(epsilon="1/" + "3" * 40), changed(delta="0.5"), changed(delta="-1"), changed(minimum_cohort=0)),
        *(changed(minimum_cohort="9"), changed(carrier="curator"), changed(no_match="silence"), changed(more=1)),
        *(changed(query="SELECT 1"), changed(query={"sql": "DELETE FROM s"}), changed(query={"sql": 7})),
        *(changed(query={"sql": "SELECT :a", "parameters": {}}), changed(query={"sql": "SELECT 1 FROM s;"})),
        *(changed(query={"sql": "SELECT :a", "parameters": {"a": True}}), changed(cohort={"Locale": ["en"]})),
        *(changed(query={"sql": "SELECT :a", "parameters": {"a": [1]}}), changed(cohort={"locale": []})),
        *(changed(cohort={"locale": ["a", "a"]}), changed(cohort={"locale": "en"}), changed(cohort=["locale"])),
        *(changed(features=[]), changed(features={}), changed(features=DOCUMENT["features"] * 9)),
        *(changed(features=[DOCUMENT["features"][0]] * 2), changed(features=[{"name": "a"}])),
        changed(features=[{"name": "a", "edges": [1, 2], "categories": ["a"]}]),
        changed(features=[{"name": "a", "edges": [1, 2], "tokens": ["a"]}]),
        changed(features=[{"name": "a", "edges": ["1", "2"]}]),
        changed(features=[{"name": "a", "prefixes": ["a"]}]),
        changed(features=[{"name": "a", "cells": "quadtree:3"}]),
        changed(features=[{"name": "a", "cells": CELLS | {"json": ""}}]),
        changed(features=[{"name": "a", "cells": {"json": "{}"}}]),
        changed(features=[{"name": "a", "cells": {"json": '{"Leaves": {}}'}}]),
        changed(features=[{"name": "a", "cells": {"json": '{"Box": {"west": 0, "south": 0, "east": 1, "north": 1}}'}}]),
        changed(features=[{"name": "a", "cells": {"quadtree": CELLS["quadtree"] | {"level": 10}}}]),
        changed(features=[{"name": "a", "cells": {"quadtree": CELLS["quadtree"] | {"level": -1}}}]),
        changed(features=[{"name": "a", "cells": {"quadtree": {"box": [1, 2], "level": 3}}}]),
        changed(features=[{"name": "a", "cells": {"h3": {"box": [-180, -90, 180, 90], "resolution": 15}}}]),
        changed(features=[{"name": f"f{i}", "edges": list(range(1 << 11))} for i in range(3)]),
    ],
)
def test_what_is_no_recipe_is_refused_in_words(document):
    with pytest.raises(InputError, match=r"\w+ \w+ \w+"):
        recipe_from_json(json.dumps(document))


@pytest.mark.parametrize(
    "text",
    [
        *("", "id = ", "a = {" * 5_000, "a = " + "[" * 5_000, "[" + ".".join("a" * 9_000) + "]", "x = nan", "a\0b"),
        *(".".join("a" * 500_000) + " = 1", ". ".join(['"a"'] * 100_000) + " = 1", "a" * 900_000, '"' * 900_001),
        *(EXAMPLE + 'id = "x"', EXAMPLE.replace("10000", "1" * 5_000), EXAMPLE.replace("10, 20", "nan, 20")),
        *(EXAMPLE.replace("10, 20", "-inf, 20"), EXAMPLE.replace("10, 20", "1e999, 20"), "#" * (1 << 21)),
        EXAMPLE.replace('"2"', "nan"),
    ],
)
def test_texts_that_are_deep_long_or_damaged_are_refused_soon(text):
    for read in (recipe_from_toml, recipe_from_json):
        with within(1), pytest.raises(InputError):
            read(text)


def test_a_product_beyond_every_number_of_bits_is_refused():
    edges = NumericEdges(tuple(range(1 << 16)))
    with pytest.raises(InputError, match="at most 1,048,576 bins"):
        replace(APPENDIX_B, features=tuple(Feature(f"f{place}", edges) for place in range(16)))


def test_damaged_recipes_are_read_as_recipes_or_refused_and_nothing_else():
    chance = random.Random(4)
    texts = [EXAMPLE, recipe_to_json(PLACES), codec.dumps(APPENDIX_B)]
    signs = [*'"[]{}=.,\n#', "nan", "1e999", "\0", "\u202e", "e\u0301", "9" * 30, "-1", "true", "[[features]]\n"]
    for _ in range(600):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(signs) + text[at + chance.randint(0, 12) :]
        with suppress(InputError):
            recipe_from_toml(text)
        with suppress(InputError):
            recipe_from_json(text)
        with suppress(CodecError):
            assert type(codec.loads(text, KNOWN, Recipe, MESSAGE)) is Recipe


def test_a_recipe_that_travels_has_exact_types():
    data = codec.to_json(APPENDIX_B)["Recipe"]
    for name, wrong in (("version", 1.0), ("version", True), ("local_epsilon", 2), ("id", 1), ("cohort", None)):
        with pytest.raises(CodecError):
            codec.from_json({"Recipe": data | {name: wrong}}, KNOWN, Recipe, MESSAGE)
    with pytest.raises(InputError):
        replace(APPENDIX_B, cohort=(CohortField("locale", ("en",)),) * 2)
    with pytest.raises(InputError):
        replace(APPENDIX_B, features=(Feature("a", PrefixTree(("a",), ("b",))), "b"))


def test_a_file_is_read_by_its_first_sign(tmp_path):
    path = tmp_path / "recipe"
    for text in (EXAMPLE, recipe_to_json(APPENDIX_B)):
        path.write_text(text)
        assert read_recipe(path) == APPENDIX_B
    path.write_bytes(b"\xff\xfe")
    for wrong in (path, tmp_path / "none", tmp_path):
        with pytest.raises(FileError, match="hazemap recipe example"):
            read_recipe(wrong)
