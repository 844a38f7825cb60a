"""A ledger of many stewards for a test: a database of its own, with a login for each group and one for none."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.federated.server.postgres import cluster

from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_postgresql import set_up
from hazemap.sources import postgresql

LOGINS = {"ann": "steward", "ben": "steward", "olga": "owner", "audrey": "auditor", "nobody": None}
_NUMBERS = count(1)


@dataclass(frozen=True)
class Team:
    """The URL of a ledger for whoever administers the server, and for everybody else by name."""

    admin: str

    def url(self, login: str) -> str:
        return self.admin.replace("user=hazemap", f"user={login}")

    def ledger(self, login: str, patience: float = 60) -> Ledger:
        return Ledger(self.url(login), patience)

    def raw(self, login: str, *statements: str, isolation: str = "SERIALIZABLE") -> list[tuple[Any, ...]]:
        """What somebody gets who writes SQL by hand; psycopg's errors."""
        with closing(postgresql.connect(self.url(login))) as db:
            db.execute("SET search_path = hazemap_ledger")
            db.execute(f"BEGIN ISOLATION LEVEL {isolation}")
            for statement in statements:
                found = db.execute(statement)
            rows = found.fetchall() if found.description else []
            db.execute("COMMIT")
        return rows


@contextmanager
def teams() -> Iterator[str]:
    """A server with the logins; skipped where PostgreSQL is not installed."""
    with cluster() as url, closing(postgresql.connect(url)) as db:
        for login in LOGINS:
            db.execute(f"CREATE ROLE {login} LOGIN")
        yield url


def new_team(server: str) -> Team:
    """An empty ledger on it."""
    name = f"team{next(_NUMBERS)}"
    with closing(postgresql.connect(server)) as db:
        db.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    url = server.replace("///postgres?", f"///{name}?")
    groups = set_up(url)
    with closing(postgresql.connect(url)) as db:
        for login, group in LOGINS.items():
            if group is not None:
                db.execute(f'GRANT "{getattr(groups, group)}" TO {login}')
    return Team(url)
