"""The tables that values of people are compared on: those of the evaluation data, and two that are made up."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.published.chop_user import CellVisits
from hazemap.planning.synthetic_city import normal, uniform
from hazemap.privacy.random_stream import Stream
from hazemap.temporal.time_slots import Clock
from hazemap.values.quantizer import Quantizer
from research.compare.evaluation_data import Evaluation
from research.compare.user_level.many_cells import ManyCells
from research.compare.user_level.one_cell import OneCell

if TYPE_CHECKING:
    import pandas as pd

SPEEDS: dict[str, tuple[str, str, float, str, str]] = {
    "austin": ("austin_bus_2015", "speed_ms", 30.0, "America/Chicago", "buses of Austin, m/s"),
    "san-francisco": (
        "cabspotting_sf_speed_2008_05_20",
        "speed_kmh",
        100.0,
        "America/Los_Angeles",
        "cabs of San Francisco, km/h",
    ),
}
"""Tables of speeds in the evaluation data: file, column, its largest value (declared), time zone, what they are of."""

RESOLUTION = 7
"""Of the H3 hexagons that CHOP-USER is asked about."""

HUMPS = 20_000


def surat(evaluation: Evaluation) -> OneCell:
    """One hexagon and hour of Surat's buses: the very cell of the paper."""
    person, speed = evaluation.columns("itms_surat_cell", "user", "speed_kmh")
    what = "buses of Surat in one hexagon and hour, km/h"
    return OneCell("surat-cell", Quantizer(0, 65), person.astype(np.int64), speed.astype(np.float64), what)


def fullest(evaluation: Evaluation, city: str, rank: int) -> OneCell:
    """The hundredth of a degree and hour (UTC) that has the most records but for `rank` others."""
    rows, column, width, what = _speeds(evaluation, city)
    cells = rows.groupby([rows.lon.round(2), rows.lat.round(2), rows.ts.dt.hour], sort=False)
    cell = cells.get_group(cells.size().nlargest(rank + 1).index[rank])
    person, value = cell.user.to_numpy(np.int64), cell[column].to_numpy(np.float64)
    return OneCell(
        f"{city}-cell-{rank + 1}", Quantizer(0, width), person, value, f"{what}, in one of the fullest cells"
    )


def by_the_hour(evaluation: Evaluation, city: str) -> ManyCells:
    """Who was in which hexagon in which hour of the day."""
    from h3ronpy.vector import coordinates_to_cells

    rows, _, width, what = _speeds(evaluation, city)
    hours = Clock.hours(SPEEDS[city][3])
    lon, lat = rows.lon.to_numpy(np.float64), rows.lat.to_numpy(np.float64)
    hexagon = np.unique(np.asarray(coordinates_to_cells(lat, lon, RESOLUTION)), return_inverse=True)[1]
    moments = rows.ts.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64) / 1e6
    presence = CellVisits.counted(rows.user.to_numpy(), hexagon * 24 + hours.at(moments))
    return ManyCells(f"{city}-cells", presence, width, f"{what}, by hexagon (h3:{RESOLUTION}) and hour of the day")


def _speeds(evaluation: Evaluation, city: str) -> tuple["pd.DataFrame", str, float, str]:
    import pandas as pd

    file, column, width, _, what = SPEEDS[city]
    rows = pd.read_parquet(evaluation.file(f"{file}.parquet"), columns=["user", "lon", "lat", "ts", column])
    return rows.dropna(subset=[column]), column, width, what


def one_heavy_person(cells: int = 12, others: int = 30) -> ManyCells:
    """One person with 60 samples in each of twelve cells, and thirty others in each with 10, who are in one alone."""
    number = cells * others
    person = np.concatenate([np.zeros(cells, np.int64), np.arange(1, number + 1)])
    cell = np.concatenate([np.arange(cells), np.repeat(np.arange(cells), others)])
    samples = np.repeat([60, 10], [cells, number])
    return ManyCells("one-heavy-person", CellVisits(person, cell, samples), 65.0, "made up: one person is in all cells")


def two_humps() -> OneCell:
    """People with a value each, 30 % of them slow: normal numbers around 15 and 35, clipped to 0 to 65."""
    stream = Stream.fixed(b"two humps")
    slow = uniform(stream, HUMPS) < 0.3
    luck: NDArray[np.float64] = normal(stream, HUMPS)
    value = np.clip(np.where(slow, 15 + 4 * luck, 35 + 9 * luck), 0, 65)
    return OneCell(
        "two-humps", Quantizer(0, 65), np.arange(HUMPS), value, "made up: people with a value each, in two humps"
    )
