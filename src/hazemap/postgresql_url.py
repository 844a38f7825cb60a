"""URLs of PostgreSQL: of a database (`postgresql://host/db`) or of a table in it (`…?table=visits`), without secrets.

A URL is written down: in the specification, in a journal, in messages, in a shell's history. So one with a password is
refused without being shown, and so is whatever else PostgreSQL's own library would take from it and this list does not
know. libpq finds passwords by its own means: a password file, a service file, certificates, `PGPASSWORD`.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from hazemap.errors import InputError

SCHEMES = ("postgresql:", "postgres:")
PARAMETERS = frozenset(
    [
        *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "connect_timeout", "application_name"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "sslsni", "sslnegotiation"),
        *("sslcertmode", "ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "require_auth"),
        *("requirepeer", "gssencmode", "krbsrvname", "gsslib", "gssdelegation", "target_session_attrs"),
        *("load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        "tcp_user_timeout",
    ]
)
"""What a URL may tell libpq: where the server is, and where a secret is kept, never the secret."""

EXAMPLE = "postgresql://host/database?table=visits"
_PLAIN = r"[^\W\d][\w$]*"
_QUOTED = r'"(?:[^"\0]|"")+"'
_TABLE = re.compile(rf"(?:({_PLAIN}|{_QUOTED})\.)?({_PLAIN}|{_QUOTED})")
_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_SECRET = re.compile("pass(word|phrase)?$|pwd$|secret|token|_key$")
_KEPT_ELSEWHERE = (
    "leave it out, and put it into ~/.pgpass, a service file (postgresql://…?service=NAME) or PGPASSWORD, where libpq "
    "finds it"
)


def is_url(source: Any) -> bool:
    """Whether this is the URL of a database, well written or not; a path never begins so.

    >>> is_url("postgresql://host/db?table=visits"), is_url("PostgreSQL:/x"), is_url("postgresql.csv")
    (True, True, False)
    """
    return isinstance(source, str) and source.casefold().startswith(SCHEMES)


def checked_url(url: str) -> str:
    """The URL of a database; `InputError`, which does not show it, for one with a secret or that cannot be read.

    >>> checked_url("postgresql://ann@db.example/ledger")
    'postgresql://ann@db.example/ledger'
    >>> checked_url("postgresql://ann:secret@db.example/ledger")
    Traceback (most recent call last):
    hazemap.errors.InputError: a URL of PostgreSQL holds no password, because shells, lists of processes and logs keep \
it: leave it out, and put it into ~/.pgpass, a service file (postgresql://…?service=NAME) or PGPASSWORD, where libpq \
finds it
    """
    if any(name == "table" for name, _, _ in _parsed(url)[1]):
        raise InputError("this is the URL of a table, and that of a database was asked for: leave table=… out")
    return url


@dataclass(frozen=True)
class TableUrl:
    """A table or a view in a database: what libpq is told of the server, and the table as SQL names it.

    >>> url = TableUrl.parse('postgresql://ann@db.example.org/city?table=trips."Visits"&sslmode=require')
    >>> url.table, url.database, url.names
    ('trips."Visits"', 'postgresql://ann@db.example.org/city?sslmode=require', ('trips', 'Visits'))
    """

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "TableUrl":
        """`InputError` for a URL that has a password, that names no table, or that libpq would read otherwise."""
        place, asked = _parsed(text)
        tables = [value for name, value, _ in asked if name == "table"]
        if len(tables) != 1:
            raise InputError(f"name one table: {EXAMPLE}; found {len(tables) or 'none'}")
        if not _TABLE.fullmatch(tables[0]):
            raise InputError(
                f"table={tables[0][:80]!r} is no name of a table or a view: write visits, trips.visits, or "
                'trips."Visits" where a name has capitals or blanks. A query is none: make a view of it'
            )
        kept = "&".join(written for name, _, written in asked if name != "table")
        return cls(place + (f"?{kept}" if kept else ""), tables[0])

    @property
    def names(self) -> tuple[str, ...]:
        """The schema, if it is named, and the table, as PostgreSQL keeps them: small letters where none are quoted."""
        found = _TABLE.fullmatch(self.table)
        parts = [part for part in found.groups() if part] if found else [self.table]
        return tuple(part[1:-1].replace('""', '"') if part[0] == '"' else _small(part) for part in parts)

    def beside(self, more: str) -> "TableUrl":
        """The table whose name goes on with some small letters.

        >>> TableUrl.parse('postgresql://h/d?table="Visits"').beside("_total").table
        '"Visits_total"'
        """
        quoted = self.table.endswith('"')
        return TableUrl(self.database, f'{self.table[:-1]}{more}"' if quoted else self.table + more)


def _parsed(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """What stands before the parameters, and of each of these its name, its value, and both as they are written.

    Where a password may stand is decided as libpq does, for which a user ends at the first @ before the first /,
    whatever signs are before it. Signs that would be read in two ways are refused.
    """
    scheme, slashes, rest = text.partition("//")
    place, _, query = rest.partition("?")
    authority, _, path = place.partition("/")
    user, _, hosts = authority.rpartition("@")
    if ":" in user or "@" in user:
        raise _secret("password")
    if "@" in path + query:
        raise _secret("password, nor an @ after its host (write %40)")
    if (
        scheme not in SCHEMES
        or not slashes
        or "#" in rest
        or not rest.isprintable()
        or not all(_HOST.fullmatch(host) for host in hosts.split(","))
    ):
        raise InputError(
            f"the URL of a PostgreSQL database cannot be read: it is postgresql://host/database, or {EXAMPLE}"
        )
    asked = [(_decoded(name), _decoded(value), f"{name}={value}") for name, value in _pairs(query)]
    for name, value, _ in asked:
        _check(name, value)
    _decoded(authority)
    if "=" in _decoded(path):
        raise InputError("the path of a URL of PostgreSQL is the name of a database, and has no = in it")
    return f"{scheme}//{place}", asked


def _check(name: str, value: str) -> None:
    if name in {"query", "sql"}:
        raise InputError(
            "hazemap reads tables and views, and no queries: make a view of it (CREATE VIEW …), and name that"
        )
    if name != "table" and name not in PARAMETERS:
        if _SECRET.search(name.casefold()):
            raise _secret(f"secret, {name[:40]!r}")
        raise InputError(
            f"a URL of PostgreSQL has no parameter {name[:40]!r}; it has table, {', '.join(sorted(PARAMETERS))}"
        )
    if name == "dbname" and re.search("[=/]", value):
        raise InputError("dbname is the name of a database, and nothing that has = or / in it")


def _secret(what: str) -> InputError:
    return InputError(
        f"a URL of PostgreSQL holds no {what}, because shells, lists of processes and logs keep it: {_KEPT_ELSEWHERE}"
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    found = [part.partition("=") for part in query.split("&") if part]
    if any(not sign for _, sign, _ in found):
        raise InputError("what follows the ? in a URL of PostgreSQL is NAME=VALUE, divided by &")
    return [(name, value) for name, _, value in found]


def _decoded(text: str) -> str:
    """A text without %20 and the like; libpq takes + for itself."""
    try:
        unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InputError("a URL of PostgreSQL has signs that are no UTF-8") from None
    return unquote(text)


def _small(name: str) -> str:
    """A name that is not quoted, as PostgreSQL folds it in databases in UTF-8: letters of ASCII alone."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)
