"""Maps that nobody tuned to, and others to learn from: two halves that were set apart before anything was measured.

`strange-development` is for understanding `auto` and for choosing its constants. `strange` is for reporting alone: a
constant that is chosen by it would make its page worthless.
"""

from hazemap.lab.compare.charts import ranking
from hazemap.lab.compare.practices import (
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
from hazemap.lab.compare.presets import Preset

HELD_OUT = (
    *("coast", "islands", "corridor", "spike", "checkerboard", "heavy-tail", "commuter-rings", "rivers", "streets"),
    *("villages", "gradient", "cascade", "half-empty", "campus"),
    *("uber/512", "accidents/512", "geolife/512", "austin/512", "america/512", "africa"),
)
"""Twenty families: fourteen made up, six public."""

LATER = (
    *("farmsteads", "festival", "mesh", "parcels", "pond"),
    *("spiral", "terraces", "stations", "donut", "allotments", "homesteads"),
    *("rounded", "stops"),
)
"""Families to learn from that were made up later: five of the kinds of those held out on which `auto` had lost, six
that served to measure `auto` once, when it was an earlier version, and two that look even from afar and are not."""

DEVELOPMENT = (
    *("lakes", "bay", "two-towns", "patchwork", "highways", "hill-country", "dust", "spikes", "band", "crescent"),
    *LATER,
    *("san-francisco/512", "gowalla/512", "tokyo/512", "new-york/512"),
)
"""Twenty-three other families, made up, and four public maps: constants may be chosen by these and those of `quick`."""

FRESH = ("delta", "suburb", "frontier", "hedgerows", "camps", "clusters")
"""Six families made up after the last change but one of `auto`, and measured once for each."""

BEFORE = Method("auto before", "auto", changes=(("second_look", None),))
"""The default as it was before it looked again at maps that look even."""

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
STRANGE_FRESH = Preset(
    "strange-fresh",
    "six families that were made up last, ε 0.1, 0.3, 0.5",
    FRESH,
    METHODS,
    EPSILONS,
    5,
    ("mre", "l1"),
    figures=(("strange-fresh", ranking("mre", "How wrong are counts in rectangles?")),),
)
STRANGE_DEVELOPMENT = Preset(
    "strange-development",
    "twenty-seven maps to learn from, ε 0.1, 0.3, 0.5",
    DEVELOPMENT,
    METHODS,
    EPSILONS,
    5,
    ("mre", "l1"),
    figures=(("strange-development", ranking("mre", "How wrong are counts in rectangles?")),),
)

PRESETS = (STRANGE, STRANGE_DEVELOPMENT, STRANGE_FRESH)
