"""Where a server keeps what it must not forget: a folder with its secrets, and a database in it or elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hazemap.federated.service.access_tokens import kept, token_file
from hazemap.federated.service.databases import Database, database
from hazemap.federated.service.housekeeping import set_aside
from hazemap.federated.service.standby import Replaceable, when_free
from hazemap.federated.service.store import Store

OPERATOR = "operator.token"
"""What opens `/metrics`, and of a coordinator everything that operators do; made at the first start."""

Opened = TypeVar("Opened", bound=Store)


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
        self, file: str, kind: Callable[[Database], Opened], ready: Callable[[], None] = set_aside
    ) -> Iterator[Opened]:
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
