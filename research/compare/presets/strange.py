"""Maps that nobody tuned to, and others to learn from: two halves that were set apart before anything was measured.

`strange-development` is for understanding `auto` and for choosing its constants. `strange` is for reporting alone: a
constant that is chosen by it would make its page worthless.
"""

from fractions import Fraction

from hazemap.compare.compared_methods import (
    AG,
    AUTO,
    HB,
    HTF,
    KD_GEOMETRIC,
    KD_HYBRID,
    KD_UNIFORM,
    ONE_COUNT,
    PRIVLET,
    PRIVTREE,
    QUADTREE,
    QUADTREE_UNIFORM,
    SINGULAR,
    UG,
    Method,
)
from hazemap.compare.figures import ranking
from hazemap.compare.presets import Preset

HELD_OUT = (
    *("coast", "islands", "corridor", "spike", "checkerboard", "heavy-tail", "commuter-rings", "rivers", "streets"),
    *("villages", "gradient", "cascade", "half-empty", "campus"),
    *("uber/512", "accidents/512", "geolife/512", "austin/512", "america/512", "africa"),
)
"""Twenty families: fourteen made up, six public."""

DEVELOPMENT = (
    *("lakes", "bay", "two-towns", "patchwork", "highways", "hill-country", "dust", "spikes", "band", "crescent"),
    *("san-francisco/512", "gowalla/512", "tokyo/512", "new-york/512"),
)
"""Ten other families, made up, and four public maps; constants may be chosen by these and by the maps of `quick`."""

BEFORE = Method(
    "auto before",
    "auto",
    changes=(
        ("first_cells", 256),
        ("deciding", (Fraction(15, 1000), Fraction(4, 100), Fraction(10, 100))),
        ("fullness", (20, 6, 6)),
        ("coarser", ((4, Fraction(1, 100)), (64, Fraction(95, 1000)))),
        ("smooth", None),
        ("sizing", None),
    ),
)
"""The default as it was before these maps were made."""

METHODS = (
    *(UG, AG, QUADTREE, QUADTREE_UNIFORM, KD_GEOMETRIC, KD_UNIFORM, KD_HYBRID, PRIVLET, HB, HTF, PRIVTREE),
    *(SINGULAR, ONE_COUNT, AUTO, BEFORE),
)
EPSILONS = ("0.1", "0.3", "0.5")

STRANGE = Preset(
    "strange",
    "twenty families of maps that nothing was tuned to, ε 0.1, 0.3, 0.5",
    HELD_OUT,
    METHODS,
    EPSILONS,
    5,
    ("mre", "l1"),
    figures=(("strange", ranking("mre", "How wrong are counts in rectangles?")),),
)
STRANGE_DEVELOPMENT = Preset(
    "strange-development",
    "fourteen maps to learn from, ε 0.1, 0.3, 0.5",
    DEVELOPMENT,
    METHODS,
    EPSILONS,
    5,
    ("mre", "l1"),
    figures=(("strange-development", ranking("mre", "How wrong are counts in rectangles?")),),
)

PRESETS = (STRANGE, STRANGE_DEVELOPMENT)
