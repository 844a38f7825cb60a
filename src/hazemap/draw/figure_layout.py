"""A sheet of paper measured in inches from its top left corner: title above, panels, caption beneath.

Text is plain, in one family of fonts, and broken into lines that fit. `save` writes a sheet as a picture.
"""

import io
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.draw.panel_layout import FREE_HEIGHT, Room
from hazemap.draw.themes import LIGHT, Theme, theme_named
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError
from hazemap.files.atomic_write import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DPI = 200
"""Pixels an inch, of a PNG."""
NARROWEST, WIDEST = 5.0, 24.0
LOWEST, HIGHEST = 3.0, 24.0
INCHES_OF = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "px": 1 / DPI}


@dataclass(frozen=True)
class PageSize:
    """So many inches across and up; a PNG has 200 pixels for each.

    >>> PageSize.parse("1600x900px"), PageSize.parse("10x7")
    (PageSize(width=8.0, height=4.5), PageSize(width=10.0, height=7.0))
    """

    width: float
    height: float

    def __post_init__(self) -> None:
        for what, inches, least, most in (
            ("wide", self.width, NARROWEST, WIDEST),
            ("high", self.height, LOWEST, HIGHEST),
        ):
            if not (isinstance(inches, int | float) and math.isfinite(inches) and least <= inches <= most):
                raise InputError(
                    f"a picture is {least:g} to {most:g} inches {what} ({least * DPI:,.0f} to {most * DPI:,.0f} pixels)"
                    f"; found {inches!s:.20}"
                )

    @classmethod
    def of(cls, size: "PageSize | tuple[float, float]") -> "PageSize":
        """A size, or its width and height in inches."""
        if isinstance(size, PageSize):
            return size
        if not isinstance(size, tuple | list) or len(size) != 2:
            raise InputError(f"a picture's size is its width and height in inches, such as (10, 7); found {size!s:.40}")
        return cls(*size)

    @classmethod
    def parse(cls, text: str) -> "PageSize":
        """`10x7` in inches, or with a unit at the end: `1600x900px`, `25x18cm`, `250x180mm`, `10x7in`."""
        number = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
        found = re.fullmatch(rf"\s*{number}\s*[x×]\s*{number}\s*(in|cm|mm|px)?\s*", text, re.ASCII | re.IGNORECASE)
        if found is None:
            raise InputError(
                f"a picture's size is WIDTHxHEIGHT, such as 10x7 (inches) or 1600x900px; found {text!r:.40}"
            )
        inches = INCHES_OF[(found[3] or "in").lower()]
        return cls(float(found[1]) * inches, float(found[2]) * inches)


MARGIN = 0.3
TITLE, NOTE, CAPTION = 15.0, 8.0, 7.0  # points
FAMILY = "DejaVu Sans"  # ships with matplotlib, so that a picture looks the same everywhere
INK, GREY = LIGHT.ink, LIGHT.grey
LEADING = 1.35  # line height in font sizes
POINT = 1 / 72  # inches
SUFFIXES = (".png", ".svg", ".pdf")
LEAST_BODY = 1.4  # inches, for maps or a chart
SAME_BYTES: dict[Any, Any] = {"svg.hashsalt": "hazemap", "text.hinting": "none"}
"""Whatever a user's settings are: ids in an SVG from what it shows, and letters as wide as `width` says."""


@dataclass(frozen=True, eq=False)
class FigureLayout:
    """A figure whose title and caption are set; the panels go between `top` and `bottom`."""

    figure: "Figure"
    width: float
    height: float
    top: float
    left: float = MARGIN
    theme: Theme = LIGHT

    @classmethod
    def ruled(
        cls,
        width: float,
        body: float,
        title: str | None,
        caption: str,
        note: str = "",
        *,
        theme: Theme = LIGHT,
        size: PageSize | None = None,
    ) -> "FigureLayout":
        """A page as high as its title, a body of this height, its note and its caption need.

        The caption's artist has the gid `caption` and its unbroken text as label; those of title and note likewise.
        With a `size` the page has that, and a body that leaves some of it over stands in the middle; `width` is then
        what the body needs with the margins.
        """
        from hazemap.draw.notebook_figure import NotebookFigure

        left = MARGIN
        if size is not None:
            left, width = MARGIN + max(size.width - width, 0) / 2, size.width
        inner = width - 2 * MARGIN
        head = wrapped(title, inner, TITLE, "bold") if title else []
        said = wrapped(note, inner, NOTE)
        foot = wrapped(caption, inner, CAPTION)
        top = MARGIN + height(len(head), TITLE) + (0.08 if head else 0)
        between = height(len(said), NOTE) + (0.12 if said else 0)
        under = between + height(len(foot), CAPTION) + ((0.06 if said else 0.12) if foot else 0)
        total = top + body + under + MARGIN * 0.8
        if size is not None:
            spare, total = size.height - total, size.height
            top += spare / 2
        figure = NotebookFigure(encode, figsize=(width, total), dpi=DPI, facecolor=theme.paper)
        page = cls(figure, width, total, top, left, theme)
        bottom = total - MARGIN * 0.8
        feet = bottom - height(len(foot), CAPTION)
        notes = feet - (0.06 if foot else 0) - height(len(said), NOTE)
        for gid, lines, text, place, look in (
            ("title", head, title, MARGIN, page.style(TITLE, weight="bold")),
            ("note", said, note, notes, page.style(NOTE)),
            ("caption", foot, caption, feet, page.style(CAPTION, faint=True)),
        ):
            if lines:
                page.write(MARGIN, place, "\n".join(lines), gid=gid, label=text, va="top", **look)
        return page

    @staticmethod
    def room(width: float, size: PageSize | None, title: str | None, caption: str, note: str = "") -> Room:
        """What a page has for its body; `InputError` where its words leave next to nothing of a given size."""
        if size is None:
            return Room(width - 2 * MARGIN, FREE_HEIGHT * width, given=False)
        words = FigureLayout.ruled(size.width, 0.0, title, caption, note).height
        high = size.height - words
        if high < LEAST_BODY:
            raise InputError(
                f"a picture of {size.width:g} × {size.height:g} inches leaves {max(high, 0):.1f} inches beside"
                f" its words; make it {words + LEAST_BODY:.1f} inches high or more, or wider"
            )
        return Room(size.width - 2 * MARGIN, high, given=True)

    def style(self, size: float, *, weight: str = "normal", faint: bool = False) -> dict[str, Any]:
        """Keywords of a text in the ink of the page, or in its grey."""
        return style(size, weight=weight, colour=self.theme.grey if faint else self.theme.ink)

    def write(self, left: float, top: float, text: str, **look: Any) -> None:
        """Text at a place of the page."""
        self.figure.text(left / self.width, 1 - top / self.height, text, **look)

    def axes(self, left: float, top: float, width: float, height: float, label: str, line: float = 0.5) -> "Axes":
        """Axes at a place of the page, without ticks, in a grey frame with lines of this many points."""
        place = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, label=label)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(linewidth=line, color=self.theme.grey)
        axes.set_facecolor(self.theme.paper)
        return axes

    def panel(self, left: float, top: float, width: float, view: Viewport, label: str) -> "Axes":
        """Axes for a map of this view, in metres of the sheet, one scale across and up."""
        axes = self.axes(left, top, width, width / view.aspect, label)
        axes.set_facecolor(self.theme.ground)
        axes.set_xlim(view.west, view.east)
        axes.set_ylim(view.south, view.north)
        axes.set_autoscale_on(False)
        axes.set_aspect("equal")
        for spine in axes.spines.values():
            spine.set_zorder(5)
        return axes


def paged(
    theme: Theme | str, size: PageSize | tuple[float, float] | None, width: float, least: float = NARROWEST
) -> tuple[Theme, PageSize | None]:
    """The theme and the size of a picture; `InputError` where either, or its width in inches, cannot be."""
    if not (isinstance(width, int | float) and least <= width <= WIDEST):
        raise InputError(
            f"a picture is {least:g} to {WIDEST:g} inches wide (of {DPI} pixels each); found {width!s:.20}"
        )
    return (
        theme if isinstance(theme, Theme) else theme_named(theme),
        None if size is None else PageSize.of(size),
    )


def style(size: float, *, weight: str = "normal", colour: str = INK) -> dict[str, Any]:
    """Keywords of a text: `$` and `_` are letters, not formulas, whatever the user's settings are."""
    return {
        "family": FAMILY,
        "size": size,
        "weight": weight,
        "color": colour,
        "parse_math": False,
        "usetex": False,
        "linespacing": LEADING,
    }


@lru_cache(maxsize=4096)
def width(text: str, size: float, weight: str = "normal") -> float:
    """Inches that a line of text takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FAMILY, size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) * POINT


def wrapped(text: str, inches: float, size: float, weight: str = "normal") -> list[str]:
    """The text in lines that fit; its own line breaks stay, a word longer than a line is broken."""
    lines = []
    for paragraph in text.splitlines():
        line = ""
        for word in paragraph.split():
            rest = word
            if line and width(f"{line} {rest}", size, weight) <= inches:
                line = f"{line} {rest}"
                continue
            if line:
                lines.append(line)
            while width(rest, size, weight) > inches and len(rest) > 1:
                fits = next(n for n in range(len(rest) - 1, 0, -1) if n == 1 or width(rest[:n], size, weight) <= inches)
                lines.append(rest[:fits])
                rest = rest[fits:]
            line = rest
        lines.append(line)
    return lines


def height(lines: int, size: float) -> float:
    """Inches that some lines take."""
    return lines * size * LEADING * POINT


def encode(figure: "Figure", suffix: str = ".png") -> bytes:
    """The picture as PNG, SVG or PDF, with its title and caption as the file's title and description.

    The same figure always gives the same bytes: no date is in it, and no number drawn by chance.
    """
    words = {text.get_gid(): str(text.get_label()) for text in figure.texts}
    title, caption = words.get("title", ""), words.get("caption", "")
    metadata: dict[str, str | None]
    if suffix == ".png":
        metadata = {"Title": title, "Description": caption, "Software": "hazemap"}
    elif suffix == ".svg":
        metadata = {"Title": title, "Description": caption, "Creator": "hazemap", "Date": None}
    elif suffix == ".pdf":
        metadata = {"Title": title, "Subject": caption, "Creator": "hazemap", "CreationDate": None}
    else:
        raise InputError(f"a picture's file name must end in {', '.join(SUFFIXES)}; found {suffix!r}")
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context(SAME_BYTES):
        figure.savefig(
            content,
            format=suffix[1:],
            dpi=figure.dpi,
            facecolor=figure.get_facecolor(),
            bbox_inches=None,
            metadata={key: value for key, value in metadata.items() if value != ""},
        )
    return content.getvalue()


def save(figure: "Figure", path: str | Path) -> None:
    """Write the picture; the format is the path's suffix. A file that was there is replaced at once.

    `InputError` for another suffix, `FileError` where nothing can be written.
    """
    path = Path(path)
    write_whole(path, encode(figure, path.suffix.lower()))
