"""What helps to find one's way on a map: the base map under and over its cells, and a user's own lines on top."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.base_map import BaseMap, TownPlace, base_map
from hazemap.draw.cell_painting import points_across
from hazemap.draw.figure_layout import style, width
from hazemap.draw.overlay_lines import draw_lines, lines_in
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import Viewport, sheet
from hazemap.errors import InputError

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes

NAME = 6.0  # points
MOST_NAMES, MOST_NAMES_AN_INCH = 14, 3
ROOM = 1.15  # times its own size: what a name keeps free of others
EDGE = 0.02  # of the panel: no name begins or ends so near to its edge
LEADING = 1.6  # font sizes that a name is high, with its dot


@dataclass(frozen=True, eq=False)
class Ground:
    """The base map of a view and a user's own lines, which `draw` puts on a panel; a plane has neither."""

    view: Viewport
    lines: Sequence[Any] = ()
    base: BaseMap | None = None
    theme: Theme = LIGHT

    @classmethod
    def of(
        cls, view: Viewport, outlines: "Path | str | GeoDataFrame | None", base: bool = True, theme: Theme = LIGHT
    ) -> "Ground":
        """`base` is whether the base map is drawn. `FileError` and `InputError` are those of `lines_in`."""
        if view.plane and outlines is not None:
            raise InputError("outlines are in degrees, and this map is on a plane: leave them out")
        lines = [] if outlines is None else lines_in(outlines, view)
        return cls(view, lines, _base_of(*view.degrees) if base and not view.plane else None, theme)

    def draw(self, axes: "Axes", line: float, names: bool = False) -> None:
        """Land and water under all that is on the axes; over it shores, rivers, borders and own lines.

        `line` is how wide own lines are, in points; `names` is whether places are named, as many as have room.
        """
        if self.base is not None:
            self._paint(axes)
            for gid, lines, colour, part, dashes in (
                ("rivers", self.base.rivers, self.theme.river, 0.8, "solid"),
                ("states", self.base.states, self.theme.state, 0.6, (0, (4, 2))),
                ("borders", self.base.borders, self.theme.border, 0.9, (0, (6, 1.5, 1, 1.5))),
                ("shores", self._shores, self.theme.shore, 0.8, "solid"),
            ):
                self._stroke(axes, gid, lines, colour, part * line, dashes)
        draw_lines(axes, list(self.lines), line, self.theme)
        if names and self.base is not None:
            self._name(axes)

    @cached_property
    def _shores(self) -> list[Any]:
        assert self.base is not None  # noqa: S101 - asked of a ground with a base map alone
        return [ring for area in (*self.base.land, *self.base.lakes) for ring in area]

    def _paint(self, axes: "Axes") -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path as Outline

        assert self.base is not None  # noqa: S101 - as above
        axes.set_facecolor(self.theme.water)
        land, water = self.theme.land, self.theme.water
        for gid, areas, colour in (("land", self.base.land, land), ("lakes", self.base.lakes, water)):
            rings = [Outline(_on_sheet(ring), closed=True) for area in areas for ring in area]
            if rings:
                path = Outline.make_compound_path(*rings)
                axes.add_patch(PathPatch(path, facecolor=colour, linewidth=0, zorder=0.5, gid=gid))

    def _stroke(self, axes: "Axes", gid: str, lines: Sequence[Any], colour: str, points: float, dashes: Any) -> None:
        from matplotlib.collections import LineCollection

        if lines:
            drawn = [_on_sheet(line) for line in lines]
            halo: dict[str, Any] = {"colors": self.theme.halo, "linewidths": points + 1.0, "alpha": 0.3, "zorder": 2.5}
            for look in (halo, {"colors": colour, "linewidths": points, "linestyles": [dashes], "zorder": 2.6}):
                axes.add_collection(LineCollection(drawn, gid=gid, **look), autolim=False)

    def _name(self, axes: "Axes") -> None:
        """Names and dots of the most important places, none over another (gid `place`)."""
        from matplotlib.patheffects import withStroke

        around, state = self.theme.halo, self.theme.state
        halo = [withStroke(linewidth=2.2, foreground=around, alpha=0.85)]
        dot: dict[str, Any] = {"color": state, "markeredgecolor": around, "markeredgewidth": 0.5, "markersize": 2.2}
        for place, x, y, side in self.named(points_across(axes) / 72):
            axes.plot([x], [y], "o", zorder=4, **dot)
            look: dict[str, Any] = {
                **style(NAME, colour=self.theme.ink),
                "path_effects": halo,
                "zorder": 4,
                "clip_on": True,
                "gid": "place",
            }
            offset: dict[str, Any] = {"xytext": (3 * side, 0), "textcoords": "offset points", "va": "center_baseline"}
            axes.annotate(place.name, (x, y), ha="left" if side > 0 else "right", **offset, **look)

    def named(self, inches: float) -> list[tuple[TownPlace, float, float, int]]:
        """Places that have room on a panel of this width: where they are, and whether the name is right or left."""
        assert self.base is not None  # noqa: S101 - as above
        metres, found, taken = self.view.width / inches, [], list[tuple[float, float, float, float]]()
        high, left_free = LEADING * NAME / 72 * metres, EDGE * self.view.width
        for place in self.base.places:
            x, y = (float(edge[0]) for edge in sheet(np.array([place.lon]), np.array([place.lat])))
            if not (self.view.south + high < y < self.view.north - high):
                continue
            for side in (1, -1):
                reach = side * ROOM * (width(place.name, NAME) + 0.05) * metres
                box = (min(x, x + reach), y - high / 2, max(x, x + reach), y + high / 2)
                free = not any(box[0] < b[2] and box[2] > b[0] and box[1] < b[3] and box[3] > b[1] for b in taken)
                if free and box[0] > self.view.west + left_free and box[2] < self.view.east - left_free:
                    taken.append(box)
                    found.append((place, x, y, side))
                    break
            if len(found) >= min(MOST_NAMES, MOST_NAMES_AN_INCH * inches):
                break
        return found


@lru_cache(maxsize=4)
def _base_of(west: float, south: float, east: float, north: float) -> BaseMap | None:
    """The base map of a view; none of more than the whole world on either side."""
    return base_map((west, south, east, north), 0.02) if west >= -540 and east <= 540 else None


def _on_sheet(degrees: Any) -> Any:
    return np.stack(sheet(degrees[:, 0], degrees[:, 1]), axis=1)
