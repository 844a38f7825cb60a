"""Uniform permutations: every order is as likely as any other, exactly."""

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream


def in_any_order(stream: Stream, number: int) -> Ints:
    """A permutation of 0 … number − 1: the order of random words, all drawn again if two are equal.

    Given that no two are equal, every order of them is equally likely. Two of n are equal with a chance of n²/2⁶⁵.
    O(n log n).

    >>> sorted(in_any_order(Stream.from_os(), 4).tolist())
    [0, 1, 2, 3]
    """
    if number < 0:
        raise InputError(f"there is no permutation of {number} things")
    while True:
        words = stream.words(number)
        order = np.argsort(words, kind="stable")
        if not (np.diff(words[order]) == 0).any():
            return order
