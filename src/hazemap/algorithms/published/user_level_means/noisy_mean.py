"""What every method for the mean of a value returns."""

from typing import NamedTuple


class Mean(NamedTuple):
    """A private mean, in units of the value.

    `stddev` is the standard deviation of its noise. What grouping and clipping add is not in it, nor does any answer
    say how much that is; it is NaN where the noise depends on how people's means lie.
    """

    value: float
    stddev: float
