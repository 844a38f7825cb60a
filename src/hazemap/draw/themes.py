"""Light and dark pictures: the colours of paper, ink, ground and scales, which colour-blind people can tell apart."""

from dataclasses import dataclass

from hazemap.errors import InputError

# Even steps of lightness (OKLab L 0.98 to 0.20) from paper over orange and red to violet: the order is
# readable in grey and with any colour blindness.
_DENSITIES = (
    *("#fcf9f0", "#eedeb6", "#eabe7a", "#e99846", "#e56e30", "#d54334"),
    *("#b32b47", "#8d1d4e", "#631850", "#3c1346", "#1b0c31"),
)


@dataclass(frozen=True)
class Theme:
    """The colours of a picture; `densities` go from nobody to most people, `errors` from sure to unsure.

    >>> theme_named("dark").paper, theme_named("light").densities == theme_named("dark").densities[::-1]
    ('#14161a', True)
    """

    name: str
    paper: str
    ink: str
    grey: str
    """Of words that matter less, of frames and ticks."""
    ground: str
    """Where no cell is."""
    land: str
    water: str
    shore: str
    river: str
    border: str
    state: str
    line: str
    """Of a user's own lines."""
    halo: str
    """Around lines and the names of places."""
    unknown: str
    """A cell of which no value is published."""
    densities: tuple[str, ...]
    errors: tuple[str, ...]
    on_few: tuple[float, ...]
    """Outlines of cells in the first half of `densities`: red, green and blue, 0 to 1."""
    on_many: tuple[float, ...]
    band: str
    """Of charts: intervals and bars."""
    curve: str
    """Of charts: the numbers themselves."""


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#22252b",
    grey="#6a6f78",
    ground="#eceef0",
    land="#eceef0",
    water="#d3e0e8",
    shore="#3d6478",
    river="#6f9fbd",
    border="#54425c",
    state="#877b8c",
    line="#1c2733",
    halo="#ffffff",
    unknown="#d7d9dc",
    densities=_DENSITIES,
    errors=("#004654", "#1f7b87", "#5fb0b4", "#aed7d5", "#f3f1ea"),
    on_few=(0.17, 0.11, 0.09),
    on_many=(1.0, 0.96, 0.9),
    band="#e99846",
    curve="#8d1d4e",
)

DARK = Theme(
    name="dark",
    paper="#14161a",
    ink="#e9ebee",
    grey="#9ba2ad",
    ground="#2a2e35",
    land="#2a2e35",
    water="#1a2833",
    shore="#8fb2c6",
    river="#5f8fae",
    border="#c3b3c9",
    state="#94879a",
    line="#e3ebf2",
    halo="#0d0f12",
    unknown="#4a4f58",
    densities=_DENSITIES[::-1],
    errors=("#e2f4f1", "#93d0cb", "#4fa0a4", "#28666f", "#252a30"),
    on_few=(1.0, 0.96, 0.9),
    on_many=(0.17, 0.11, 0.09),
    band="#9a5a1e",
    curve="#f3b765",
)

THEMES = (LIGHT, DARK)


def theme_named(name: str) -> Theme:
    """The theme of a name; `InputError` for another."""
    for theme in THEMES:
        if theme.name == name:
            return theme
    raise InputError(f"a picture's theme is {' or '.join(theme.name for theme in THEMES)}; found {name!s:.20}")
