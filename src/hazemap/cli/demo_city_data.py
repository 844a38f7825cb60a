"""The people of the demo: some weeks in a city on Dogger Bank, where nobody lives."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.atomic_write import whole
from hazemap.planning.synthetic_city import City, Places, Quarter, normal, uniform
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

BOX = Box(2.1, 54.65, 2.5, 54.881)
"""Where the city stands: a square on a map."""

DAYS, START = 28, 1_788_220_800  # from Tuesday, 1 September 2026, 00:00 UTC
MOST_ROWS = 60
JITTER = 0.0006  # of the city's side: where exactly at home a phone is


@dataclass(frozen=True)
class DemoCity:
    """Rows of people who do not exist: each has a home and a workplace, goes out, and is on the road between.

    >>> rows = DemoCity(people=50, seed=1).rows
    >>> sorted(rows), len(np.unique(rows["person"]))
    (['lat', 'lon', 'person', 'ts'], 50)
    """

    people: int
    seed: int

    @cached_property
    def rows(self) -> dict[str, NDArray[np.int64] | Floats]:
        """Columns person, lon, lat, and ts in seconds since 1970, in order of time."""
        stream = Stream.fixed(f"demo city {self.seed}".encode())
        city = City.built(stream)
        busy = np.exp(1.3 + 0.8 * normal(stream, self.people))
        number = np.clip(busy.astype(np.int64), 1, MOST_ROWS)
        person = np.repeat(np.arange(self.people), number)
        luck = uniform(stream, len(person))
        x, y, hour = np.empty((3, len(person)))
        for low, high, quarter, own, usual, spread in (
            (0.0, 0.4, city.homes, True, 1.0, 4.5),
            (0.4, 0.65, city.offices, True, 13.0, 2.5),
            (0.65, 0.85, city.venues, False, 20.0, 2.0),
            (0.85, 0.92, city.streets, False, 8.2, 1.0),
            (0.92, 1.0, city.streets, False, 17.5, 1.3),
        ):
            there = (low <= luck) & (luck < high)
            x[there], y[there] = self._at(stream, quarter, person[there], own)
            hour[there] = (usual + spread * normal(stream, int(there.sum()))) % 24
        day = np.floor(uniform(stream, len(person)) * DAYS)
        ts = START + np.floor((24 * day + hour) * 3600).astype(np.int64)
        order = np.argsort(ts, kind="stable")
        lon, lat = _degrees(x[order], y[order])
        return {"person": person[order], "lon": lon, "lat": lat, "ts": ts[order]}

    def _at(self, stream: Stream, quarter: Quarter, person: NDArray[np.int64], own: bool) -> Places:
        """For each row a place: one that its person has for good, or a new one."""
        if not own:
            return quarter.places(stream, len(person))
        x, y = (each[person] for each in quarter.places(stream, self.people))
        return (
            np.clip(x + JITTER * normal(stream, len(person)), 0, 1 - 1e-9),
            np.clip(y + JITTER * normal(stream, len(person)), 0, 1 - 1e-9),
        )

    def write(self, path: Path) -> None:
        """The rows as Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = self.rows
        ts = pa.array(rows["ts"]).cast(pa.timestamp("s", "UTC"))
        table = pa.table({**{name: pa.array(rows[name]) for name in ("person", "lon", "lat")}, "ts": ts})
        with whole(path) as part:
            pq.write_table(table, part, compression="zstd")

    @cached_property
    def votes(self) -> Floats:
        """What each row is worth where every person has one vote, shared out over their rows."""
        person = self.rows["person"].astype(np.int64)
        return 1.0 / np.bincount(person)[person]


def _degrees(x: Floats, y: Floats) -> Places:
    """Longitude and latitude of places in the city."""
    from hazemap.spatial.geodesy import latitudes, longitude

    square = Quadtree.around(BOX, 0)
    return longitude(square.left + square.side * x), latitudes(square.top + square.side * y)
