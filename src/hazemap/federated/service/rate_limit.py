"""How often strangers may try: so many times a minute from each address, in bounded memory."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from math import inf
from time import monotonic

REMEMBERED = 65_536
"""Addresses at one time. Beyond them the one that was silent longest is forgotten."""


def place_of(host: str | None) -> str:
    """What counts as one address: an IPv4 address, or the /64 that an IPv6 host usually has to itself.

    >>> place_of("2001:db8:1:2:3::4"), place_of("::ffff:192.0.2.1"), place_of("192.0.2.1:65000"), place_of(None)
    ('2001:db8:1:2::', '192.0.2.1', '192.0.2.1', '?')
    """
    text = (host or "?").partition("%")[0]
    if text.startswith("[") or text.count(":") == 1:  # some proxies name a port, too
        text = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return (host or "?")[:64]
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)


@dataclass(eq=False)
class RateLimit:
    """`most` events a minute from each address: a bucket of tokens that fills evenly.

    >>> limit = RateLimit(2, clock=lambda: 0.0)
    >>> [limit.taken("192.0.2.1") for _ in range(3)]
    [None, None, 30.0]
    """

    most: float = inf
    clock: Callable[[], float] = monotonic
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def taken(self, place: str, number: int = 1) -> float | None:
        """Take one, or more, where one is left: then others wait longer. Otherwise the seconds to wait. O(1)."""
        if (wait := self.wait(place)) is not None:
            return wait
        self.owe(place, number)
        return None

    def owe(self, place: str, number: int) -> None:
        """Take so many, whether they are left or not: what comes next waits for longer. O(1)."""
        level, now = self._level(place)
        self._levels[place] = level - number, now
        self._levels.move_to_end(place)
        if len(self._levels) > REMEMBERED:
            self._levels.popitem(last=False)

    def wait(self, place: str) -> float | None:
        """The seconds until one can be taken; `None` if it is now."""
        level, _ = self._level(place)
        return None if level >= 1 else (1 - level) * 60 / self.most

    def _level(self, place: str) -> tuple[float, float]:
        now = self.clock()
        level, then = self._levels.get(place, (self.most, now))
        return min(self.most, level + (now - then) * self.most / 60), now
