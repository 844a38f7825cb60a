"""Whom a picture does not show is said beside it (fault 9)."""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves
from hazemap.draw import MapExtent, encode, shown_part
from hazemap.releases.people_outside import PeopleOutside
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

from .conftest import BERLIN, flat, nested, released

HALF = Box(13.2, 52.4, 13.4, 52.6)


def with_outside(leaves: Leaves) -> Leaves:
    return Leaves(leaves.tree, np.append(leaves.cells, NOWHERE))


def hexagons() -> Leaves:
    return Leaves.at_level(Hexagons(BERLIN, 5, 8), 2)


@pytest.mark.parametrize("leaves", [flat(), nested(), hexagons()], ids=["squares", "nested", "hexagons"])
@pytest.mark.parametrize("asked", [False, True])
def test_inside_and_outside_a_picture_together_are_all_that_were_counted(leaves, asked):
    release = released(with_outside(leaves) if asked else leaves)
    outside = PeopleOutside.of(release, HALF)
    everybody = release.total().value + (release.nowhere.value if asked else 0)
    assert outside.beyond.value + release.count(HALF).value == pytest.approx(everybody)
    assert outside.beyond.low < outside.beyond.value < outside.beyond.high
    assert (outside.nowhere is None) != asked


def test_fault_9_a_picture_shows_all_of_the_map_unless_it_is_asked_for_less():
    """Fault 9: a picture cropped even a declared box."""
    leaves = flat()
    cellmap = released(leaves).map
    alone = np.zeros(leaves.size)
    alone[100:104] = 1e6
    crowded = replace(cellmap, values=alone, unbiased=alone)
    west, south, east, north = leaves.tree.bounds(leaves.tree.root)
    assert shown_part(crowded) is None
    assert shown_part(crowded, box=Box(west[0], south[0], east[0], north[0])) is None
    part = shown_part(crowded, MapExtent.PEOPLE)
    assert part.east - part.west < 0.5 * (east - west)[0]


def test_a_picture_beside_the_map_leaves_everybody_out():
    release = released(with_outside(flat()))
    everybody = release.total().value + release.nowhere.value
    assert release.beyond(Box(0, 0, 1, 1)).value == pytest.approx(everybody)


def test_words_say_what_is_known_and_what_is_not():
    asked, dropped = released(with_outside(flat())), released(flat())
    number = str(asked.nowhere)
    assert str(PeopleOutside.of(asked)) == f"{number} lie outside the map."
    assert str(PeopleOutside.of(dropped)) == "People outside the map were not counted."
    beyond = str(asked.beyond(HALF))
    assert str(PeopleOutside.of(asked, HALF)).startswith(
        f"{beyond} lie outside this picture; of them {number.split(' (', maxsplit=1)[0]}"
    )
    assert str(PeopleOutside.of(dropped, HALF)).endswith(
        "lie on the map, outside this picture; people outside the map were not counted."
    )
    below = replace(asked.nowhere, value=-5.0)
    assert "below 0 by noise alone" in str(PeopleOutside("people", below))


@pytest.mark.parametrize("box", [None, HALF], ids=["all of the map", "a part"])
def test_the_picture_says_it_too(box):
    release = released(with_outside(flat()))
    figure = release.plot(box=box, width=6)
    [note] = [text for text in figure.texts if text.get_gid() == "note"]
    assert note.get_label() == str(PeopleOutside.of(release, box))
    assert encode(figure)


def test_a_picture_across_the_antimeridian_is_two_parts():
    tree = Quadtree.world(6)
    cellmap = released(Leaves.at_level(tree, 4)).map
    ends = shown_part(cellmap, box=Box(170, -10, 180, 60))  # a tower, widened beyond 180°
    assert ends.geom_type == "MultiPolygon" and ends.bounds[0] == -180 and ends.bounds[2] == 180
