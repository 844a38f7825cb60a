"""A campaign in the terminal: its rounds, who answered, its map in half-blocks."""

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cli.console_output import console, several
from hazemap.errors import InputError
from hazemap.federated.service.operator_line import Operator

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from hazemap.cells import Leaves


WIDE, HIGH = 56, 56
"""Half-blocks of the map: two above each other make a character."""

SHADES = " .:-=+*#%@"
"""The same where there are no colours."""

INK = ((255, 247, 236), (253, 212, 158), (252, 141, 89), (215, 48, 31), (127, 0, 0), (60, 0, 0))
"""From few to many: the colours of a printed density map."""


def watched(line: Operator, name: str, once: bool, every: float, quiet: bool) -> dict[str, Any]:
    """Show a campaign until it is over, or once; the last status."""
    from rich.live import Live

    out = console()
    if quiet or once or not sys.stdout.isatty():
        said = ""
        while True:
            status: dict[str, Any] = line.get(f"/v1/campaigns/{name}")
            now = _line(status)
            if not quiet and not once and now != said:
                out.print(now)
                said = now
            if once or status["state"] != "running":
                break
            time.sleep(every)
        if not quiet:
            out.print(shown(status, _map(line, status, out.is_terminal)))
        return status
    with Live(console=out, auto_refresh=False, vertical_overflow="crop") as live:
        seen, picture = -1, None
        while True:
            status = line.get(f"/v1/campaigns/{name}")
            answered = sum(each["answered"] for each in status["rounds"])
            if answered != seen:
                seen, picture = answered, _map(line, status, True)
            live.update(shown(status, picture), refresh=True)
            if status["state"] != "running":
                return status
            time.sleep(every)


def shown(status: dict[str, Any], picture: "Text | None") -> "RenderableType":
    """A status and a map, one above the other."""
    from rich.console import Group

    parts: list[RenderableType] = [_head(status), _rounds(status)]
    parts.extend(_now(status))
    if picture is not None:
        parts.append(picture)
    return Group(*parts)


def _head(status: dict[str, Any]) -> "Text":
    from rich.text import Text

    cohort, devices = status["cohort"], status["devices"]
    spent = f"{100 * status['spent']:.4g} % of {status['budget']['text']} spent"
    text = Text.assemble((status["name"], "bold"), f": {status['purpose']}\n")
    text.append(f"{status['method']}, {spent}; {cohort['people']:,} people a round ({cohort['sampling']}), ")
    text.append(
        f"{several(cohort['shards'], 'shard')}; {devices['recent']:,} of {devices['enrolled']:,} devices are here\n"
    )
    return text


def _rounds(status: dict[str, Any]) -> "RenderableType":
    from rich.table import Table

    table = Table("round", "cells", "± noise", "price", "people", "dropped", "declined", "culprits", "shards", box=None)
    for each in status["rounds"]:
        lost = each["shards"].get("lost", 0)
        table.add_row(
            str(each["round"]),
            f"{each['cells']:,}" if each["answered"] else "…",
            f"{each['stddev']:.4g}" if each["answered"] else "…",
            each.get("price", "…"),
            f"{each['survivors']:,}",
            f"{sum(each['dropped'].values()):,}",
            f"{sum(each['refusals'].values()):,}",
            f"{len(each['culprits']):,}",
            f"{each['shards'].get('opened', 0):,}" + (f" ({lost:,} lost)" if lost else ""),
        )
    return table


def _now(status: dict[str, Any]) -> "list[RenderableType]":
    from rich.text import Text

    if status["state"] != "running":
        return [Text(f"{status['state']} {status['ended'] or ''} {status['reason']}", "bold")]
    if status["missing"]:
        return [Text(f"waiting for {status['missing']:,} more devices")]
    lines = [
        f"round {each['round']}, shard {each['shard']}: {each['stage']}, {each['waiting']:,}/{each['clients']:,} left"
        for each in status["running"]
    ]
    more = [f"and {len(lines) - 6} shards more"] if len(lines) > 6 else []
    return [Text("\n".join([*lines[:6], *more]))]


def _line(status: dict[str, Any]) -> str:
    """One line for a pipe."""
    stages = sorted({f"round {each['round']} at {each['stage']}" for each in status["running"]})
    answered = sum(each["answered"] for each in status["rounds"])
    what = f"waiting for {status['missing']} devices" if status["missing"] else ", ".join(stages)
    return f"{status['name']}: {status['state']}, {several(answered, 'round')} answered; {what}".rstrip("; ")


def _map(line: Operator, status: dict[str, Any], coloured: bool) -> "Text | None":
    from hazemap.codec import from_json

    if not any(each["answered"] for each in status["rounds"]):
        return None
    try:
        found = line.get(f"/v1/campaigns/{status['name']}/map")
    except InputError:  # it failed, or was stopped: there is no map any more
        return None
    density = densities(from_json(found["cells"]), np.array(found["values"]))
    return drawn(density) if coloured else typed(density)


def densities(leaves: "Leaves", values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Density per square kilometre at a grid of points of a web map, north first; NaN outside the map."""
    from hazemap.releases.cell_geometry import CellGeometry

    ground = CellGeometry(leaves)
    west, south, east, north = ground.extent
    top, bottom = (np.arcsinh(np.tan(np.radians(min(max(lat, -85.0), 85.0)))) for lat in (north, south))
    high = max(2, min(HIGH, 2 * round(WIDE * (top - bottom) / np.radians(east - west) / 2)))
    lon = west + (east - west) * (np.arange(WIDE) + 0.5) / WIDE
    lat = np.degrees(np.arctan(np.sinh(top + (bottom - top) * (np.arange(high) + 0.5) / high)))
    points = {"lon": np.tile(lon, high), "lat": np.repeat(lat, WIDE)}
    at = leaves.locate(leaves.tree.cell_at(points, leaves.tree.depth))
    found = (at >= 0) & (ground.km2[at] > 0)
    density = np.full(at.shape, np.nan)
    density[found] = values[at[found]] / ground.km2[at[found]]
    return density.reshape(high, WIDE)


def drawn(density: NDArray[np.float64]) -> "Text":
    """Half-blocks, the upper in the colour of the letter and the lower in that of its ground."""
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    tones, steps = _tones(density), np.linspace(0, 1, len(INK))
    colours = np.stack([np.interp(tones, steps, [ink[part] for ink in INK]) for part in range(3)], axis=-1)
    text = Text()
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            text.append("▀", Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
        text.append("\n")
    return text


def typed(density: NDArray[np.float64]) -> "Text":
    """The same in letters, for a pipe: one for two half-blocks."""
    from rich.text import Text

    tones = _tones(density)
    shade = np.rint((tones[::2] + tones[1::2]) / 2 * (len(SHADES) - 1)).astype(int)
    return Text("\n".join("".join(SHADES[at] for at in row).rstrip() for row in shade))


def _tones(density: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0 to 1 by the logarithm of density; 0 outside the map and where nobody is."""
    seen = density[np.isfinite(density) & (density > 0)]
    low, high = (np.log(np.quantile(seen, (0.05, 0.99)))) if len(seen) else (0.0, 1.0)
    low = min(low, high - 1)  # where all are equal they are many
    with np.errstate(divide="ignore", invalid="ignore"):
        tones: NDArray[np.float64] = np.clip((np.log(density) - low) / (high - low), 0, 1)
    return np.nan_to_num(tones)
