"""Two servers of one database: one serves, the other waits for its end and then goes on where it was.

What decides is the lock of the database alone. A server that lost it, because its connection to PostgreSQL broke, can
write no more; it notices at its next write, of which there is one at least every few seconds, and ends.
"""

import logging
from collections.abc import Callable
from math import inf
from threading import Event, Thread
from time import monotonic, sleep
from typing import TypeVar

from hazemap.errors import StoreError
from hazemap.federated.service.databases import DatabaseInUse, Unusable
from hazemap.federated.service.store import Store, Write

log = logging.getLogger("hazemap.federated.server")

AGAIN = 0.5
"""Seconds between two attempts to reach a database that cannot be reached."""

SAID_AGAIN = 60.0
"""Seconds after which a server that waits says again for what, where that is the same."""

LONGEST = 300
"""Letters of what a driver says that are logged."""

BEAT = 2.0
"""Seconds between two writes of a server that another one may replace."""

_BEAT = "UPDATE facts SET value = value WHERE name = 'version'"

Opened = TypeVar("Opened")


def when_free(opened: Callable[[float], Opened], ready: Callable[[], None], again: float = AGAIN) -> Opened:
    """What `opened` opens, as soon as no other server owns the database; it is told how many seconds to wait for that.

    Where another one does, `ready` is called first: what is done while that one serves need not be done after its end.
    A database that was in use and then cannot be reached is waited for, too: whoever owned it may end with it; the log
    says why it cannot be reached. One that cannot be opened at first is an error at once (`StoreError`), and so is one
    that no wait makes usable (`Unusable`).

    >>> when_free(lambda patience: "mine", ready=lambda: None)
    'mine'
    """
    try:
        return opened(0)
    except DatabaseInUse:
        log.info("another server owns the database: this one stands by")
    ready()
    said, at = "", -inf
    while True:
        try:
            return opened(inf)
        except Unusable:
            raise
        except StoreError as error:
            cause = "".join(filter(str.isprintable, " ".join(str(error.__cause__ or "").split())))
            reason, now = f"{error}" + f" ({cause[:LONGEST]})" * bool(cause), monotonic()
            if reason != said or now - at >= SAID_AGAIN:
                log.warning("still standing by, and trying every %g s: %s", again, reason)
                said, at = reason, now
            sleep(again)


class Replaceable:
    """While it lasts a store writes every few seconds, and so finds out soon that it has lost its database."""

    def __init__(self, store: Store, beat: float = BEAT) -> None:
        self._store, self._beat, self._over = store, beat, Event()
        self._thread = Thread(target=self._live, name="replaceable", daemon=True)

    def __enter__(self) -> "Replaceable":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._over.wait(self._beat):
            try:
                self._store.write_now(Write(_BEAT))
            except StoreError:
                return
