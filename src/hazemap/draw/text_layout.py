"""Words on a picture: one family of fonts, plain text, lines broken where they end."""

from functools import lru_cache
from typing import Any

FAMILY = "DejaVu Sans"  # ships with matplotlib, so that a picture looks the same everywhere
INK = "#22252b"
GREY = "#6a6f78"
LEADING = 1.35  # line height in font sizes
POINT = 1 / 72  # inches


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
