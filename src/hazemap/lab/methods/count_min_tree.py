"""A deep tree whose levels are sketched (count-min), so that few numbers tell which cells are worth counting."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.built_in_methods import BAGDASARYAN, SMALL
from hazemap.algorithms.count_queries import LEAST_NOISE, mapped, positions
from hazemap.algorithms.named_methods import NamedMethod, Setting
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class CountMin:
    """A hierarchy of count-min sketches decides on the cells with a part of the budget; the rest counts them.

    All levels but the root's are asked in one vector: those of no more cells than a sketch has buckets are counted,
    each of the others is a `CountMinSketch` of `rows` × `width`. So a person sends about rows · width numbers a level,
    however many cells it has, and the noise grows with the rows, as each adds to what a person moves. From the top a
    cell is cut into its children while its number exceeds `fullness` standard errors, of its own and of what they will
    be counted with, by the same measure as in `Adaptive`.

    Bagdasaryan et al. (2022, section 5.1) take the numbers too from the sketches: that is `decided` with a share of
    everything. Such numbers are biased, by collisions and by their part in the choice of cells, so here the cells are
    counted once they are known.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> CountMin(Quadtree.world(depth=10), width=1000).question.encoder.size
    11364
    """

    tree: Tree
    width: int = 2000
    rows: int = 2
    bounding: Bounding = AtMostRows(1)
    deciding: Fraction = Fraction(1, 2)
    fullness: int = 6
    key: int = 0
    reading: Reading = Reading.SHRUNK
    disclosure: ClassVar[Disclosure] = counted(Learned.FINENESS)

    def __post_init__(self) -> None:
        if not 0 < self.deciding < 1 or self.fullness < 1:
            raise InputError(
                "the part of the budget that sketches decide with must be between 0 and "
                "1, and a cell must hold somebody"
            )

    @property
    def question(self) -> Query:
        """What is asked first."""
        return Query(Concatenation(self._levels(), (1,) * self.tree.depth), self.deciding)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The sketches, then the cells."""
        first = self.question
        answer = yield first
        probe = Counts(Leaves(self.tree, self.tree.root), self.bounding)
        noise = max(prices.stddev(probe, 1 - self.deciding) / self.bounding.unit, LEAST_NOISE)
        found, _ = self.decided(answer, noise)
        return (yield from mapped(found, self.bounding, self.reading, 1 - self.deciding, [(first, answer)]))

    def decided(self, answer: Answer, noise: float) -> tuple[Leaves, Floats]:
        """Cells that hold about `fullness` times the noise, and what the sketches say of each: a biased number."""
        starts = np.cumsum([0, *(part.size for part in self._levels())])
        stddev = float(answer.stddev.max()) / self.bounding.unit
        todo = Leaves.at_level(self.tree, 1).cells
        cells, values = list[Cells](), list[Floats]()
        for level, part in enumerate(self._levels(), 1):
            numbers, error = _numbers(part, answer.sums[starts[level - 1] : starts[level]], todo, stddev)
            children = self.tree.children(todo) if level < self.tree.depth else todo[:0]
            fan_out = max(len(children) / max(len(todo), 1), 1.0)
            cut = numbers > sqrt(fan_out) * self.fullness * max(noise, error)
            cut &= level < self.tree.depth
            cells.append(todo[~cut])
            values.append(numbers[~cut])
            todo = self.tree.children(todo[cut]) if cut.any() else todo[:0]
        return Leaves(self.tree, np.concatenate(cells)), np.concatenate(values)

    def _levels(self) -> tuple[Encoder, ...]:
        """Each level, counted or sketched."""
        parts, cells = list[Encoder](), self.tree.root
        for level in range(1, self.tree.depth + 1):
            if len(cells) <= self.rows * self.width:
                cells = self.tree.children(cells)
            few = len(cells) <= self.rows * self.width
            sketch = CountMinSketch(self.tree, level, self.width, self.rows, self.bounding, self.key)
            parts.append(Counts(Leaves(self.tree, cells), self.bounding) if few else sketch)
        return tuple(parts)


def _numbers(part: Encoder, sums: NDArray[np.int64], cells: Cells, stddev: float) -> tuple[Floats, float]:
    """What a level's part says of some of its cells, and its standard error."""
    if isinstance(part, CountMinSketch):
        # Buckets differ by noise and by what else fell into them: so do the errors of a row.
        spread = float(sums.reshape(part.rows, part.width).std(axis=1).mean()) / part.bounding.unit
        return np.median(sketched(part, sums, cells), axis=0), spread / sqrt(part.rows)
    if isinstance(part, Counts) and isinstance(part.cells, Leaves):
        return sums[positions(cells, part.cells.cells)] / part.bounding.unit, stddev
    raise InputError(f"a level is either counted or sketched, not {type(part).__name__}")


def sketched(sketch: CountMinSketch, sums: NDArray[np.int64], cells: Cells) -> Floats:
    """What each row of a sketch says of some cells of its level, in what its rule counts; float64[rows, cells].

    A bucket holds a cell and, on average over hash functions, 1/width of everything else. So with the total T of the
    row, (width · bucket − T)/(width − 1) is unbiased over noise and hash (Deng and Rafiei 2007). Its error has two
    parts: noise of (nearly) that of a bucket, and collisions, Σ of the others' squares / width, which are heavy-tailed.
    The mean of the rows is unbiased; their median errs less where a few large cells collide with many small ones. The
    least row, of which the sketch has its name, is biased downward by noise.
    """
    rows = sums.reshape(sketch.rows, sketch.width)
    total = rows.sum(axis=1, keepdims=True)
    numbers: Floats = (sketch.width * sums[sketch.places(cells)] - total) / (sketch.width - 1) / sketch.bounding.unit
    return numbers


SKETCH = NamedMethod(
    "sketch",
    CountMin,
    what="count-min sketches find the cells of a deep tree, which are then counted",
    paper="Cormode and Muthukrishnan, The count-min sketch, 2005; " + BAGDASARYAN,
    settings=(
        Setting("width", "width", "buckets of a row", 1, 1 << 20),
        Setting("rows", "rows", "rows of a sketch", 1, 32),
        Setting("deciding", "deciding", "part of the budget for sketches", SMALL, Fraction(99, 100), part=True),
        Setting("fullness", "fullness", "standard errors above which a cell is cut", 1, 10**6),
    ),
)
