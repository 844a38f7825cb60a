"""Round degrees along the edges of a panel."""

import math
from typing import TYPE_CHECKING

import numpy as np

from hazemap.draw.map_projection import sheet
from hazemap.draw.scale_bar import degrees
from hazemap.draw.text_layout import GREY, style
from hazemap.draw.viewport import Viewport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = (1, 2, 5)
SIZE = 6.0  # points
CORNER = 0.03  # of the panel: no label so near to a corner


def rounds(low: float, high: float, most: int) -> tuple[list[float], int]:
    """At most this many round degrees between two, and the decimals they need.

    >>> rounds(40.52, 40.97, 3)
    ([40.6, 40.8], 1)
    """
    finest = math.floor(math.log10((high - low) / most))
    for exponent in (finest, finest + 1):
        for digit in STEPS:
            step = digit * 10.0**exponent
            first, last = math.ceil(low / step), math.floor(high / step)
            if last - first + 1 <= most:
                decimals = max(0, -exponent)
                return [round(n * step, decimals) for n in range(first, last + 1)], decimals
    raise AssertionError("a step of ten times the finest leaves few enough")


def draw_graticule(axes: "Axes", view: Viewport, most: int = 5) -> None:
    """Short ticks and labels: longitudes below the panel, latitudes left of it."""
    west, south, east, north = view.degrees
    across, up = CORNER * (east - west), CORNER * (north - south)
    turn = 360.0 if west + east > 360 else 0.0  # most of it lies beyond the antimeridian
    lons, lon_decimals = rounds(max(west - turn + across, -180), min(east - turn - across, 180), most)
    lats, lat_decimals = rounds(south + up, north - up, most)
    x, _ = sheet(np.array(lons) + turn, np.zeros(len(lons)))
    _, y = sheet(np.zeros(len(lats)), np.array(lats))
    axes.set_xticks(x, [degrees(lon, "E", "W", lon_decimals) for lon in lons], **style(SIZE, colour=GREY))
    axes.set_yticks(
        y,
        [degrees(lat, "N", "S", lat_decimals) for lat in lats],
        rotation=90,
        va="center",
        **style(SIZE, colour=GREY),
    )
    axes.tick_params(length=2.5, width=0.5, color=GREY, pad=1.5, direction="out")
