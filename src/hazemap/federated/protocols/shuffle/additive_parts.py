"""A vector in parts, each of which is uniform, and all of which but one are independent: modulo 2^bits."""

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import Words, reduced, word
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream


def split(stream: Stream, vector: Ints, bits: int, parts: int) -> Words:
    """Parts of a vector, [parts, size], whose sum modulo 2^bits is the vector: all but the last are uniform.

    O(parts · size).

    >>> parts = split(Stream.from_os(), np.array([5, -1]), 8, 4)
    >>> parts.shape, (parts.sum(axis=0) % 256).tolist()
    ((4, 2), [5, 255])
    """
    if parts < 2:
        raise InputError(f"a vector is split in 2 parts or more, not in {parts}")
    kind = word(bits)
    made = np.empty((parts, len(vector)), dtype=kind)
    words = stream.words((parts - 1) * len(vector)).reshape(parts - 1, -1)
    made[:-1] = words >> np.uint64(64 - bits)
    rest = reduced(vector, bits) - made[:-1].sum(axis=0, dtype=kind)
    made[-1] = rest & kind((1 << bits) - 1)
    return made
