"""Finds data sets whose tables look alike, to warn a steward who may have given one table two names.

Charges of two names are not added, so a table that pays under a second name (because its file was copied, renamed or
converted, or named by a pattern) escapes the cap of the first. Fingerprints of the tables that paid lie in the ledger,
and their key beside it in a file of its own, which only its owner may read: without it they say nothing.

A fingerprint depends on rows, without noise. What follows from it is said to whoever holds the table, on stderr, and
written nowhere; nothing is refused and no price changes, so no release depends on it.
"""

import os
import secrets
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hazemap.errors import HazemapWarning, LedgerError
from hazemap.privacy.ledger import Ledger, data_set_name
from hazemap.tables.table_fingerprint import Fingerprint

BYTES = 32
"""Of a key."""

NAMED = 4
"""Data sets that a warning names; of others it gives the number."""

KEPT = 8
"""Fingerprints of a data set, the latest; one of the same table is not kept twice."""


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints in a ledger.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     kept = Fingerprints(Ledger(Path(folder) / "ledger.sqlite"))
    ...     kept.key() == kept.key(), oct(kept.key_file.stat().st_mode)[-3:], kept.key_file.name
    (True, '600', 'ledger.key')
    """

    ledger: Ledger

    @property
    def key_file(self) -> Path:
        """Where the key lies: beside the ledger, or on this machine, and never in it."""
        return self.ledger.store.key_file

    def key(self) -> bytes | None:
        """The key, drawn once; `None`, with a `HazemapWarning`, where it can be neither read nor made."""
        try:
            return self._read() or self._made()
        except OSError as error:
            warnings.warn(
                f"the key {self.key_file} cannot be used ({error.strerror}), so nobody will notice if this table pays "
                "under another name as well: make it readable for you, and keep it from others",
                HazemapWarning,
                stacklevel=3,
            )
            return None

    def lookalikes(self, dataset: str, fingerprint: Fingerprint) -> list[str]:
        """Other data sets that a table like this one has paid for, by name; none where it has paid for this one too."""
        own = data_set_name(dataset)
        with self.ledger.store.reading() as db:
            rows = db.execute("SELECT dataset, fingerprint FROM fingerprints ORDER BY dataset, id").fetchall()
        alike = {name for name, data in rows if _alike(data, fingerprint)}
        return [] if own in alike else sorted(alike)

    def warn(self, dataset: str, fingerprint: Fingerprint | None) -> None:
        """Say which other data sets a table looks like, and what to do."""
        others = self.lookalikes(dataset, fingerprint) if fingerprint else []
        if not others:
            return
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        names = ", ".join(map(repr, others[:NAMED])) + more
        warnings.warn(
            f"this table looks like one that pays as {names}, and its charges as {data_set_name(dataset)!r} are not "
            f"added to those: if the same people are in it, let the same data set pay (--dataset {others[0]!r}, "
            "dataset=… in Python), or what they lose is more than any cap says",
            HazemapWarning,
            stacklevel=3,
        )

    def remember(self, dataset: str, fingerprint: Fingerprint | None) -> None:
        """Keep the fingerprint of a table that has paid, if there is one; one that is just the same is replaced.

        A ledger that cannot be written now keeps the one of the next charge: nothing that was paid for is given up.
        """
        if fingerprint is None:
            return
        name, text = data_set_name(dataset), fingerprint.to_bytes()
        with suppress(LedgerError):
            self.ledger.store.write(lambda db: db.remember(name, text, KEPT))

    def _read(self) -> bytes | None:
        try:
            found = self.key_file.read_bytes()
        except FileNotFoundError:
            return None
        if len(found) != BYTES:
            raise OSError(0, "it is no key")
        return found

    def _made(self) -> bytes | None:
        """Draw the key, whole or not at all; of several that draw it at once one wins. The ledger is there first."""
        self.ledger.store.exist()
        self.key_file.parent.mkdir(parents=True, exist_ok=True)
        drawn = self.key_file.with_name(f"{self.key_file.name}.{secrets.token_hex(8)}")
        handle = os.open(drawn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(drawn, self.key_file)
        finally:
            drawn.unlink()
        return self._read()


def _alike(data: object, fingerprint: Fingerprint) -> bool:
    other = Fingerprint.from_bytes(data) if isinstance(data, bytes) else None
    return other is not None and other.looks_like(fingerprint)
