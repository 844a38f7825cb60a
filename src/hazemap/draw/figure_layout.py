"""A sheet of paper measured in inches from its top left corner: title above, panels, caption beneath."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hazemap.draw.text_layout import GREY, height, style, wrapped
from hazemap.draw.viewport import Viewport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
MARGIN = 0.3
TITLE, NOTE, CAPTION = 15.0, 8.0, 7.0  # points
GROUND = "#eceef0"  # where no cell is


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

    def axes(self, left: float, top: float, width: float, height: float, label: str) -> "Axes":
        """Bare axes at a place of the page."""
        place = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, label=label)
        axes.set_xticks([])
        axes.set_yticks([])
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
            spine.set(linewidth=0.5, color=GREY, zorder=5)
        return axes
