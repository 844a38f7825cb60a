"""URLs of tables in PostgreSQL: `postgresql://host/db?table=visits`, which name no secret.

A URL is written down: in the specification, in a journal, perhaps in a shell's history. So one with a password is
refused, without being shown, and so is whatever else PostgreSQL's own library would take from a URL and that this list
does not know.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from hazemap.errors import InputError

SCHEMES = ("postgresql:", "postgres:")
PARAMETERS = frozenset(
    [
        *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "connect_timeout", "application_name"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslsni", "sslnegotiation", "channel_binding"),
        *("ssl_min_protocol_version", "gssencmode", "krbsrvname", "require_auth", "target_session_attrs"),
        *("load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        "tcp_user_timeout",
    ]
)
"""What a URL may tell libpq: where the server is, and where a secret is kept, never the secret."""

_PLAIN = r"[^\W\d][\w$]*"
_QUOTED = r'"(?:[^"\0]|"")+"'
_TABLE = re.compile(rf"(?:(?:{_PLAIN}|{_QUOTED})\.)?({_PLAIN}|{_QUOTED})")
_KEPT_ELSEWHERE = (
    "keep it in ~/.pgpass, in a service file (service=NAME) or in PGPASSWORD, where libpq finds it: a URL is written "
    "into specifications and journals"
)
_SECRET = re.compile("pass(word|phrase)?$|pwd$|secret|token|_key$")


@dataclass(frozen=True)
class TableUrl:
    """A table or a view in a database: what libpq is told of the server, and the table as SQL names it.

    >>> url = TableUrl.parse('postgresql://ann@db.example.org/city?table=trips."Visits"&sslmode=require')
    >>> url.table, url.database, url.last_name
    ('trips."Visits"', 'postgresql://ann@db.example.org/city?sslmode=require', 'Visits')
    """

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "TableUrl":
        """`InputError` for a URL that has a password, that names no table, or that libpq would read otherwise."""
        scheme, slashes, rest = text.partition("//")
        if scheme not in SCHEMES or not slashes or "#" in rest:
            raise InputError(f"a table in PostgreSQL is {EXAMPLE}; what was given begins alike, and is no such URL")
        place, _, query = rest.partition("?")
        user = place.partition("/")[0].rpartition("@")[0]
        if ":" in user or "@" in user:
            raise InputError(f"the URL of the table has a password in it; {_KEPT_ELSEWHERE}")
        asked = [(_decoded(name), _decoded(value), f"{name}={value}") for name, value in _pairs(query)]
        for name, value, _ in asked:
            if name in {"query", "sql"}:
                raise InputError(
                    "hazemap reads tables and views, and no queries: make a view of it (CREATE VIEW …), and name that"
                )
            if name != "table" and name not in PARAMETERS:
                if _SECRET.search(name.casefold()):
                    raise InputError(f"the URL of the table has a secret in it, {name[:40]!r}; {_KEPT_ELSEWHERE}")
                raise InputError(
                    f"the URL of a table has no parameter {name[:40]!r}; it has table, {', '.join(sorted(PARAMETERS))}"
                )
            if name == "dbname" and re.search("[=/]", value):
                raise InputError("dbname is the name of a database, and nothing that has = or / in it")
        if "=" in _decoded(place.partition("/")[2]):
            raise InputError("the path of the URL of a table is the name of a database, and has no = in it")
        tables = [value for name, value, _ in asked if name == "table"]
        if len(tables) != 1:
            raise InputError(f"name one table: {EXAMPLE}; found {len(tables) or 'none'}")
        kept = "&".join(written for name, _, written in asked if name != "table")
        if not _TABLE.fullmatch(tables[0]):
            raise InputError(
                f"table={tables[0][:80]!r} is no name of a table or a view: write visits, trips.visits, or "
                'trips."Visits" where a name has capitals or blanks. A query is none: make a view of it'
            )
        return cls(f"postgresql://{place}" + (f"?{kept}" if kept else ""), tables[0])

    @property
    def last_name(self) -> str:
        """The name of the table without its schema."""
        found = _TABLE.fullmatch(self.table)
        name = found[1] if found else self.table
        return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


EXAMPLE = "postgresql://host/database?table=visits"


def is_database(source: Any) -> bool:
    """Whether a source is the URL of a database, well written or not; a path never begins so.

    >>> is_database("postgresql://host/db?table=visits"), is_database("PostgreSQL:/x"), is_database("postgresql.csv")
    (True, True, False)
    """
    return isinstance(source, str) and source.casefold().startswith(SCHEMES)


def absolute(source: str) -> str:
    """The whole path of a source of files, so that it means the same in any folder; a URL as it is.

    >>> absolute("postgresql:///db?table=visits")
    'postgresql:///db?table=visits'
    """
    return source if is_database(source) else str(Path(source).absolute())


def _pairs(query: str) -> list[tuple[str, str]]:
    found = [part.partition("=") for part in query.split("&") if part]
    if any(not sign for _, sign, _ in found):
        raise InputError("what follows the ? in the URL of a table is NAME=VALUE, divided by &")
    return [(name, value) for name, _, value in found]


def _decoded(text: str) -> str:
    """A text without %20 and the like; libpq takes + for itself."""
    try:
        unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InputError("the URL of a table has signs that are no UTF-8") from None
    return unquote(text)
