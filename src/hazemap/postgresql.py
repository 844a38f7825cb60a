"""PostgreSQL by URL: which URLs are taken, how a connection is made, and our SQL in its dialect.

Credentials come by libpq's own means: a password file, a service file, certificates, `PGPASSWORD`. A password in a URL
is refused, so that no history of a shell, list of processes, statement or message holds one. psycopg 3 is imported
when something connects, and not before.
"""

from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hazemap.errors import InputError

SCHEMES = ("postgresql://", "postgres://")
_SECRET = {"password", "sslpassword", "oauth_client_secret"}


def is_url(text: str) -> bool:
    """Whether this names a PostgreSQL database.

    >>> is_url("postgresql://localhost/maps"), is_url("maps.sqlite")
    (True, False)
    """
    return text.startswith(SCHEMES)


def checked_url(url: str) -> str:
    """The URL, if it holds no password; `InputError`, which does not show it, if it does or cannot be read.

    >>> checked_url("postgresql://ann@db.example/ledger")
    'postgresql://ann@db.example/ledger'
    >>> checked_url("postgresql://ann:secret@db.example/ledger")
    Traceback (most recent call last):
    hazemap.errors.InputError: a URL of PostgreSQL holds no password, because shells, lists of processes and logs keep \
it: leave it out, and put it into ~/.pgpass, a service file (postgresql://…?service=NAME) or PGPASSWORD
    """
    if not is_url(url):
        raise InputError("the URL of a PostgreSQL database begins with postgresql://")
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
        names = {name.strip().lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        raise InputError("the URL of the PostgreSQL database cannot be read: see that it is spelled right") from None
    if secret or names & _SECRET:
        raise InputError(
            "a URL of PostgreSQL holds no password, because shells, lists of processes and logs keep it: leave it out, "
            "and put it into ~/.pgpass, a service file (postgresql://…?service=NAME) or PGPASSWORD"
        )
    if not url.isprintable() or parts.fragment:
        raise InputError("the URL of the PostgreSQL database cannot be read: see that it is spelled right")
    return url


def driver() -> ModuleType:
    """The driver, psycopg 3; `InputError` where it is not installed."""
    try:
        import psycopg
    except ImportError:
        raise InputError(
            "PostgreSQL needs psycopg, which is not installed here: pip install 'hazemap[postgresql]'"
        ) from None
    return psycopg


def connect(url: str, **parameters: str | int) -> Any:
    """A connection whose statements stand for themselves until a transaction is begun; psycopg's errors.

    `parameters` are libpq's, for those that the URL does not name.
    """
    psycopg = driver()
    given = psycopg.conninfo.conninfo_to_dict(url)
    rest = {name: value for name, value in parameters.items() if name not in given}
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, **rest)


def spelled(sql: str) -> str:
    """Our SQL, which is SQLite's, with PostgreSQL's placeholders and its name for bytes.

    >>> spelled("SELECT b FROM t WHERE a = ?")
    'SELECT b FROM t WHERE a = %s'
    """
    return sql.replace("?", "%s").replace(" BLOB", " BYTEA")
