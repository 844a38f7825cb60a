"""What a task measures, as people write it: `count`, `sum:MAX`, `vector:LENGTH:MAX`, `histogram:CELLS`, …"""

from math import isqrt
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    VdafConfiguration,
)

MEASUREMENTS: Final = "count, sum:MAX, vector:LENGTH:MAX, histogram:CELLS, bits:LENGTH:MOST, prefixes:BITS"
_PARTS: Final = {"count": 0, "sum": 1, "vector": 2, "histogram": 1, "bits": 2, "prefixes": 1}


def measurement_of(text: str) -> VdafConfiguration:
    """The VDAF for a measurement; proofs are cut into about as many chunks as each is long, which keeps them short.

    >>> measurement_of("histogram:4096")
    HistogramConfiguration(length=4096, chunk_length=64)
    """
    name, *parts = text.split(":")
    if len(parts) != _PARTS.get(name, -1) or not all(part.isascii() and part.isdecimal() for part in parts):
        raise InputError(f"a task measures one of {MEASUREMENTS}; found {text!r:.60}")
    if any(len(part) > 20 for part in parts):
        raise InputError(f"a number of {text!r:.60} is too large")
    numbers = [int(part) for part in parts]
    match name:
        case "count":
            return CountConfiguration()
        case "sum":
            return SumConfiguration(*numbers)
        case "vector":
            length, most = numbers
            return SumVecConfiguration(length, most, _chunk(length * most.bit_length()))
        case "histogram":
            return HistogramConfiguration(numbers[0], _chunk(numbers[0]))
        case "bits":
            length, most = numbers
            return MultihotConfiguration(length, _chunk(length + most.bit_length()), most)
        case _:
            return Poplar1Configuration(*numbers)


def _chunk(length: int) -> int:
    return max(1, isqrt(length))
