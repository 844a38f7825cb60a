"""Cells to begin with: taken from a release or a public list, tiling, refused in words, said in the statement."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hazemap
from hazemap import Box, Leaves, Ledger, PureDP, Quadtree
from hazemap.algorithms import METHODS, Adaptive, AdaptiveHierarchicalHistogram
from hazemap.codec import dumps, loads
from hazemap.errors import FileError, InputError
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.privacy_statement import statement
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.method_from_name import among_devices
from hazemap.specs.prior_cells import PriorCells, prior_cells, tiled
from hazemap.specs.release_spec import ReleaseSpec

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 8)


def town(seed=1, people=3_000):
    chance = np.random.default_rng(seed)
    lon, lat = chance.normal([[13.4], [52.5]], [[0.05], [0.03]], (2, people))
    return pa.table({"user": np.arange(people), "lon": lon, "lat": lat})


def made(tmp_path, name="last.parquet", **asked):
    asked = {"person": "user", "epsilon": 1, "box": BOX, "cells": "quadtree:8", "dataset": "town"} | asked
    return hazemap.release(town(), ledger=Ledger(tmp_path / "ledger.sqlite"), output=tmp_path / name, **asked)


@st.composite
def partitions(draw):
    """Cells of a quadtree that tile it."""
    cells = TREE.root
    for _ in range(draw(st.integers(0, 5))):
        some = np.array(draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))), dtype=bool)
        some &= TREE.level(cells) < TREE.depth
        cells = np.concatenate([cells[~some], TREE.children(cells[some])])
    return np.sort(cells)


def middles(tree, cells):
    west, south, east, north = tree.bounds(cells)
    return PriorCells((west + east) / 2, (south + north) / 2, tree.area(cells))


@settings(max_examples=40, deadline=None)
@given(partitions(), st.data())
def test_cells_of_the_same_tree_come_out_as_they_are_and_others_tile_it(cells, data):
    assert np.array_equal(tiled(TREE, middles(TREE, cells)).cells, cells)
    some = data.draw(st.lists(st.sampled_from(cells.tolist()), min_size=1, unique=True))
    found = tiled(TREE, middles(TREE, np.array(some, dtype=np.uint64)))
    assert not found.nested
    assert 4**TREE.depth == sum(4 ** (TREE.depth - int(level)) for level in found.levels)
    shifted = Quadtree.around(Box(13.3, 52.45, 13.5, 52.55), 8)
    centre = TREE.cell_at({"lon": np.array([13.4]), "lat": np.array([52.5])}, 8)
    other = tiled(shifted, middles(TREE, np.union1d(cells, centre)))
    assert sum(4 ** (8 - int(level)) for level in other.levels) == 4**8


def test_a_prior_of_squares_begins_a_map_of_hexagons():
    hexagons = Hexagons(BOX, 5, 8)
    found = tiled(hexagons, middles(TREE, Leaves.at_level(TREE, 4).cells))
    assert not found.nested and set(np.unique(found.levels)) <= {0, 1, 2, 3}
    everything = hexagons.cell_at({"lon": np.array([13.4]), "lat": np.array([52.5])}, hexagons.depth)
    assert (found.locate(everything) >= 0).all()


def test_a_release_begins_the_next_one_and_both_say_so(tmp_path):
    first = made(tmp_path)
    for method, kind in (("auto", Adaptive), ("prefix", AdaptiveHierarchicalHistogram)):
        second = made(tmp_path, "next.parquet", method=method, prior=tmp_path / "last.parquet", overwrite=True)
        assert isinstance(second.algorithm, kind)
        wanted = tiled(TREE, prior_cells(tmp_path / "last.parquet", TREE, False))
        assert second.algorithm.prior.same_cells(wanted)
        assert "the first cells: those of last.parquet, a release, which had its own price" in second.statement.public
        assert loads(dumps(second.algorithm), METHODS) == second.algorithm
    assert len(first.transcript) in (5, 6) and len(second.transcript) <= 4
    spec = ReleaseSpec.of("t.csv", epsilon=1, box=BOX, prior=tmp_path / "last.parquet")
    assert spec.algorithm.deciding == () and ReleaseSpec.from_toml(spec.to_toml()).algorithm == spec.algorithm
    told = ReleaseSpec.of(
        "t.csv", epsilon=1, box=BOX, prior=tmp_path / "last.parquet", method="auto:shares=0.01/0.02,fullness=9/9"
    )
    assert told.algorithm.fullness == (9, 9)


def test_a_campaign_begins_with_a_prior_too(tmp_path):
    made(tmp_path)
    spec = ReleaseSpec.of(epsilon=1, box=BOX, outside="drop", dataset="x", prior=tmp_path / "last.parquet")
    campaign = Campaign.of(spec, most_numbers=20_000, name="a", purpose="b", cohort=Cohort(500, 500))
    assert campaign.algorithm.prior is not None and campaign.algorithm.deciding == ()
    assert campaign.algorithm.most_numbers == 20_000
    assert any(line.startswith("the first cells: those of a release") for line in statement(campaign).public)
    with pytest.raises(InputError, match="leave the prior out"):
        among_devices(spec.algorithm, 20_000, once=True)


def test_what_is_no_release_must_be_declared_public(tmp_path):
    listed = tmp_path / "tiles.txt"
    listed.write_text("# tiles of the town hall\n1202\n1202\n\n12023\n")
    ask = {"source": "t.csv", "epsilon": 1, "box": BOX, "prior": listed}
    with pytest.raises(InputError, match=r"no release of a map.*--prior-is-public"):
        ReleaseSpec.of(**ask)
    whole = ReleaseSpec.of("t.csv", epsilon=1, box=Box(0, 0, 60, 60), prior=listed, prior_is_public=True)
    assert whole.algorithm.prior.size > 1 and len(whole.algorithm.deciding) == 1
    assert any("the first cells: those of tiles.txt, declared public" in line for line in whole.statement("t").public)
    listed.write_text("root-0\nroot-12\n")
    assert ReleaseSpec.of(**ask, prior_is_public=True).algorithm.prior.size == 7
    for text, words in (("", "lists no cells"), ("root-9\n", "a cell of this quadtree"), ("\0\n", "a cell of this")):
        listed.write_text(text)
        with pytest.raises(InputError, match=words):
            ReleaseSpec.of(**ask, prior_is_public=True)
    listed.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(FileError, match="neither a release nor a text"):
        ReleaseSpec.of(**ask, prior_is_public=True)


def test_a_test_that_protects_nobody_is_no_prior(tmp_path):
    made(tmp_path, stream=Stream.fixed(b"known"))
    with pytest.raises(InputError, match="protects nobody"):
        ReleaseSpec.of("t.csv", epsilon=1, box=BOX, prior=tmp_path / "last.parquet")
    assert ReleaseSpec.of("t.csv", epsilon=1, box=BOX, prior=tmp_path / "last.parquet", prior_is_public=True).algorithm


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"box": None}, "with a prior the box is known"),
        ({"method": "flat:5"}, "begins with no cells of a prior"),
        ({"prior": "nowhere.parquet"}, "no file nowhere.parquet to take a prior from"),
        ({"prior": None, "prior_is_public": True}, "no prior to be declared public"),
        ({"box": Box(2.2, 48.8, 2.5, 48.9)}, "no cell of the prior lies on this map"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_paid(tmp_path, asked, words):
    made(tmp_path)
    usual = {"epsilon": 1, "box": BOX, "prior": tmp_path / "last.parquet"}
    with pytest.raises((InputError, FileError), match=words):
        ReleaseSpec.of("t.csv", **usual | asked)


def test_a_prior_changes_no_promise(tmp_path):
    """Its cells are fixed beforehand: the shares still add up to 1, and each question has the sensitivity of a row."""
    made(tmp_path)
    second = made(tmp_path, "next.parquet", prior=tmp_path / "last.parquet")
    questions = [exchange.question for exchange in second.transcript]
    assert sum(each.share for each in questions) == 1
    assert {each.encoder.sensitivity.l1 for each in questions} == {1} and second.statement.budget == PureDP(1)


def test_a_prior_is_in_the_coordinates_of_the_map(tmp_path):
    """Degrees would be taken for pixels, and counted where nobody is."""
    made(tmp_path)
    ask = {"source": "t.csv", "epsilon": 1, "box": "0,0,100,100", "prior": tmp_path / "last.parquet"}
    with pytest.raises(InputError, match="is in degrees and this map in px of a plane"):
        ReleaseSpec.of(**ask, plane="1000,800")
    listed = tmp_path / "tiles.txt"
    listed.write_text("1202\n")
    with pytest.raises(InputError, match="a cell of this quadtree is 'root'"):  # quadkeys are of the ground
        ReleaseSpec.of(**{**ask, "prior": listed}, plane="1000,800", prior_is_public=True)
    with pytest.raises(FileError, match="no file"):  # a device or a folder might never end
        ReleaseSpec.of(**{**ask, "prior": "/dev/zero"}, plane="1000,800", prior_is_public=True)


@pytest.mark.parametrize("asked", [{"prior": 5}, {"plane": 3}, {"plane": (10, 8)}, {"mark": 3}, {"mark": {"a": 1}}])
def test_options_of_other_types_are_refused_in_words(asked):
    with pytest.raises(InputError, match="found a "):
        ReleaseSpec.of("t.csv", epsilon=1, **asked)
