"""The sheet (Web Mercator in metres, EPSG:3857; x east, y north) and the part of it that a picture shows."""

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box
from hazemap.spatial.plane import PlaneBox, PlaneQuadtree
from hazemap.spatial.web_mercator import ECCENTRICITY

RADIUS = 6378137.0
CIRCUMFERENCE = 2 * math.pi * RADIUS
MASS_LEFT_OUT = 0.001  # of what is counted, along each axis, half on each side
CLEAR = 3.0  # standard errors above nothing
MARGIN = 0.05  # of the extent, on each side
WORTH_CROPPING = 0.85  # a picture that would keep more than this of both sides keeps everything
NARROWEST, WIDEST = 0.55, 2.4  # width : height of a panel that still has room for its legends

ViewportBounds = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class MapExtent(Enum):
    """What a picture shows where no box is given: all of the map, or where people stand clear of the noise."""

    MAP = "map"
    PEOPLE = "people"


@dataclass(frozen=True)
class Viewport:
    """A rectangle of the sheet, in metres of Web Mercator; the square of a `plane` is as large there as the world.

    >>> Viewport.of(Box(-10, -10, 10, 10)).latitude
    0.0
    """

    west: float
    south: float
    east: float
    north: float
    plane: PlaneQuadtree | None = None

    @classmethod
    def of(cls, box: Box, plane: PlaneQuadtree | None = None) -> "Viewport":
        """The box, which is a rectangle on the sheet too."""
        if plane is not None:
            (west, east), rows = ((np.array(edges) - start) / plane.size for edges, start in plane_edges(box, plane))
            top, bottom = (rows.min(), rows.max()) if plane.down else (1 - rows.max(), 1 - rows.min())
            edges = (west - 0.5, 0.5 - bottom, east - 0.5, 0.5 - top)
            left, foot, right, head = (float(CIRCUMFERENCE * edge) for edge in edges)
            return cls(left, foot, right, head, plane)
        x, y = sheet(np.array([box.west, box.east]), np.array([box.south, box.north]))
        return cls(float(x[0]), float(y[0]), float(x[1]), float(y[1]))

    @classmethod
    def over(cls, bounds: ViewportBounds) -> "Viewport":
        """All of some rectangles."""
        west, south, east, north = bounds
        return cls(float(west.min()), float(south.min()), float(east.max()), float(north.max()))

    @classmethod
    def around(cls, bounds: ViewportBounds, mass: NDArray[np.float64], stddev: NDArray[np.float64]) -> "Viewport":
        """The extent outside of which nothing worth showing was found, with a margin.

        From each side what is cut off holds a two-thousandth of the mass at most, or no more than chance would
        make of nothing. `mass` is unbiased, so that the noise of empty ground cancels. The mass of a cell lies
        evenly in its bounds: a large cell with few people may be cut.
        """
        west, south, east, north = bounds
        whole = cls.over(bounds)
        variance = stddev**2
        if not mass.sum() > 4 * CLEAR * variance.sum() ** 0.5:  # both sides together may cut a half of it
            return whole
        left, right = _start(west, east, mass, variance), -_start(-east, -west, mass, variance)
        bottom, top = _start(south, north, mass, variance), -_start(-north, -south, mass, variance)
        if not (left < right and bottom < top):
            return whole
        across, up = MARGIN * (right - left), MARGIN * (top - bottom)
        cropped = cls(
            max(left - across, whole.west),
            max(bottom - up, whole.south),
            min(right + across, whole.east),
            min(top + up, whole.north),
        )
        kept = min(cropped.width / whole.width, cropped.height / whole.height)
        return whole if kept > WORTH_CROPPING else cropped

    @property
    def width(self) -> float:
        """Metres on the sheet from west to east."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """Metres on the sheet from south to north."""
        return self.north - self.south

    @property
    def aspect(self) -> float:
        """Width over height."""
        return self.width / self.height

    @property
    def latitude(self) -> float:
        """Degrees north of the middle."""
        return latitude((self.south + self.north) / 2)

    @property
    def unit(self) -> float:
        """Of a plane: how much of its own unit is one metre of the sheet."""
        return self.plane.size / CIRCUMFERENCE if self.plane else 1.0

    @property
    def box(self) -> Box:
        """Of a plane: the view in its own coordinates."""
        assert self.plane is not None  # noqa: S101 - asked of planes alone
        west, east = (self.plane.x + self.plane.size * (edge / CIRCUMFERENCE + 0.5) for edge in (self.west, self.east))
        south, north = self.y_at(self.south), self.y_at(self.north)
        return PlaneBox(west, min(south, north), east, max(south, north))

    def y_at(self, up: float) -> float:
        """Of a plane: its y at a height of the sheet."""
        assert self.plane is not None  # noqa: S101 - as above
        part = 0.5 + (-up if self.plane.down else up) / CIRCUMFERENCE
        return self.plane.y + self.plane.size * part

    @property
    def degrees(self) -> tuple[float, float, float, float]:
        """West, south, east and north in degrees."""
        return longitude(self.west), latitude(self.south), longitude(self.east), latitude(self.north)

    def padded(self, part: float) -> "Viewport":
        """With so much of its sides more on each side, but no farther north or south than the world goes."""
        across, up, edge = part * self.width, part * self.height, CIRCUMFERENCE / 2
        south, north = max(min(-edge, self.south), self.south - up), min(max(edge, self.north), self.north + up)
        return Viewport(self.west - across, south, self.east + across, north)

    def holds(self, other: "Viewport", rounding: float) -> bool:
        """Whether nothing of the other sticks out by more than this part of its sides."""
        across, up = rounding * other.width, rounding * other.height
        return (
            self.west <= other.west + across
            and self.east >= other.east - across
            and self.south <= other.south + up
            and self.north >= other.north - up
        )

    def joined(self, other: "Viewport") -> "Viewport":
        """The smallest rectangle that holds both."""
        return Viewport(
            min(self.west, other.west),
            min(self.south, other.south),
            max(self.east, other.east),
            max(self.north, other.north),
        )

    def shaped(self) -> "Viewport":
        """Grown about its middle until it is neither a ribbon nor a tower; shifted to stay on the world."""
        if self.aspect < NARROWEST:
            grown = (NARROWEST * self.height - self.width) / 2
            return replace(self, west=self.west - grown, east=self.east + grown)
        if self.aspect > WIDEST:
            grown = (self.width / WIDEST - self.height) / 2
            shift = 0.0
            if self.height + 2 * grown < CIRCUMFERENCE:
                edge = CIRCUMFERENCE / 2
                shift = min(0.0, edge - (self.north + grown)) + max(0.0, -edge - (self.south - grown))
            return replace(self, south=self.south - grown + shift, north=self.north + grown + shift)
        return self

    def contains(self, bounds: ViewportBounds) -> NDArray[np.bool_]:
        """Which rectangles lie in the view with all they are."""
        west, south, east, north = bounds
        return (west >= self.west) & (east <= self.east) & (south >= self.south) & (north <= self.north)

    def touches(self, bounds: ViewportBounds) -> NDArray[np.bool_]:
        """Which rectangles have something in the view."""
        west, south, east, north = bounds
        return (west < self.east) & (east > self.west) & (south < self.north) & (north > self.south)


def plane_edges(box: Box, plane: PlaneQuadtree) -> tuple[tuple[tuple[float, float], float], ...]:
    """The edges of a box across and up, each with where the plane's square begins."""
    return ((box.west, box.east), plane.x), ((box.south, box.north), plane.y)


def _start(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    mass: NDArray[np.float64],
    variance: NDArray[np.float64],
) -> float:
    """Up to where, from below, there is next to no mass; each cell's lies evenly between `low` and `high`."""
    edges = np.concatenate([low, high])
    order = np.argsort(edges, kind="stable")
    edges = edges[order]

    def below(amount: NDArray[np.float64]) -> NDArray[np.float64]:
        slope = amount / (high - low)
        slopes = np.cumsum(np.concatenate([slope, -slope])[order])
        return np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(edges))])

    excess = below(mass) - MASS_LEFT_OUT / 2 * mass.sum() - CLEAR * np.sqrt(np.maximum(below(variance), 0))
    after = int(np.argmax(excess > 0))  # the mass of all is clear, so there is a first place
    return float(np.interp(0.0, excess[after - 1 : after + 1], edges[after - 1 : after + 1]))


def sheet(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Metres on the sheet of degrees; latitudes beyond Web Mercator are put on its edge.

    >>> x, y = sheet(np.array([180.0]), np.array([90.0]))
    >>> bool(np.isclose(x, y)[0])
    True
    """
    kept = np.clip(lat, -MERCATOR_LATITUDE, MERCATOR_LATITUDE)
    return np.radians(lon) * RADIUS, np.arcsinh(np.tan(np.radians(kept))) * RADIUS


def longitude(x: float) -> float:
    """Degrees east of a place on the sheet."""
    return math.degrees(x / RADIUS)


def latitude(y: float) -> float:
    """Degrees north of a place on the sheet."""
    return math.degrees(math.atan(math.sinh(y / RADIUS)))


def ground(lat: float) -> float:
    """Metres on the ground, along the parallel, of one metre on the sheet (WGS 84).

    A degree of longitude is N(φ) cos φ · π/180 on the ellipsoid, N(φ) = a / √(1 - e² sin² φ), and a · π/180
    on the sheet.
    """
    phi = math.radians(lat)
    return math.cos(phi) / math.sqrt(1 - (ECCENTRICITY * math.sin(phi)) ** 2)
