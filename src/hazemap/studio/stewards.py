"""The stewards of a studio: each works in a folder and with a ledger of their own."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.service.access_tokens import kept, known_token, named, token_file
from hazemap.files.text_files import MOST, read_text, toml_table
from hazemap.privacy.ledger import Ledger
from hazemap.sources.postgresql import is_postgresql_url
from hazemap.studio.coordinator_access import CoordinatorAccess
from hazemap.studio.root_folder import RootFolder

ALONE = "steward"
"""The one who is let in by a link."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_FIELDS = {"folder", "ledger", "token", "server", "server_token", "server_certificate"}
_OF_SERVER = {"server", "server_token"}


@dataclass(frozen=True)
class Steward:
    """Somebody who releases maps. `token` is the file of their secret; without one they come by a link alone.

    `server` is the coordinator on which they run campaigns and studies, if any.
    """

    name: str
    root: RootFolder
    ledger: Ledger
    token: Path | None = None
    server: CoordinatorAccess | None = None


@dataclass(frozen=True)
class Stewards:
    """Everybody who may sign in, by name. Their folders and ledgers have nothing in common."""

    by_name: Mapping[str, Steward]
    named_ledger: bool = field(default=True)
    """Whether commands have to name the ledger: it is not the default one."""

    @classmethod
    def alone(cls, folder: Path, ledger: Path | str | None, server: CoordinatorAccess | None = None) -> "Stewards":
        """One steward, whom the studio's link lets in."""
        book = Ledger(ledger) if ledger else Ledger.default()
        only = Steward(ALONE, RootFolder.at(folder), book, server=server)
        return cls({ALONE: only}, named_ledger=ledger is not None)

    @classmethod
    def of_file(cls, path: Path) -> "Stewards":
        """Those of a TOML file; relative paths in it begin at its folder, and tokens that are missing are made.

        `InputError` where two share a folder or a ledger: each sees their own data sets only.
        """
        found = {name: _steward(name, table, path.parent) for name, table in _tables(path).items()}
        for name, one in found.items():
            for other in found.values():
                if other.name <= name:
                    continue
                if one.root.holds(other.root.path) or other.root.holds(one.root.path):
                    raise InputError(f"{one.name} and {other.name} would see each other's files: give each a folder")
                if _same_ledger(one.ledger, other.ledger):
                    raise InputError(f"{one.name} and {other.name} would share a ledger: give each one of their own")
                if one.token and other.token and _same_file(one.token, other.token):
                    raise InputError(f"{one.name} and {other.name} would share a token: give each one of their own")
                if one.server and other.server and _same_file(one.server.token, other.server.token):
                    raise InputError(f"{one.name} and {other.name} would share a server's token: each has their own")
        return cls(found)

    def holder(self, token: str) -> Steward | None:
        """Whose token this is. A token ends with its file; every one is compared, whichever fits."""
        files = {name: one.token for name, one in self.by_name.items() if one.token is not None}
        name = named({name: secret for name, file in files.items() if (secret := known_token(file))}, token)
        return None if name is None else self.by_name[name]

    def fingerprint(self, name: str) -> bytes:
        """Changes with a steward's token: a session ends when the token does."""
        steward = self.by_name.get(name)
        if steward is None or steward.token is None:
            return b""
        return kept(known_token(steward.token) or "")


def _same_file(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _same_ledger(one: Ledger, other: Ledger) -> bool:
    """Whether two are one file, or one database as one login: in that others have ledgers of their own rights."""
    if isinstance(one.place, Path) and isinstance(other.place, Path):
        return _same_file(one.place, other.place)
    return one.place == other.place


def _tables(path: Path) -> dict[str, Any]:
    tables = toml_table(read_text(path, "the users in"), "the list of users", MOST)
    if not tables:
        raise InputError(f"{path} names nobody: write a table for each user, such as [ann] with folder and ledger")
    return tables


def _steward(name: str, table: Any, folder: Path) -> Steward:
    if not _NAME.fullmatch(name):
        raise InputError(f"a user's name has up to 40 letters, digits, '.', '_' and '-'; found {name!r:.60}")
    if not isinstance(table, dict) or not {"folder", "ledger"} <= table.keys() <= _FIELDS:
        raise InputError(
            f"say of the user {name} a folder and a ledger, perhaps the file of a token and a server, and nothing else"
        )
    if not all(isinstance(value, str) and value for value in table.values()):
        raise InputError(f"what is said of the user {name} are texts")
    named = table["ledger"]
    root, book = RootFolder.at(folder / table["folder"]), Ledger(named if is_postgresql_url(named) else folder / named)
    if isinstance(book.place, Path) and root.holds(book.place):
        raise InputError(f"the ledger of {name} would be among their files: put it elsewhere")
    token = folder / table.get("token", f"{name}.token")
    if root.holds(token):
        raise InputError(f"the token of {name} would be among their files: put it elsewhere")
    token_file(token)
    return Steward(name, root, book, token, _server(name, table, folder, root))


def _server(name: str, table: dict[str, str], folder: Path, root: RootFolder) -> CoordinatorAccess | None:
    """The coordinator of a user, with the file of their token for it."""
    given = {field for field in table if field.startswith("server")}
    if not given:
        return None
    if not given >= _OF_SERVER:
        raise InputError(f"say of the user {name} both a server and, as server_token, the file of their token for it")
    token = folder / table["server_token"]
    if root.holds(token):
        raise InputError(f"the server's token of {name} would be among their files: put it elsewhere")
    certificate = folder / table["server_certificate"] if "server_certificate" in table else None
    return CoordinatorAccess.at(table["server"], token, certificate)
