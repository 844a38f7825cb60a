"""A sheet of paper measured in inches from its top left corner: title above, panels, caption beneath.

Text is plain, in one family of fonts, and broken into lines that fit. `save` writes a sheet as a picture.
"""

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.atomic_write import write_whole
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
MARGIN = 0.3
TITLE, NOTE, CAPTION = 15.0, 8.0, 7.0  # points
GROUND = "#eceef0"  # where no cell is
FAMILY = "DejaVu Sans"  # ships with matplotlib, so that a picture looks the same everywhere
INK = "#22252b"
GREY = "#6a6f78"
LEADING = 1.35  # line height in font sizes
POINT = 1 / 72  # inches
SUFFIXES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, eq=False)
class FigureLayout:
    """A figure whose title and caption are set; the panels go between `top` and `bottom`."""

    figure: "Figure"
    width: float
    height: float
    top: float

    @classmethod
    def ruled(cls, width: float, body: float, title: str | None, caption: str, note: str = "") -> "FigureLayout":
        """A page as high as its title, a body of this height, its note and its caption need.

        The caption's artist has the gid `caption` and its unbroken text as label; those of title and note likewise.
        """
        from matplotlib.figure import Figure

        inner = width - 2 * MARGIN
        head = wrapped(title, inner, TITLE, "bold") if title else []
        said = wrapped(note, inner, NOTE)
        foot = wrapped(caption, inner, CAPTION)
        top = MARGIN + height(len(head), TITLE) + (0.08 if head else 0)
        between = height(len(said), NOTE) + (0.12 if said else 0)
        under = between + height(len(foot), CAPTION) + ((0.06 if said else 0.12) if foot else 0)
        total = top + body + under + MARGIN * 0.8
        page = cls(Figure(figsize=(width, total), dpi=DPI, facecolor="white"), width, total, top)
        for gid, lines, text, place, look in (
            ("title", head, title, MARGIN, style(TITLE, weight="bold")),
            ("note", said, note, top + body + 0.12, style(NOTE)),
            ("caption", foot, caption, top + body + between + (0.06 if said else 0.12), style(CAPTION, colour=GREY)),
        ):
            if lines:
                page.write(MARGIN, place, "\n".join(lines), gid=gid, label=text, va="top", **look)
        return page

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
            spine.set(linewidth=line, color=GREY)
        return axes

    def panel(self, left: float, top: float, width: float, view: Viewport, label: str) -> "Axes":
        """Axes for a map of this view, in metres of the sheet, one scale across and up."""
        axes = self.axes(left, top, width, width / view.aspect, label)
        axes.set_facecolor(GROUND)
        axes.set_xlim(view.west, view.east)
        axes.set_ylim(view.south, view.north)
        axes.set_autoscale_on(False)
        axes.set_aspect("equal")
        for spine in axes.spines.values():
            spine.set_zorder(5)
        return axes


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
    """The picture as PNG, SVG or PDF, with its title and caption as the file's title and description."""
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
    content = io.BytesIO()
    figure.savefig(
        content,
        format=suffix[1:],
        dpi=figure.dpi,
        facecolor="white",
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
