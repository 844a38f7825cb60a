"""The people of the demo with devices: places as in New York, and nobody who lives there."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.atomic_write import whole
from hazemap.planning.synthetic_city import normal, uniform
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import Box

BOX = Box(-74.08, 40.60, -73.80, 40.88)
"""The square that is mapped."""

START = 1_788_220_800  # Tuesday, 1 September 2026, 00:00 UTC
MOST_ROWS = 12

SOUTH, NORTH = (-74.012, 40.704), (-73.925, 40.868)
"""The ends of a long, narrow island."""

CENTRES = ((0.05, 0.02, 0.15), (0.32, 0.09, 0.45), (0.45, 0.15, 0.25), (0.72, 0.10, 0.15))
"""Along the island (0 south, 1 north), how wide, and which part of its people."""

AROUND = (
    (-73.975, 40.675, 0.018, 0.35),
    (-73.945, 40.715, 0.012, 0.25),
    (-73.89, 40.745, 0.02, 0.25),
    (-73.92, 40.84, 0.015, 0.15),
)
"""Longitude, latitude, width and part of the people of what lies around it."""

ON_THE_ISLAND = 0.6


@dataclass(frozen=True)
class DemoIsland:
    """Rows of people who do not exist: each has a home, and now and then goes elsewhere.

    >>> rows = DemoIsland(people=50, seed=1).rows
    >>> sorted(rows), len(np.unique(rows["person"]))
    (['lat', 'lon', 'person', 'ts'], 50)
    """

    people: int
    seed: int

    @cached_property
    def rows(self) -> dict[str, NDArray[np.int64] | Floats]:
        """Columns person, lon, lat, and ts in seconds since 1970."""
        stream = Stream.fixed(f"demo island {self.seed}".encode())
        number = np.clip(np.exp(0.8 + 0.7 * normal(stream, self.people)).astype(np.int64), 1, MOST_ROWS)
        person = np.repeat(np.arange(self.people), number)
        home = np.column_stack(_places(stream, self.people))[person]
        away = np.column_stack(_places(stream, len(person)))
        at_home = uniform(stream, len(person)) < 0.7
        lon, lat = np.where(at_home[:, None], home, away).T
        ts = START + np.floor(uniform(stream, len(person)) * 28 * 86_400).astype(np.int64)
        return {"person": person, "lon": lon, "lat": lat, "ts": ts}

    def write(self, path: Path) -> None:
        """The rows as Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: pa.array(column) for name, column in self.rows.items() if name != "ts"})
        ts = pa.array(self.rows["ts"]).cast(pa.timestamp("s", "UTC"))
        with whole(path) as part:
            pq.write_table(table.append_column("ts", ts), part, compression="zstd")


def _places(stream: Stream, number: int) -> tuple[Floats, Floats]:
    """Longitude and latitude of places drawn from the whole."""
    luck = uniform(stream, number)
    along, across = _along(stream, number), 0.009 * (2 * uniform(stream, number) - 1)
    lon = SOUTH[0] + along * (NORTH[0] - SOUTH[0]) + across
    lat = SOUTH[1] + along * (NORTH[1] - SOUTH[1]) - 0.4 * across
    parts = np.cumsum([0.0, *(part for *_, part in AROUND)])
    for (x, y, width, _), low, high in zip(AROUND, parts[:-1], parts[1:], strict=True):
        there = (luck - ON_THE_ISLAND >= low * (1 - ON_THE_ISLAND)) & (
            luck - ON_THE_ISLAND < high * (1 - ON_THE_ISLAND)
        )
        lon[there] = x + width * normal(stream, int(there.sum()))
        lat[there] = y + width * normal(stream, int(there.sum()))
    return np.clip(lon, BOX.west, BOX.east - 1e-6), np.clip(lat, BOX.south, BOX.north - 1e-6)


def _along(stream: Stream, number: int) -> Floats:
    """Where on the island: near one of its centres."""
    which = np.searchsorted(np.cumsum([part for *_, part in CENTRES])[:-1], uniform(stream, number), "right")
    middle, wide = (np.array([centre[i] for centre in CENTRES])[which] for i in (0, 1))
    return np.abs(np.clip(middle + wide * normal(stream, number), -1, 1))
