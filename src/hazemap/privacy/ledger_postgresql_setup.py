"""Makes a ledger of many stewards in a PostgreSQL database: tables, functions, and the three groups of logins."""

import re
import secrets
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files

from hazemap.errors import InputError, LedgerError
from hazemap.privacy.ledger_postgresql import GROUPS, SCHEMA, VERSION
from hazemap.sources import postgresql
from hazemap.sources.postgresql import checked_url

_OLDEST = 140_000
_LONGEST = 40
"""Characters of a database's name: with the group's they make a name of PostgreSQL's, of at most 63 bytes."""


@dataclass(frozen=True)
class TeamGroups:
    """The names of the groups, whose members may do what a steward, an owner and an auditor may."""

    steward: str
    owner: str
    auditor: str

    def grants(self, login: str = "LOGIN") -> list[str]:
        """The statements that make a login a member, one a group.

        >>> print(TeamGroups("s", "o", "a").grants("ann")[1])
        GRANT "o" TO "ann";
        """
        return [f'GRANT "{group}" TO "{login}";' for group in (self.steward, self.owner, self.auditor)]


def set_up(url: str) -> TeamGroups:
    """Make the ledger, or bring its functions and rights up to date: nothing that it holds changes.

    The login has to be allowed to make roles and schemas. `LedgerError` where it is not, and for the ledger of a newer
    hazemap.
    """
    psycopg = postgresql.driver()
    checked_url(url)
    try:
        with closing(postgresql.connect(url, connect_timeout=10, application_name="hazemap")) as db:
            db.execute("SET client_min_messages = warning")
            db.execute("BEGIN")
            groups = _made(db)
            db.execute("COMMIT")
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            raise LedgerError("the URL of the ledger cannot be read: see that it is spelled right") from None
        raise LedgerError(
            f"the ledger cannot be made in {url} ({error.diag.message_primary}): the login has to be allowed to make "
            "roles (CREATEROLE) and schemas (CREATE on the database)"
        ) from error
    except psycopg.Error as error:
        said = error.diag.message_primary or str(error).strip().partition("\n")[0]
        raise LedgerError(f"the ledger cannot be made in {url} ({said}): nothing was changed") from error
    return groups


def _made(db: object) -> TeamGroups:
    execute = db.execute  # type: ignore[attr-defined]
    [version, name] = execute("SELECT current_setting('server_version_num')::INTEGER, current_database()").fetchone()
    if version < _OLDEST:
        raise InputError("a ledger of many stewards needs PostgreSQL 14 or newer")
    if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}", name):
        raise InputError(
            f"the groups of a ledger are called after its database, so its name has up to {_LONGEST} letters, digits, "
            "'_' and '-': make one for the ledger alone, such as hazemap"
        )
    if execute("SHOW server_encoding").fetchone() != ("UTF8",):
        raise InputError("a ledger of many stewards is in UTF-8: make its database with ENCODING 'UTF8'")
    execute("SELECT pg_advisory_xact_lock(%s)", (0x48415A4C,))  # of two that make it at once, one after the other
    tables, steward, owner, auditor = (f"hazemap_{name}_{group}" for group in ("tables", *GROUPS))
    for role in (tables, steward, owner, auditor):
        if not execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
            execute(f'CREATE ROLE "{role}" NOLOGIN')
    execute(f'GRANT "{tables}" TO CURRENT_USER')
    execute(f'CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION "{tables}"')
    execute(f'SET LOCAL ROLE "{tables}"')
    execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
    if execute("SELECT to_regclass(%s)", (f"{SCHEMA}.ledger",)).fetchone() != (None,):
        [there] = execute("SELECT version FROM ledger").fetchone()
        if there > VERSION:
            raise LedgerError("the ledger was written by a newer hazemap: upgrade hazemap to use it")
    script = files("hazemap.privacy").joinpath("team_ledger.sql").read_text(encoding="utf-8")
    for group, role in (("tables", tables), ("steward", steward), ("owner", owner), ("auditor", auditor)):
        script = script.replace(f"{{{group}}}", f'"{role}"')
    execute(script)
    execute(
        "INSERT INTO ledger (version, identity, created) VALUES (%s, %s, utc()) "
        "ON CONFLICT (one) DO UPDATE SET version = excluded.version",
        (VERSION, secrets.token_hex(16)),
    )
    execute("RESET ROLE")
    execute(f'REVOKE "{tables}" FROM CURRENT_USER')
    return TeamGroups(steward, owner, auditor)
