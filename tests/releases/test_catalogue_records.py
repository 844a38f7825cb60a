"""Records for catalogues: valid by the schemas of STAC, readable as schema.org and DCAT, and nothing but the file."""

import json
import re
from dataclasses import replace

import numpy as np
import pystac
import pytest
from pystac.extensions.projection import ProjectionExtension
from pystac.extensions.table import TableExtension

from hazemap.cells import Leaves
from hazemap.errors import FileError, InputError
from hazemap.privacy.budget import ZCDP, ApproxDP
from hazemap.releases.gis.catalogue_facts import Extent, Publication, columns_of, extent_of, privacy_facts
from hazemap.releases.gis.dcat_dataset import dcat_dataset
from hazemap.releases.gis.stac_item import identifier, stac_item
from hazemap.spatial.plane import Plane, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree

ALONE = Publication("./map.parquet")
FULL = Publication(
    "https://data.example.org/map.parquet",
    "Who is where",
    "CC-BY-4.0",
    "City of Example",
    "https://example.org",
    "data@example.org",
    "2026-01-01/2026-06-30",
)


def valid(item):
    """By the schema of STAC's core that pystac carries; those of extensions are on the web, and are read by pystac."""
    assert json.loads(json.dumps(item, allow_nan=False)) == item
    core = {**item, "stac_extensions": []}
    assert pystac.Item.from_dict(core).validate() is not None
    return pystac.Item.from_dict(item)


@pytest.mark.parametrize("about", [ALONE, FULL], ids=["alone", "full"])
def test_an_item_is_valid_and_its_extensions_are_read(any_release, about):
    item = valid(stac_item(any_release, about))
    assert ProjectionExtension.ext(item).code == "EPSG:4326"
    table = TableExtension.ext(item)
    assert [each.name for each in table.columns] == [*any_release.columns(), "geometry"]
    assert all(each.description for each in table.columns)
    assert item.assets["data"].href == about.href
    assert item.bbox == list(extent_of(any_release))


def test_a_twin_without_what_stac_demands_is_refused(release):
    item = stac_item(release, ALONE)
    del item["properties"]["datetime"]
    with pytest.raises(Exception, match="datetime"):
        valid(item)


def test_an_item_says_of_which_time_and_whose_it_is(release):
    properties = stac_item(release, FULL)["properties"]
    assert (properties["datetime"], properties["start_datetime"]) == (None, "2026-01-01T00:00:00Z")
    assert properties["end_datetime"] == "2026-06-30T23:59:59Z"
    assert properties["license"] == "CC-BY-4.0"
    assert properties["providers"][0]["name"] == "City of Example"
    assert stac_item(release, replace(FULL, licence="https://a.b/c"))["properties"]["license"] == "other"
    assert stac_item(release, FULL)["links"] == [
        {"rel": "license", "href": "https://spdx.org/licenses/CC-BY-4.0"},
    ]


def test_a_data_set_speaks_both_vocabularies(any_release):
    made = dcat_dataset(any_release, FULL)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["@type"] == ["Dataset", "dcat:Dataset"]
    used = {each.partition(":")[0] for each in made if ":" in each}
    assert used <= made["@context"].keys()
    measured = {each["name"]: each for each in made["variableMeasured"]}
    assert measured["epsilon"]["value"] == "1"
    assert set(any_release.columns()) < measured.keys()
    [file], [portals] = made["distribution"], made["dcat:distribution"]
    assert file["contentUrl"] == portals["dcat:accessURL"]["@id"] == FULL.href
    assert made["license"] == "https://spdx.org/licenses/CC-BY-4.0"
    # what DCAT-AP demands of a data set and of a distribution
    assert {"dct:title", "dct:description"} < made.keys() and "dcat:accessURL" in portals
    south, west, north, east = map(float, made["spatialCoverage"]["geo"][0]["box"].split())
    assert south < north and west < east
    assert re.fullmatch(r"POLYGON \(\(.*\)\)", made["dct:spatial"]["dcat:bbox"]["@value"])


def test_a_data_set_without_options_names_nobody(release):
    made = dcat_dataset(release, ALONE)
    assert not {"publisher", "license", "dct:publisher", "dcat:contactPoint", "temporalCoverage"} & made.keys()


@pytest.mark.parametrize(
    ("budget", "names"),
    [
        (ZCDP("0.1"), ["rho", "epsilon", "epsilon"]),
        (ApproxDP(1, "1/1000000"), ["epsilon", "delta"]),
    ],
)
def test_the_promise_is_told_in_its_own_currency(release, budget, names):
    told = privacy_facts(replace(release, statement=replace(release.statement, budget=budget)))
    assert [each.name for each in told][: len(names)] == names
    assert [each.name for each in told][len(names)] == "protected"


@pytest.mark.parametrize(
    "wrong",
    [
        {"licence": "my own"},
        {"licence": ""},
        {"period": "2026-06-30/2026-01-01"},
        {"period": "2026"},
        {"period": "2026-02-30/2026-03-01"},
        {"publisher": "x", "publisher_url": "javascript:alert(1)"},
        {"publisher_url": "https://a.b"},
        {"contact": "nobody"},
    ],
    ids=str,
)
def test_what_is_no_licence_period_or_address_is_refused(wrong):
    with pytest.raises(InputError, match=r"found|needs"):
        Publication("./a.parquet", **wrong)


def test_ground_across_the_antimeridian_is_two_boxes():
    extent = Extent(170.0, -10.0, -170.0, 10.0)
    assert extent.parts == [(170.0, -10.0, 180.0, 10.0), (-180.0, -10.0, -170.0, 10.0)]
    assert extent.to_geojson()["type"] == "MultiPolygon"
    assert extent.to_wkt().startswith("MULTIPOLYGON")


def test_the_whole_world_is_one_box(make):
    world = make(Leaves.at_level(Quadtree.world(2), 1))
    west, _, east, _ = extent_of(world)
    assert (west, east) == (-180.0, 180.0)
    valid(stac_item(world, ALONE))


def test_a_plane_is_in_no_catalogue_of_the_earth(make):
    plane = make(Leaves.at_level(PlaneQuadtree.over(Plane.parse("8,8"), Plane.parse("8,8").box, 3), 1))
    for record in (stac_item, dcat_dataset):
        with pytest.raises(FileError):
            record(plane, ALONE)


def called(release, name):
    return replace(release, statement=replace(release.statement, dataset=name))


def test_odd_names_of_data_sets_still_name_an_item(release):
    for name, start in (("../../etc", "etc-20260102-"), ("東京", "release-20260102-")):
        assert re.fullmatch(start + "[0-9a-f]{8}", identifier(called(release, name)))


def test_two_releases_of_a_day_have_two_names(make):
    one, other = (make(Leaves.at_level(Quadtree.world(2), level)) for level in (1, 2))
    assert identifier(one) == identifier(one) != identifier(other)


def test_every_column_has_a_meaning(any_release):
    assert all(each.meaning for each in columns_of(any_release))
    assert np.all([each.kind in ("string", "double", "boolean", "int16", "binary") for each in columns_of(any_release)])
