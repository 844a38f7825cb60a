"""Messages of a batch in an order that says nothing, in pieces that can be stored and fetched one by one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from hazemap.privacy.random_permutation import in_any_order
from hazemap.privacy.random_stream import Stream

PIECE: Final = 1 << 20
"""Bytes of a piece, or one message if it is longer."""


def permuted_pieces(sent: Sequence[bytes], size: int, stream: Stream) -> list[bytes]:
    """What people sent, each some messages of `size` bytes, with all messages in an order drawn uniformly.

    Memory is twice that of the messages, and 40 bytes a message for the order. O(bytes + n log n).

    >>> pieces = permuted_pieces([b"aabb", b"ccdd"], 2, Stream.from_os())
    >>> sorted(b"".join(pieces).decode())
    ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']
    """
    every = np.frombuffer(b"".join(sent), dtype=np.uint8).reshape(-1, size)
    del sent  # nobody else has it, and it is as large
    order, step = in_any_order(stream, len(every)), max(1, PIECE // size)
    return [every[order[start : start + step]].tobytes() for start in range(0, len(order), step)]
