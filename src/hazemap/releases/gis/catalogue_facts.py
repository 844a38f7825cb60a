"""What catalogues are told of a release: columns, ground and promise. All of it is in the release's file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

PARQUET, GEOTIFF = "application/vnd.apache.parquet", "image/tiff; application=geotiff; profile=cloud-optimized"
SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")
WEB = ("https://", "http://")

MEANINGS = {
    "level": "the level of the cell in its tree, 0 for the root",
    "best_guess": "the best guess of how many are in the cell",
    "unbiased": "the unbiased estimate of how many are in the cell; it may be negative",
    "stddev": "the standard error",
    "low": "where the 95 % interval of the best guess begins",
    "high": "where the 95 % interval of the best guess ends",
    "slot": "the timeslot",
    "people": "how many are in the cell and slot, with noise",
    "people_stddev": "the standard error of the number of people",
    "value": "the mean",
    "guess": "the best guess of the mean",
    "guess_stddev": "the standard error of the best guess",
    "too_few": "whether too few were there to publish a number",
    "variance": "the variance",
    "share": "the share of people who carry the mark",
    "bias": "how far rounding may have moved the number",
}
"""What a column holds, by its name or by what stands after its last `_`."""


@dataclass(frozen=True)
class Publication:
    """What no release knows of itself: where and by whom it is published, under which licence, of which time.

    `licence` is an SPDX identifier or a web address. `period` is two days, `2026-01-01/2026-06-30`, the last one
    included. `InputError` for what is neither.
    """

    href: str
    title: str | None = None
    licence: str | None = None
    publisher: str | None = None
    publisher_url: str | None = None
    contact: str | None = None
    period: str | None = None

    def __post_init__(self) -> None:
        licence, url = self.licence, self.publisher_url
        if licence is not None and not licence.startswith(WEB) and not SPDX.fullmatch(licence):
            raise InputError(f"a licence is an SPDX identifier such as CC-BY-4.0, or a web address; found {licence!r}")
        if url is not None and not url.startswith(WEB):
            raise InputError(f"a publisher's address begins with https://; found {url!r}")
        if url is not None and self.publisher is None:
            raise InputError("a publisher's address needs the publisher's name")
        if self.contact is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+", self.contact):
            raise InputError(f"a contact is an e-mail address; found {self.contact!r}")
        _ = self.days

    @property
    def days(self) -> tuple[str, str] | None:
        """The first and the last day, ISO 8601."""
        if self.period is None:
            return None
        try:
            first, last = (datetime.strptime(day, "%Y-%m-%d").date() for day in self.period.split("/"))
        except ValueError:
            first, last = None, None
        if first is None or last is None or first > last:
            raise InputError(f"a period is two days in order, such as 2026-01-01/2026-06-30; found {self.period!r}")
        return first.isoformat(), last.isoformat()

    @property
    def licence_url(self) -> str | None:
        """Where the licence is to be read."""
        if self.licence is None or self.licence.startswith(WEB):
            return self.licence
        return f"https://spdx.org/licenses/{self.licence}"


class Column(NamedTuple):
    """A column of a release's table: `kind` is as Parquet names it."""

    name: str
    kind: str
    meaning: str


class PrivacyFact(NamedTuple):
    """A parameter of the promise: rationals are text, so that nothing is rounded."""

    name: str
    value: str
    meaning: str


def columns_of(release: "BaseRelease") -> list[Column]:
    """The columns, and what is in them."""
    kinds = {"O": "string", "f": "double", "b": "boolean", "i": "int16"}
    table = release.columns()
    first = next(iter(table))
    populations = getattr(release, "populations", {})
    found = [Column(name, kinds[each.dtype.kind], _meaning(name, first, populations)) for name, each in table.items()]
    return [*found, Column("geometry", "binary", "the polygon of the cell, as WKB")]


def _meaning(name: str, first: str, populations: Mapping[str, str]) -> str:
    of = populations.get("mean" if name == "value" else name)
    if of is not None:
        return f"{_meaning(name, first, {})} of {of}"
    if name == first:
        return "the name of the cell"
    if name.startswith("area_"):
        return f"the ground that the cell owns, in {name.removeprefix('area_')}"
    if name.startswith("per_"):
        return f"the best guess of how many are in the cell per {name.removeprefix('per_')}"
    before, _, last = name.rpartition("_")
    known = MEANINGS.get(name) or MEANINGS.get(last, "")
    if re.fullmatch(r"q[0-9.e-]+", name):
        return f"the quantile of rank {name[1:]}"
    return f"{known} ({before})" if known and before and name not in MEANINGS else known


def privacy_facts(release: "BaseRelease") -> list[PrivacyFact]:
    """The promise as parameters: budget, what it implies, who is protected, and how.

    Of every number it is said whether a release has it; nothing is worked out anew.
    """
    statement, budget = release.statement, release.statement.budget
    facts = []
    if isinstance(budget, ZCDP):
        facts.append(PrivacyFact("rho", str(budget.rho), "zero-concentrated differential privacy"))
        for epsilon, delta in statement.implied:
            facts.append(PrivacyFact("epsilon", str(epsilon), f"implied by rho, at delta = {delta}"))
    else:
        facts.append(PrivacyFact("epsilon", str(budget.epsilon), "how much a person may change any outcome"))
    if isinstance(budget, ApproxDP):
        facts.append(PrivacyFact("delta", str(budget.delta), "the probability that the promise does not cover"))
    return [
        *facts,
        PrivacyFact("protected", statement.unit, "who is protected"),
        PrivacyFact("neighbours", statement.neighbours, "which two tables look alike"),
        PrivacyFact("bounding", str(statement.bounding), "how much of a person counts"),
        PrivacyFact("noise", statement.noise, "the law of the noise"),
        PrivacyFact("trust", statement.trust, "who adds the noise"),
    ]


class Extent(NamedTuple):
    """The ground in degrees: west, south, east, north. East is below west where it lies across the antimeridian."""

    west: float
    south: float
    east: float
    north: float

    @property
    def parts(self) -> list[tuple[float, float, float, float]]:
        """One box, or one on each side of the antimeridian."""
        if self.west <= self.east:
            return [(self.west, self.south, self.east, self.north)]
        return [(self.west, self.south, 180.0, self.north), (-180.0, self.south, self.east, self.north)]

    def to_geojson(self) -> dict[str, Any]:
        """As a polygon, or as two (RFC 7946, section 3.1.9)."""
        rings = [[[[w, s], [e, s], [e, n], [w, n], [w, s]]] for w, s, e, n in self.parts]
        if len(rings) == 1:
            return {"type": "Polygon", "coordinates": rings[0]}
        return {"type": "MultiPolygon", "coordinates": rings}

    def to_wkt(self) -> str:
        """The same as text (OGC 06-103)."""
        rings = [f"(({w} {s}, {e} {s}, {e} {n}, {w} {n}, {w} {s}))" for w, s, e, n in self.parts]
        return f"POLYGON {rings[0]}" if len(rings) == 1 else f"MULTIPOLYGON ({', '.join(rings)})"


def extent_of(release: "BaseRelease") -> Extent:
    """Where a release is on Earth."""
    west, south, east, north = (float(edge) for edge in release.ground.extent)
    if east - west >= 360:
        return Extent(-180.0, south, 180.0, north)
    turned = [(edge + 180) % 360 - 180 if not -180 <= edge <= 180 else edge for edge in (west, east)]
    return Extent(turned[0], south, turned[1], north)


def media_type(href: str) -> str:
    """That of a release's file."""
    return GEOTIFF if href.lower().endswith((".tif", ".tiff")) else PARQUET
