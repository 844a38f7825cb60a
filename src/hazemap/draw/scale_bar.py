"""A bar that says how long a kilometre is."""

import math
from typing import TYPE_CHECKING

from hazemap.draw.map_projection import ground, latitude
from hazemap.draw.text_layout import INK, style
from hazemap.draw.viewport import Viewport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 0.25  # of the panel's width
VARIES = 1.05  # scale between the northern and the southern edge above which the bar names its latitude


def bar(view: Viewport) -> tuple[float, str]:
    """A round length in metres on the ground, at the latitude of the view's middle, and its label.

    >>> from hazemap.spatial.bounding_box import Box
    >>> bar(Viewport.of(Box(-74.1, 40.6, -73.9, 40.8)))
    (2000.0, '2 km')
    """
    most = LONGEST * view.width * ground(view.latitude)
    unit = 10.0 ** math.floor(math.log10(most))
    length = max(digit * unit for digit in (1, 2, 5) if digit * unit <= most)
    label = f"{length / 1000:,.0f} km" if length >= 1000 else f"{length:g} m"
    scales = [ground(latitude(y)) for y in (view.south, view.north, (view.south + view.north) / 2)]
    if max(scales) > VARIES * min(scales):
        label += f" at {degrees(view.latitude, 'N', 'S', 0)}"
    return length, label


def draw_bar(axes: "Axes", view: Viewport, height: float, lift: float = 0.0) -> None:
    """The bar, `lift` inches over the right end of a panel of this height in inches (gid `scalebar`)."""
    length, label = bar(view)
    west, east = view.east - length / ground(view.latitude), view.east
    above = axes.get_xaxis_transform()  # metres across, shares of the panel's height up
    foot, tip, words = (1 + (lift + inches) / height for inches in (0.09, 0.14, 0.16))
    axes.plot(
        [west, west, east, east],
        [tip, foot, foot, tip],
        transform=above,
        clip_on=False,
        color=INK,
        linewidth=0.9,
        solid_joinstyle="miter",
        solid_capstyle="butt",
        gid="scalebar",
    )
    axes.text((west + east) / 2, words, label, transform=above, ha="center", va="bottom", **style(7))


def degrees(value: float, positive: str, negative: str, decimals: int) -> str:
    """A latitude or longitude as maps write it: 40.7° N."""
    rounded = round(value, decimals)
    side = "" if rounded == 0 else f" {positive}" if rounded > 0 else f" {negative}"
    return f"{abs(rounded):.{decimals}f}°{side}"
