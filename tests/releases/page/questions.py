"""Questions that the page and `Release.count` are both asked, and the page's answers, by Node."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import shapely
from shapely.geometry import mapping

from hazemap.releases import MarkedRelease, Release
from hazemap.releases.page.asking_payload import asking_marks_of, asking_of, asking_slots_of
from hazemap.releases.timed_release import TimedRelease
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox, plane_of

WEB = Path(__file__).parents[3] / "web"
PAGE = WEB / "page"
CONFIDENCES = (0.5, 0.95, 0.999)


class Asked(NamedTuple):
    """A region, as Python takes it, and how sure the answer is to be."""

    region: Any
    confidence: float
    slots: Sequence[int] | None = None

    def to_json(self) -> dict[str, Any]:
        """As the page takes it."""
        more = {"confidence": self.confidence, **({} if self.slots is None else {"slots": list(self.slots)})}
        if isinstance(self.region, Box):
            box = [self.region.west, self.region.south, self.region.east, self.region.north]
            return {"region": {"box": box}, **more}
        shape = self.region if isinstance(self.region, dict) else mapping(self.region)
        return {"region": {"polygon": shape}, **more}


def program() -> Path:
    """The page's questions for Node; skips where nothing can build them."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed: the page's questions are not tested here")
    compiler = WEB / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("what the page is built with is not installed: `make studio` does it")
    built = PAGE / "dist" / "node" / "page" / "src" / "asking" / "answer_questions.js"
    sources = [path for part in ("page", "shared") for path in (WEB / part).glob("src/**/*.ts")]
    if not built.exists() or built.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        done = subprocess.run([str(compiler)], cwd=PAGE, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stdout[-5_000:]
    return built


def answers(release: Release, questions: Sequence[Asked]) -> dict[str, Any]:
    """What the page says: `opened`, and for each question `found`, `said` and `milliseconds`."""
    asking = asking_of(release)
    if isinstance(release, TimedRelease):
        asking = asking_slots_of(release)
    elif isinstance(release, MarkedRelease):
        asking = asking_marks_of(release)
    text = json.dumps({"asking": asking, "questions": [each.to_json() for each in questions]})
    done = subprocess.run(
        ["node", str(program())], input=text, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def random_regions(release: Release, rng: np.random.Generator, number: int) -> list[Asked]:
    """Rectangles and star-shaped polygons, from a few cells to nearly all of the map, some across its edge."""
    west, south, east, north = release.ground.extent
    plane, span = plane_of(release.cells.tree) is not None, np.array([east - west, north - south])
    least, most = ([-1e9, -1e9], [1e9, 1e9]) if plane else ([-180, -90], [180, 90])
    found = list[Asked]()
    while len(found) < number:
        middle, size = rng.uniform([west, south], [east, north]), span * rng.uniform(0.03, 0.6, 2)
        if len(found) % 2:
            turns = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 40))))
            spokes = rng.uniform(0.2, 1, len(turns))[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
            region: Any = shapely.Polygon(np.clip(middle + size * spokes, least, most))
            if not region.is_valid:
                continue
        else:
            low, high = np.clip(middle - size / 2, least, most), np.clip(middle + size / 2, least, most)
            region = (PlaneBox if plane else Box)(*map(float, (*low, *high)))
        found.append(Asked(region, float(rng.choice(CONFIDENCES))))
    return found


def odd_regions(release: Release) -> list[Asked]:
    """Holes, several polygons, borders of cells, slivers, all of the map, a spot in one cell, one corner of the map."""
    west, south, east, north = release.ground.extent
    plane = plane_of(release.cells.tree) is not None
    kind = PlaneBox if plane else Box

    def box(a: float, b: float, c: float, d: float) -> Any:
        w, h = east - west, north - south
        return shapely.box(west + a * w, south + b * h, west + c * w, south + d * h)

    cell = release.ground.outlines(release.ground.places[release.ground.km2[release.ground.places] > 0])[0]
    x, y = cell.centroid.x, cell.centroid.y
    dx, dy = 1e-2 * (cell.bounds[2] - cell.bounds[0]), 1e-2 * (cell.bounds[3] - cell.bounds[1])
    spot = shapely.Polygon([(x - dx, y - dy), (x + dx, y - dy / 2), (x, y + dy)])
    shapes = [
        box(0.1, 0.1, 0.8, 0.9) - box(0.3, 0.3, 0.5, 0.6) - box(0.6, 0.7, 0.7, 0.8),
        shapely.MultiPolygon([box(0.05, 0.05, 0.3, 0.4), box(0.5, 0.3, 0.95, 0.9) - box(0.6, 0.4, 0.7, 0.8)]),
        shapely.MultiPolygon([box(0.2, 0.2, 0.4, 0.4), box(0.4, 0.4, 0.6, 0.7)]),  # they touch at a corner
        box(0.2, 0.0, 0.9, 1.0) - shapely.Polygon(np.array(box(0.4, 0.4, 0.6, 0.6).exterior.coords)[:3]),
        cell,
        box(0, 0, 1, 1),
        box(0.4, 0.0, 0.4001, 1.0),
        spot,
        box(0.9, 0.9, 1, 1),
        shapely.Point(0.5 * (west + east), 0.5 * (south + north)).buffer(0.3 * (north - south), quad_segs=120),
    ]
    boxes = [kind(*map(float, shape.bounds)) for shape in (cell, box(0, 0, 1, 1), box(0.25, 0.25, 0.75, 0.5))]
    return [Asked(region, CONFIDENCES[at % 3]) for at, region in enumerate([*shapes, *boxes])]
