"""Which connections of a server are open, what they hold in memory, and which of them end where there is no room.

There is always room for one more, at the cost of one that keeps the server waiting: of the address that has the most of
these, the one that has waited longest. So whoever fills a server with connections, or with bytes, has to do it again in
the time that an honest request takes, or from as many addresses as there is room for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from ipaddress import ip_address, ip_network
from typing import Final, Protocol

from hazemap.federated.service.server_metrics import ServerMetrics

FREED: Final = 8
"""Of the room for bodies this part is freed at a time, so that who is to end is looked for seldom."""


class OpenConnection(Protocol):
    """What has to be known of a connection."""

    held: int
    """bytes of bodies that are in memory"""

    @property
    def peer(self) -> str:
        """The address at the other end of the line."""

    @property
    def place(self) -> str:
        """What counts as the address that asks: behind a trusted proxy, the one that it names."""

    @property
    def known(self) -> bool:
        """Whether who asks has shown a token that is good."""

    def end(self, limit: str) -> None:
        """Close it, because this limit was reached."""


class OpenConnections:
    """All of them. `connections` may be open, `per_address` from one that is no proxy, and hold `room` bytes."""

    def __init__(
        self, connections: float, per_address: float, room: float, counts: ServerMetrics, proxies: Sequence[str] = ()
    ) -> None:
        self._most, self._per_address, self._room, self._counts = connections, per_address, room, counts
        self._proxies = [ip_network(proxy, strict=False) for proxy in proxies]
        self._from: Counter[str] = Counter()
        self._idle: dict[OpenConnection, None] = {}
        self._waiting: dict[str, dict[OpenConnection, None]] = {}
        self.held = 0
        """Bytes of bodies that are in memory, of all connections."""

    def admit(self, one: OpenConnection) -> str | None:
        """Count it; the name of the limit that is reached where none of the others can end for it."""
        self._from[one.peer] += 1
        self._counts.connections += 1
        if self._from[one.peer] > self._per_address and not self._is_proxy(one):
            idle = next((each for each in self._idle if each.peer == one.peer), None)
            if not self._end(idle or _slowest(self._waiting.get(one.peer, {})), "connections_per_address"):
                return "connections_per_address"
        if self._counts.connections > self._most:
            most = max(self._waiting.values(), key=len, default={})
            if not self._end(next(iter(self._idle), None) or _slowest(most), "connections"):
                return "connections"
        return None

    def wait(self, one: OpenConnection) -> None:
        """The other side has to go on: with a head, with a body, or with reading an answer."""
        self._idle.pop(one, None)
        self._waiting.setdefault(one.peer, {}).setdefault(one)

    def rest(self, one: OpenConnection) -> None:
        """It waits for another request, which need not come."""
        self.work(one)
        self._idle[one] = None

    def work(self, one: OpenConnection) -> None:
        """The server has to go on: it does not end for others."""
        self._idle.pop(one, None)
        if (own := self._waiting.get(one.peer)) is not None:
            own.pop(one, None)
            if not own:
                del self._waiting[one.peer]

    def take(self, one: OpenConnection, size: int) -> None:
        """So many bytes of a body have come. Others end where there is no room for them, or this one."""
        one.held += size
        self.held += size
        if self.held > self._room:
            self._free()
            if self.held > self._room:
                one.end("room")

    def give_back(self, one: OpenConnection, size: int) -> None:
        """So many bytes are in memory no more."""
        one.held -= size
        self.held -= size

    def gone(self, one: OpenConnection) -> None:
        """It is closed."""
        self.work(one)
        self.give_back(one, one.held)
        self._counts.connections -= 1
        self._from[one.peer] -= 1
        if self._from[one.peer] <= 0:
            del self._from[one.peer]

    def _is_proxy(self, one: OpenConnection) -> bool:
        """Whether there are many addresses behind it."""
        try:
            address = ip_address(one.peer)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def _free(self) -> None:
        """End what keeps the server waiting while it holds most, until a part of the room is free. O(n log n)."""
        for known in (False, True):
            by_place: defaultdict[str, list[OpenConnection]] = defaultdict(list)
            for own in self._waiting.values():
                for each in own:
                    if each.held and each.known is known:
                        by_place[each.place].append(each)
            most = [(-sum(each.held for each in held), place, 0) for place, held in by_place.items()]
            heapify(most)
            while most and self.held > self._room * (FREED - 1) / FREED:
                total, place, at = most[0]
                if at == len(by_place[place]):
                    break
                victim = by_place[place][at]
                heapreplace(most, (total + victim.held, place, at + 1))
                self._end(victim, "room")

    def _end(self, one: OpenConnection | None, limit: str) -> bool:
        """End it, if there is one."""
        if one is None:
            return False
        self.work(one)
        self.give_back(one, one.held)
        one.end(limit)
        return True


def _slowest(waiting: Iterable[OpenConnection]) -> OpenConnection | None:
    """The one that has waited longest; who has shown a token goes last."""
    first = None
    for each in waiting:
        if not each.known:
            return each
        first = first or each
    return first
