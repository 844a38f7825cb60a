"""PostgreSQL: URLs of a database (`postgresql://host/db`) or of a table in it (`…?table=visits`), and connections.

A URL is written down: in the specification, in a journal, in messages, in a shell's history. So one with a password is
refused without being shown, and so is whatever else PostgreSQL's own library would take from it and this list does not
know. libpq finds passwords by its own means: a password file, a service file, certificates, `PGPASSWORD`.
psycopg 3 is imported when something connects, and not before.
"""

import re
from types import ModuleType
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
TABLE = re.compile(rf"(?:({_PLAIN}|{_QUOTED})\.)?({_PLAIN}|{_QUOTED})")
_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_SECRET = re.compile("pass(word|phrase)?$|pwd$|secret|token|_key$")
_KEPT_ELSEWHERE = (
    "leave it out, and put it into ~/.pgpass, a service file (postgresql://…?service=NAME) or PGPASSWORD, where libpq "
    "finds it"
)


def is_postgresql_url(source: Any) -> bool:
    """Whether this is the URL of a database, well written or not; a path never begins so.

    >>> texts = ("postgresql://host/db?table=visits", "PostgreSQL:/x", "postgresql.csv")
    >>> [is_postgresql_url(text) for text in texts]
    [True, True, False]
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
    if any(name == "table" for name, _, _ in url_parts(url)[1]):
        raise InputError("this is the URL of a table, and that of a database was asked for: leave table=… out")
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


def to_postgresql_sql(sql: str) -> str:
    """Our SQL, which is SQLite's, with PostgreSQL's placeholders and its name for bytes.

    >>> to_postgresql_sql("SELECT b FROM t WHERE a = ?")
    'SELECT b FROM t WHERE a = %s'
    """
    return sql.replace("?", "%s").replace(" BLOB", " BYTEA")


def url_parts(text: str) -> tuple[str, list[tuple[str, str, str]]]:
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
