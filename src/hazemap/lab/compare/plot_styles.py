"""Styles of methods in figures: a colour for each family, a marker and a dash for each method."""

from typing import Literal, NamedTuple

GREY, RED, BLUE, PINK, ORANGE, GREEN, SKY = (
    *("#6a6f78", "#c8480a", "#0067a8", "#b4588e", "#c98a00", "#00815c", "#3d9fd0"),
)
"""Okabe and Ito's colours (2008), darkened for thin lines on white: told apart with any colour blindness."""


Dash = Literal["-", "--", "-.", ":", ""]


HTF_LOW, HTF_HIGH = "HTF, ε′ = 0.0005", "HTF, ε′ = 0.001"
"""HTF with so much ε for the cuts of a level, as in the paper."""


class PlotStyle(NamedTuple):
    """Colour, marker and dash; `strong` methods are drawn thicker and above the others."""

    colour: str
    marker: str
    dash: Dash
    strong: bool = False


LENGTHS = ("median", "K√m", "m = 114", "worst case")
ARRAYS, LEVY = (tuple(f"{name}, {length}" for length in LENGTHS) for name in ("Array-Averaging", "Levy"))
"""Means of arrays, by how their length is chosen."""

_QUADTREES = ("quadtree (geometric)", "quadtree (uniform)")

FAMILIES: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    (
        GREY,
        False,
        (
            "singular",
            "one count",
            "Laplace, clipped",
            "top 0.01 %",
            "top 0.001 %",
            "the best grid of one sample, no privacy",
            "plain Laplace",
            "everybody stays",
            "flat",
        ),
    ),
    (RED, False, ("UG", "AG", "4-ary", "ε-dependent Quantile, K√m", "ε-dependent Quantile, median")),
    (BLUE, False, (*_QUADTREES, "HB", "prefix tree", "PrivTree", "pyramid (published)", "binary", *ARRAYS)),
    (PINK, False, ("Privlet", "DAWA", "17-ary", *(f"Quantile, {length}" for length in LENGTHS))),
    (ORANGE, False, ("kd-tree (geometric)", "kd-tree (uniform)", "kd-tree (hybrid)", "HTF", HTF_LOW, HTF_HIGH, *LEVY)),
    (GREEN, True, ("adaptive", "auto", "pyramid", "HTF+", "HB+", "balanced", "CHOP-USER", "chosen")),
)
"""Colour, whether it is ours, and the methods of each family by name."""

_MARKERS = "osD^vP"
_ROUND = (SKY, GREY, ORANGE, PINK, BLUE, RED)


def plot_style(name: str) -> PlotStyle:
    """The mark of a method; one that is not in a family gets one by the letters of its name, always the same.

    >>> plot_style("AG").colour == plot_style("UG").colour, plot_style("AG").marker == plot_style("UG").marker
    (True, False)
    """
    for colour, strong, names in FAMILIES:
        if name in names:
            at = names.index(name)
            return PlotStyle(colour, _MARKERS[at % len(_MARKERS)], _dash(at), strong)
    turn = sum(name.encode())
    return PlotStyle(_ROUND[turn % len(_ROUND)], _MARKERS[turn % len(_MARKERS)], _dash(turn))


def _dash(at: int) -> Dash:
    dashes: tuple[Dash, ...] = ("-", "--", "-.", ":")
    return dashes[at % len(dashes)]
