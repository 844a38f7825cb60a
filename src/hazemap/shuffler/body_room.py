"""How many bytes of what people send are in memory at a time, whoever sends them and however slowly."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from hazemap.errors import Unreachable

ROOM: Final = 256 << 20
"""Bytes of requests that are under way, in all."""
SHARES: Final = 4
"""One address has this part of them."""
AGAIN: Final = 10
"""Seconds after which a person who found no room may try again."""


class BodyRoom:
    """Room for what is sent: a request has its own for as long as it is under way, or is not read.

    Where everybody has one address, as behind a proxy, `shares` is infinite. One request is always let in.

    >>> room = BodyRoom(10, 1)
    >>> with room.taken("192.0.2.1", 8), room.taken("192.0.2.2", 8):
    ...     pass
    Traceback (most recent call last):
    ...
    hazemap.errors.Unreachable: too much is sent here at once: try again in a moment
    """

    def __init__(self, most: int = ROOM, shares: float = SHARES) -> None:
        self.most, self._each = most, inf if shares == inf else most / shares
        self.under_way = 0
        self._of: Counter[str] = Counter()

    @contextmanager
    def taken(self, place: str, size: int) -> Iterator[None]:
        """While a request of so many bytes is under way; `Unreachable` where there is no room for it."""
        if (self.under_way and self.under_way + size > self.most) or (
            self._of[place] and self._of[place] + size > self._each
        ):
            raise Unreachable("too much is sent here at once: try again in a moment", AGAIN)
        self.under_way += size
        self._of[place] += size
        try:
            yield
        finally:
            self.under_way -= size
            self._of[place] -= size
            if not self._of[place]:
                del self._of[place]
