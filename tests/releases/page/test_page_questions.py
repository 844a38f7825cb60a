"""The page answers questions about regions as `Release.count` does: the same numbers, the same words."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import geopandas
import numpy as np
import pytest
import shapely
from tests.releases import conftest as made
from tests.releases.test_every_method import METHODS, town
from tests.releases.test_marked_release import BOX as MARKED_BOX
from tests.releases.test_marked_release import rows as marked_rows
from tests.releases.test_timed_release import released as released_with_time

import hazemap
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer
from hazemap.releases import MarkedRelease, Release
from hazemap.releases.estimates import Estimate
from hazemap.releases.marked_release import RegionShares
from hazemap.releases.page.asking_payload import asking_of
from hazemap.releases.page.packed_arrays import unpack
from hazemap.releases.timed_release import TimedRelease
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.subdivided_districts import DistrictQuadtree
from hazemap.trust.curator import Curator

from . import vectors
from .questions import Asked, answers, odd_regions, random_regions

NUMBERS = ("best_guess", "unbiased", "stddev", "low", "high", "cut", "placement_stddev")


def answer(release: Release, asked: Asked) -> Estimate | str:
    """What Python says, or why there is no answer."""
    try:
        timed = release if asked.slots is None else cast(TimedRelease, release).during(asked.slots)
        return timed.count(asked.region, asked.confidence)
    except InputError as error:
        return str(error)


def agree(release: Release, questions: list[Asked]) -> int:
    """How many questions had the same answer: numbers to 1e-9 relative (or 1e-9 people), and words."""
    same = 0
    for asked, page in zip(questions, answers(release, questions)["answers"], strict=True):
        found = answer(release, asked)
        if isinstance(found, str):
            assert page["said"] == found, asked
            continue
        wanted = found.to_json()
        for name in NUMBERS:
            assert page["found"][name] == pytest.approx(wanted[name], rel=1e-9, abs=1e-9), (name, asked)
        assert page["found"]["noise_stddev"] == pytest.approx(found.noise_stddev, abs=1e-7 * found.stddev)
        assert page["said"] == str(found)
        same += 1
    return same


def districts() -> Districts:
    """States with curved borders, one of two parts with a hole that another one fills."""
    lake = shapely.Point(0.5, 0.5).buffer(0.2)
    west = shapely.union(shapely.box(0, 0, 1, 1) - lake, shapely.box(3, 0, 3.4, 0.6))
    east = shapely.Polygon([(1, 0), (2.5, -0.2), (2.9, 1.1), (1, 1)])
    shapes = [west, lake, east, shapely.Point(4, 1).buffer(0.5, quad_segs=60)]
    names = ["West", "Lake", "East", "Far"]
    return Districts.of(geopandas.GeoDataFrame({"name": names}, geometry=shapes, crs="EPSG:4326"))


def district_squares() -> Leaves:
    tree = DistrictQuadtree(districts(), Quadtree.around(Box(0, -0.5, 4.5, 1.5), 6))
    cells = tree.root
    for _ in range(tree.districts.depth + 4):
        cells = tree.children(cells)
    return Leaves(tree, cells)


def reports() -> Release:
    """Reports of devices, whose noise is skewed."""
    release = made.released(made.flat(5))
    (exchange,) = release.transcript
    answer = Answer(exchange.answer.sums, exchange.answer.stddev, 3.0, chances=(0.5, 0.0025))
    return replace(release, transcript=(exchange._replace(answer=answer),))


SCREEN = PlaneBox(0, 0, 1000, 800)
MADE: dict[str, Callable[[], Leaves]] = {
    "nested squares": made.nested,
    "squares and nowhere": made.with_nowhere,
    "nested hexagons": made.hexagons,
    "hexagons on the antimeridian": lambda: Leaves(tree := Hexagons(Box(170, 60, 180, 80), 1, 3), tree.root),
    "districts": lambda: Leaves.at_level(districts(), 1),
    "squares cut by districts": district_squares,
    "plane": lambda: Leaves.at_level(PlaneQuadtree.over(Plane.parse("1000,800"), SCREEN, 6), 5),
}
BY_METHOD = (
    *("adaptive", "adaptive hexagons", "hierarchical", "hierarchical hexagons", "privlet", "kd-hybrid"),
    *("adaptive grid", "published pyramid"),
)
RELEASES = (*MADE, *BY_METHOD, "reports")


def release_of(name: str, points: dict[str, np.ndarray]) -> Release:
    if name not in BY_METHOD:
        return reports() if name == "reports" else made.released(MADE[name]())
    method, budget = METHODS[name], PureDP(5)
    result = run(method, Curator(town(points)), budget, Unrecorded())
    statement = replace(made.STATEMENT, budget=budget, bounding=method.bounding)
    return Release(result.value, statement, method, result.transcript)


EACH = -(-1_000 // len(RELEASES))


@pytest.mark.parametrize("kind", ["nested", "nowhere"])
def test_the_page_answers_as_the_library_does(kind):
    release = made.released(made.KINDS[kind]())
    questions = random_regions(release, np.random.default_rng(1), 12) + odd_regions(release)[:6]
    assert agree(release, questions) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_thousand_random_regions_and_odd_ones_have_the_same_answer_in_the_page(name, points):
    release = release_of(name, points)
    questions = random_regions(release, np.random.default_rng(len(name)), EACH)
    assert agree(release, questions + odd_regions(release)) > EACH / 2


SLOTS = ([0], [1], [2], [0, 1], [2, 0], [0, 1, 2], None)


@pytest.mark.slow
def test_regions_in_slots_have_the_same_answer_in_the_page(tmp_path):
    release = released_with_time(tmp_path)
    asked = random_regions(release, np.random.default_rng(4), 70) + odd_regions(release)
    asked = [each._replace(slots=SLOTS[at % len(SLOTS)]) for at, each in enumerate(asked)]
    assert agree(release, asked) > 70


@pytest.mark.slow
def test_whole_slots_sum_to_the_whole_day_in_the_page(tmp_path):
    release = released_with_time(tmp_path)
    whole = Box(*release.ground.extent)
    asked = [Asked(whole, 0.95, slots) for slots in ([0], [1], [2], [0, 1, 2], None)]
    *slots, together, day = (each["found"]["unbiased"] for each in answers(release, asked)["answers"])
    assert sum(slots) == pytest.approx(together, rel=1e-9)
    assert together == pytest.approx(day, rel=1e-9)


def shares(release: MarkedRelease, asked: Asked) -> RegionShares | str:
    """What Python says, or why there is no answer."""
    try:
        return release.share(asked.region, confidence=asked.confidence)
    except InputError as error:
        return str(error)


def agree_on_shares(release: MarkedRelease, questions: list[Asked]) -> int:
    """How many questions had the same shares of the same cells, to 1e-9; and the same words where there are none."""
    same = 0
    for asked, page in zip(questions, answers(release, questions)["answers"], strict=True):
        wanted = shares(release, asked)
        if isinstance(wanted, str):
            assert page["said"] == wanted, asked
            continue
        found = page["found"]
        assert [found[name] for name in ("cells", "inside", "outside")] == [wanted.cells, wanted.inside, wanted.outside]
        for share, other in zip(found["shares"], wanted.shares, strict=True):
            assert share["mark"] == other.mark
            assert (share["value"] is None) == (other.value is None)
            assert other.value is None or share["value"] == pytest.approx(other.value, rel=1e-9, abs=1e-9)
            assert (share["low"], share["high"]) == pytest.approx((other.low, other.high), rel=1e-9, abs=1e-9)
        for name in NUMBERS:
            assert found["people"][name] == pytest.approx(wanted.people.to_json()[name], rel=1e-9, abs=1e-9)
        assert page["said"] == str(wanted.people)
        same += 1
    return same


def released_with_marks(folder: Path, **more: Any) -> MarkedRelease:
    asked = {"person": "user", "epsilon": 1, "box": MARKED_BOX, "mark": ["ill", "status=1", "status=2"], **more}
    return cast(MarkedRelease, hazemap.release(marked_rows(3_000), ledger=hazemap.Ledger(folder / "l.sqlite"), **asked))


def test_shares_in_regions_are_those_of_the_library(tmp_path):
    release = released_with_marks(tmp_path)
    asked = random_regions(release, np.random.default_rng(6), 20) + odd_regions(release)
    assert agree_on_shares(release, asked) > 15


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 20])
def test_many_shares_in_regions_are_those_of_the_library(epsilon, tmp_path):
    release = released_with_marks(tmp_path, epsilon=epsilon, bounding="rows:2")
    asked = random_regions(release, np.random.default_rng(7), 150) + odd_regions(release)
    assert agree_on_shares(release, asked) > 50


@pytest.mark.slow
def test_where_noise_hides_everybody_a_share_is_unknown_in_the_page_too(tmp_path):
    release = released_with_marks(tmp_path)
    nobody = replace(release, counts=replace(release.counts, sides=np.minimum(release.counts.sides, 0) - 1.0))
    asked = random_regions(nobody, np.random.default_rng(8), 10)
    assert agree_on_shares(nobody, asked) > 3
    assert any(
        share["value"] is None
        for page in answers(nobody, asked)["answers"]
        for share in page["found"].get("shares", [])
    )


@pytest.mark.slow
def test_regions_in_slots_sum_to_those_of_all_slots(tmp_path):
    """Borders cut no cell of the slots here, so each sum is exact."""
    release = released_with_time(tmp_path)
    ground = release.by_slot[0].ground
    rng, shapes = np.random.default_rng(9), ground.outlines(ground.places)
    for turn in range(8):
        whole = shapely.unary_union(rng.choice(shapes, min(len(shapes), 3 + turn), replace=False))
        asked = [Asked(whole, 0.95, slots) for slots in ([0], [1], [2], [0, 1, 2])]
        *slots, together = (each["found"]["unbiased"] for each in answers(release, asked)["answers"])
        assert sum(slots) == pytest.approx(together, rel=1e-9)
        assert together == pytest.approx(release.count(whole).unbiased, rel=1e-6)


def test_the_vectors_are_what_the_library_says():
    stored = json.loads(vectors.FILE.read_text(encoding="utf-8"))
    now = vectors.cases()
    assert stored["asking"].keys() == now["asking"].keys()
    assert unpack(stored["asking"]["unbiased"]) == pytest.approx(unpack(now["asking"]["unbiased"]), rel=1e-9)
    for before, after in zip(stored["questions"], now["questions"], strict=True):
        assert before["region"] == after["region"]
        assert before["said"] == after["said"]
        for name in after.get("found", {}):
            assert before["found"][name] == pytest.approx(after["found"][name], rel=1e-9, abs=1e-9)


BROKEN = {
    "a bow": [[(13.3, 52.45), (13.4, 52.55), (13.4, 52.45), (13.3, 52.55)]],
    "a spike": [[(13.3, 52.45), (13.4, 52.45), (13.5, 52.45), (13.4, 52.45), (13.4, 52.5)]],
    "a ring that touches itself": [
        [(13.3, 52.4), (13.5, 52.4), (13.4, 52.45), (13.5, 52.5), (13.3, 52.5), (13.4, 52.45)]
    ],
    "a hole outside": [
        [(13.3, 52.45), (13.4, 52.45), (13.4, 52.5), (13.3, 52.5)],
        [(13.5, 52.45), (13.55, 52.45), (13.55, 52.5)],
    ],
    "a hole that cuts it apart": [
        [(13.3, 52.45), (13.4, 52.45), (13.4, 52.5), (13.3, 52.5)],
        [(13.35, 52.45), (13.36, 52.47), (13.35, 52.5), (13.34, 52.47)],
    ],
    "a hole along its border": [
        [(13.3, 52.45), (13.4, 52.45), (13.4, 52.5), (13.3, 52.5)],
        [(13.32, 52.45), (13.38, 52.45), (13.35, 52.48)],
    ],
    "nested holes": [
        [(13.3, 52.45), (13.4, 52.45), (13.4, 52.5), (13.3, 52.5)],
        [(13.32, 52.46), (13.38, 52.46), (13.38, 52.49), (13.32, 52.49)],
        [(13.33, 52.47), (13.37, 52.47), (13.37, 52.48), (13.33, 52.48)],
    ],
    "far": [[(-3.0, 5.0), (-2.0, 5.0), (-2.0, 6.0)]],
    "metres": [[(390000.0, 5800000.0), (391000.0, 5800000.0), (391000.0, 5801000.0)]],
}
SOUND = {
    "a hole that touches it": [
        [(13.3, 52.45), (13.4, 52.45), (13.4, 52.5), (13.3, 52.5)],
        [(13.35, 52.45), (13.36, 52.47), (13.34, 52.47)],
    ],
    "against the clock, a point twice": [[(13.3, 52.45), (13.3, 52.5), (13.4, 52.5), (13.4, 52.5), (13.4, 52.45)]],
}


def polygon(rings: list[list[tuple[float, float]]]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [[list(point) for point in [*ring, ring[0]]] for ring in rings]}


def test_what_python_refuses_the_page_refuses_in_the_same_words():
    release = made.released(made.flat(3))
    asked = [Asked(polygon(rings), 0.95) for rings in (*BROKEN.values(), *SOUND.values())]
    several = [polygon(BROKEN["far"])["coordinates"], polygon(BROKEN["far"])["coordinates"]]
    asked += [
        Asked({"type": "MultiPolygon", "coordinates": several}, 0.95),
        Asked({"type": "MultiPolygon", "coordinates": []}, 0.95),
        Asked(Box(-3, 5, -2, 6), 0.95),
    ]
    assert agree(release, asked) == len(SOUND)


def test_a_page_without_questions_is_made_of_a_map_whose_noise_is_not_ours(release):
    class Own:
        of = release.map.noise.of

    assert asking_of(release) is not None
    assert asking_of(replace(release, map=replace(release.map, noise=Own()))) is None
