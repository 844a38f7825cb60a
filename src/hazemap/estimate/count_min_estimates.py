"""The numbers of cells read off a sketch."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.cells import Cells
from hazemap.encoders import CountMinSketch


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
