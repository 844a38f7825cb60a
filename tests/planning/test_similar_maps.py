"""c₀ of the prefix tree, chosen on similar public maps: by published facts alone, the same every time."""

import json

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap import Ledger
from hazemap.cli.main import main
from hazemap.errors import InputError
from hazemap.planning.similar_maps import TRIED, try_constants
from hazemap.privacy.random_stream import Stream
from hazemap.specs.release_spec import ReleaseSpec

BOX = "13.2,52.4,13.6,52.6"


@pytest.fixture(scope="module")
def like(tmp_path_factory):
    """The release of another city."""
    folder = tmp_path_factory.mktemp("like")
    chance = np.random.default_rng(2)
    lon, lat = chance.normal([[2.35], [48.85]], [[0.05], [0.03]], (2, 4_000))
    table = pa.table({"user": np.arange(4_000), "lon": lon, "lat": lat})
    book = Ledger(folder / "ledger.sqlite")
    asked = {"person": "user", "epsilon": 1, "box": "2.15,48.75,2.55,48.95", "dataset": "paris", "ledger": book}
    hazemap.release(table, output=folder / "paris.parquet", method="auto", **asked)
    hazemap.release(table, output=folder / "test.parquet", stream=Stream.fixed(b"x"), method="flat:3", **asked)
    return folder


def order(**asked):
    return ReleaseSpec.of("t.csv", **{"epsilon": 1, "box": BOX, "method": "prefix:rounds=4"} | asked)


def test_every_constant_is_tried_on_people_of_the_map_the_same_every_time(like):
    tried = try_constants(order(), 3_000, [like / "paris.parquet"])
    assert tuple(each.c0 for each in tried) == TRIED
    assert all(0 < each.l1 < 2.5 and each.band >= 0 and 1 <= each.rounds <= 5 for each in tried)
    assert tried == try_constants(order(), 3_000, [like / "paris.parquet"])
    assert min(each.l1 for each in tried) < max(each.l1 for each in tried)


@pytest.mark.parametrize(
    ("asked", "people", "file", "words"),
    [
        ({"method": "auto"}, 3_000, "paris.parquet", "say --method prefix, without a c0"),
        ({"method": "prefix:c0=1"}, 3_000, "paris.parquet", "without a c0"),
        ({"box": None}, 3_000, "paris.parquet", "declare it, in degrees"),
        ({"box": "13.2,52.4,13.21,52.41"}, 3_000, "paris.parquet", "is not similar: its area"),
        ({}, 2, "paris.parquet", "is not similar"),
        ({}, 10**9, "paris.parquet", "tried with 2 to 200,000 people"),
        ({}, 3_000, "test.parquet", "is a test, or on a plane"),
    ],
)
def test_what_is_not_similar_is_refused_in_words(like, asked, people, file, words):
    with pytest.raises(InputError, match=words):
        try_constants(order(**asked), people, [like / file])


def test_the_command_says_which_to_take(like, capsys):
    ask = ["plan", f"--box={BOX}", "--people", "3000", "-e", "1", "--method", "prefix", "--like"]
    assert main([*ask, str(like / "paris.parquet"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    best = min(found["tried"], key=lambda each: each["l1"])
    assert found["method"] == f"prefix:c0={best['c0']:g}"
