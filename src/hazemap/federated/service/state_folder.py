"""A server's folder with its secrets and its database, and the standby that waits for another server's end.

The lock of the database alone decides which of two servers serves. A server that lost it, because its connection to
PostgreSQL broke, can write no more; it notices at its next write, at least every few seconds, and ends.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import TypeVar

from hazemap.errors import StoreError
from hazemap.federated.service.access_tokens import kept, token_file
from hazemap.federated.service.databases import Database, DatabaseInUse, Unusable, database
from hazemap.federated.service.housekeeping import set_aside
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


OPERATOR = "operator.token"
"""What opens `/metrics`, and of a coordinator everything that operators do; made at the first start."""

OpenStore = TypeVar("OpenStore", bound=Store)


@dataclass(frozen=True)
class StateFolder:
    """A server's folder. Its database is an SQLite file in it, or at a URL that begins with postgresql://.

    A server on `standby` waits until the one that owns the database has ended, and ends when it can no longer write.
    """

    path: Path
    database: str | None = None
    standby: bool = False

    def secret(self, name: str) -> str:
        """A secret in a file of the folder; both are made where there are none."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return token_file(self.path / name)

    @property
    def operator(self) -> bytes:
        """The hash of the operator's token."""
        return kept(self.secret(OPERATOR))

    @contextmanager
    def opened(
        self, file: str, kind: Callable[[Database], OpenStore], ready: Callable[[], None] = set_aside
    ) -> Iterator[OpenStore]:
        """The store, closed in the end. One on standby does what makes it `ready` while it waits.

        `DatabaseInUse` where another server owns it and this one does not wait.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self.database or self.path / file
        if self.standby:
            store = when_free(lambda patience: kind(database(place, patience)), ready)
        else:
            store = kind(database(place))
        try:
            with Replaceable(store) if self.standby else nullcontext():
                yield store
        finally:
            store.close()
