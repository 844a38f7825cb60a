"""PostgreSQL: how a connection is made to a URL (`postgresql_url`), and our SQL in its dialect.

psycopg 3 is imported when something connects, and not before.
"""

from types import ModuleType
from typing import Any

from hazemap.errors import InputError


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
