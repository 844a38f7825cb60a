"""Where the maps of a page stand: as large as its room lets them be, and no part of it left empty for nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hazemap.draw.viewport import CIRCUMFERENCE, NARROWEST, WIDEST, MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

FREE_HEIGHT = 1.0  # of its width: no page without a size of its own has maps higher together
SMALLEST_SECOND, LARGEST_SECOND = 0.45, 0.95  # of the first panel's width, beside it
STACKED_SECOND = 0.7  # below it
CLEARLY = 1.1  # times larger: the first panel of what stands one over the other
LEAST_FIRST, LEAST_SECOND = 1.7, 0.7  # inches
FULLNESS = 3.0  # how much an empty place of a grid weighs against larger panels
MOST_GROWN = 1.7  # times a view's side: more ground around a map, to fill a page of a given size
SAME_SCALE = 0.985  # of the scale of a map: what filling the page may cost
STEP = 1.04


@dataclass(frozen=True)
class Spot:
    """A panel: its upper left corner and its width, inches from the upper left corner of the body."""

    left: float
    top: float
    across: float


@dataclass(frozen=True)
class Layout:
    """Panels in a body of this size in inches; of a grid also its columns."""

    spots: tuple[Spot, ...]
    width: float
    height: float
    columns: int = 1
    stacked: bool = False

    @property
    def across(self) -> float:
        """The first panel's width."""
        return self.spots[0].across


@dataclass(frozen=True)
class Room:
    """Inches for the body of a page; a page without a size of its own is as high as it needs to be."""

    wide: float
    high: float
    given: bool


def one(aspect: float, room: Room, *, left: float = 0.0, above: float, below: float) -> Layout:
    """A panel of this width by height alone, with so much left of it, above and below."""
    across = min(room.wide - left, (room.high - above - below) * aspect)
    if room.given and across < LEAST_FIRST:
        raise InputError("a picture of this size has no room for a map: make it larger")
    return Layout((Spot(left, above, across),), left + across, above + across / aspect + below)


def two(
    aspect: float,
    room: Room,
    *,
    left: float,
    above: float,
    below: tuple[float, float],
    gap: float,
    beside: float,
) -> Layout:
    """A larger panel and a smaller one, whichever way the first becomes larger.

    Side by side both end at one height, whatever legends stand below each. Else the second is below the first, and its
    legend, so many inches wide, `beside` it. `left` is of the first panel, `above` of both.
    """
    foot, other = below
    longer = aspect * (other - foot)  # by this the first is wider, if both columns are equally high
    inner = room.wide - left - gap
    first = max((inner + longer) / 2, inner / (1 + LARGEST_SECOND))
    first = min(first, inner / (1 + SMALLEST_SECOND), (room.high - above - foot) * aspect)
    second = min(max(first - longer, SMALLEST_SECOND * first), LARGEST_SECOND * first, inner - first)
    second = min(second, (room.high - above - other) * aspect)
    high = above + max(first / aspect + foot, second / aspect + other)
    start = left + first + gap
    both = Layout((Spot(left, above, first), Spot(start, above, second)), start + second, high)
    if not room.given or not other:
        return both if not room.given else _roomy(both)
    free = room.high - 2 * above - foot  # for the heights of both panels, one over the other
    upper = min(room.wide - left, free * aspect / (1 + STACKED_SECOND))
    lower = min(STACKED_SECOND * upper, room.wide - left - gap - beside)
    if upper <= CLEARLY * first or lower / aspect < other:
        return _roomy(both)
    top = 2 * above + upper / aspect + foot
    wide = left + max(upper, lower + gap + beside)
    return Layout((Spot(left, above, upper), Spot(left, top, lower)), wide, top + lower / aspect, stacked=True)


def _roomy(layout: Layout) -> Layout:
    """`InputError` where panels are too small to be read."""
    first, second = (spot.across for spot in layout.spots)
    if first < LEAST_FIRST or second < LEAST_SECOND:
        raise InputError(
            "a picture of this size has no room for two maps: make it larger, or leave the uncertainty out"
        )
    return layout


def grid(
    count: int,
    aspect: float,
    room: Room,
    *,
    left: float = 0.0,
    gap: float,
    above: float,
    below: float,
    columns: tuple[int, ...] = (),
    least: float = 0.6,
) -> Layout:
    """Panels of one size in rows, each with so much above and below; as many `columns` as make the most of the room.

    A page without a size of its own becomes longer where panels would be narrower than the `least`; of one that has
    one, `InputError`.
    """
    choices = columns or tuple(range(1, count + 1))
    fits = {number: _across(number, count, aspect, room, left, gap, above + below) for number in choices}
    if max(fits.values()) < least:
        if room.given:
            raise InputError(
                f"a picture of this size has no room for {count} maps with their legends: make it larger, or leave"
                " --size out"
            )
        endless = replace(room, high=math.inf)  # rather a long page than maps nobody can read
        fits = {number: _across(number, count, aspect, endless, left, gap, above + below) for number in choices}
    fits = {number: across for number, across in fits.items() if across >= min(least, max(fits.values()))}
    number, across = max(
        fits.items(), key=lambda fit: (round(fit[1] * (count / (fit[0] * -(-count // fit[0]))) ** FULLNESS, 9), -fit[0])
    )
    rows = math.ceil(count / number)
    high = above + across / aspect + below
    spots = tuple(Spot(left + at % number * (across + gap), at // number * high + above, across) for at in range(count))
    return Layout(spots, left + number * across + (number - 1) * gap, rows * high, number)


def _across(number: int, count: int, aspect: float, room: Room, left: float, gap: float, more: float) -> float:
    """How wide panels can be in so many columns; `more` is what each needs above and below it."""
    rows = math.ceil(count / number)
    return min((room.wide - left - gap * (number - 1)) / number, (room.high / rows - more) * aspect)


def may_grow(view: Viewport, frame: MapExtent, box: Box | None) -> bool:
    """Whether more ground changes nothing of what a picture says that it shows: not with a box, nor on a plane."""
    return box is None and frame is MapExtent.MAP and view.plane is None


def grown(view: Viewport, layout: Callable[[float], Layout]) -> Viewport:
    """The view with more ground on two sides, where a page of a given size has room for it at the same scale.

    `layout` is of a view's width by height. Never more than the world, nor narrower or wider than pictures are.
    """
    found, before = view, layout(view.aspect)
    scale, area = before.across / view.width, before.across**2 / view.aspect
    times = STEP
    while times <= MOST_GROWN:
        for x, y in ((times, 1.0), (1.0, times)):
            wider, higher = (x - 1) / 2 * view.width, (y - 1) / 2 * view.height
            tried = replace(
                view,
                west=view.west - wider,
                east=view.east + wider,
                south=view.south - higher,
                north=view.north + higher,
            )
            inside = max(-tried.south, tried.north) <= CIRCUMFERENCE / 2 and tried.width <= CIRCUMFERENCE
            if not (inside and NARROWEST <= tried.aspect <= WIDEST):
                continue
            try:
                made = layout(tried.aspect)
            except InputError:  # of that shape it would be too small
                continue
            if made.across / tried.width >= SAME_SCALE * scale and made.across**2 / tried.aspect > area:
                found, area = tried, made.across**2 / tried.aspect
        times *= STEP
    return found
