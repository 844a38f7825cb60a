"""Methods that users select by name. One entry in `BUILT_IN` publishes an algorithm; plug-ins bring their own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.count_min_tree import CountMin
from hazemap.algorithms.dense_emd_pyramid import DensePyramid
from hazemap.algorithms.htf_plus import HTFPlus
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.algorithms.published.adaptive_hierarchical_histogram import AdaptiveHierarchicalHistogram
from hazemap.algorithms.published.emd_pyramid import PublishedPyramid
from hazemap.algorithms.published.hierarchical_histogram import HB, Geometric, Hierarchical
from hazemap.algorithms.published.htf import HTF
from hazemap.algorithms.published.kd_tree import KDTree
from hazemap.algorithms.published.laplace_histograms import LaplaceClip, TopCells
from hazemap.algorithms.published.privlet import Privlet
from hazemap.algorithms.published.privtree import PrivTree
from hazemap.algorithms.published.uniform_and_adaptive_grid import AdaptiveGrid, UniformGrid
from hazemap.algorithms.single_level import FittedLevel, Flat
from hazemap.algorithms.sparse_emd_pyramid import Pyramid
from hazemap.algorithms.trees_within_districts import TreesWithinDistricts
from hazemap.cellmap import Reading
from hazemap.errors import InputError


class CellKind(Enum):
    """The kinds of cells that a method may be asked to cut."""

    SQUARES = "squares of a quadtree"
    HEXAGONS = "H3 hexagons"
    DISTRICTS = "districts"
    DISTRICT_SQUARES = "districts, and squares inside them"


SQUARES, USUAL = (CellKind.SQUARES,), (CellKind.SQUARES, CellKind.HEXAGONS)
EVERYWHERE = (*USUAL, CellKind.DISTRICTS)


@dataclass(frozen=True)
class Parameter:
    """What may follow a method's name, as in NAME:WORD: the field it sets, the texts it may be and how to read them."""

    word: str
    field: str
    pattern: str
    value: Callable[[str], Any] = int


LEVEL = Parameter("LEVEL", "level", "[0-9]{1,2}")
CELLS = Parameter("CELLS", "kept", "[1-9][0-9]{0,4}")
PERCENT = Parameter("PERCENT", "kept", r"100|[0-9]{1,2}(?:\.[0-9]{1,6})?", lambda text: Fraction(text) / 100)
PEOPLE = Parameter("PEOPLE", "dynamic_below", "[1-9][0-9]{0,10}")


@dataclass(frozen=True)
class NamedMethod:
    """A method by its name: all that the command line, specifications, campaigns and files need to know of it.

    `build` makes the algorithm from `tree`, `bounding=` and, if it is `levelled`, `level=`; a `parameter` is passed
    on under the name of its field. `cells` are the kinds of cells that it cuts. `types` are the classes beside
    hazemap's own that its files hold: the algorithm's, which is `build` unless you say otherwise, and those of trees
    and encoders that come with it.

    >>> NamedMethod("flat", Flat, levelled=True, parameter=LEVEL).spellings
    ('flat', 'flat:LEVEL')
    """

    name: str
    build: Callable[..., MethodOfBox]
    levelled: bool = False
    parameter: Parameter | None = None
    cells: tuple[CellKind, ...] = USUAL
    types: tuple[type, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9+-]*", self.name):
            raise InputError(
                f"a method's name may contain a-z, 0-9, + and -, and must begin with a letter; found {self.name!r}"
            )
        if self.parameter is not None and not isinstance(self.parameter, Parameter):
            raise InputError(
                f"the parameter of the method {self.name} must be a Parameter, such as LEVEL or "
                f'Parameter("CELLS", "fullest", "[1-9][0-9]*"); found {self.parameter!r:.80}'
            )
        if not self.types and isinstance(self.build, type):
            object.__setattr__(self, "types", (self.build,))
        if not self.types or not all(is_dataclass(each) for each in self.types):
            raise InputError(f"the method {self.name} must list in `types` the dataclasses that its files hold")

    @property
    def spellings(self) -> tuple[str, ...]:
        """How it is asked for."""
        return (self.name, f"{self.name}:{self.parameter.word}") if self.parameter else (self.name,)

    def argument(self, text: str) -> str | None:
        """What a text gives for the parameter, '' for the bare name; None if the text does not spell this method."""
        name, colon, argument = text.partition(":")
        if name != self.name or (colon and not (self.parameter and re.fullmatch(self.parameter.pattern, argument))):
            return None
        return argument


_levelled = partial(NamedMethod, levelled=True, parameter=LEVEL)

BUILT_IN: dict[str, NamedMethod] = {
    method.name: method
    for method in (
        NamedMethod("auto", Adaptive, cells=EVERYWHERE),
        NamedMethod("adaptive", Adaptive, cells=EVERYWHERE),
        NamedMethod("adaptive-grid", AdaptiveGrid, cells=SQUARES),
        NamedMethod("uniform-grid", UniformGrid, cells=SQUARES),
        NamedMethod("fitted-level", FittedLevel),
        NamedMethod("kd-tree", KDTree, cells=SQUARES),
        NamedMethod("kd-tree-uniform", KDTree.uniform, cells=SQUARES, types=(KDTree,)),
        NamedMethod("kd-hybrid", KDTree.hybrid, cells=SQUARES, types=(KDTree,)),
        NamedMethod("privtree", PrivTree),
        NamedMethod("htf", partial(HTF, reading=Reading.UNBIASED), cells=SQUARES, types=(HTF,)),
        NamedMethod("htf+", HTFPlus, cells=SQUARES),
        NamedMethod("prefix", AdaptiveHierarchicalHistogram),
        NamedMethod("total", partial(Flat, level=0), types=(Flat,)),
        NamedMethod("sketch", CountMin),
        NamedMethod("pyramid", Pyramid, parameter=CELLS),
        NamedMethod("pyramid-published", PublishedPyramid, parameter=CELLS),
        NamedMethod("dense-pyramid", DensePyramid),
        _levelled("flat", Flat, cells=EVERYWHERE),
        _levelled("hierarchical", Hierarchical, cells=EVERYWHERE),
        _levelled("geometric", Geometric, cells=EVERYWHERE),
        _levelled("hb", HB.published, types=(HB,)),
        _levelled("hb-least", HB.least, types=(HB,)),
        _levelled("privlet", Privlet),
        _levelled("singular", Flat),
        _levelled("laplace-clip", LaplaceClip),
        NamedMethod("top", TopCells, levelled=True, parameter=PERCENT),
        NamedMethod("national", TreesWithinDistricts, parameter=PEOPLE, cells=(CellKind.DISTRICT_SQUARES,)),
    )
}
"""hazemap's own methods."""
