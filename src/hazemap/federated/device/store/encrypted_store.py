"""The one file of a device, or of many: rows, events, identity, sessions, account and log, sealed with AES-256-GCM.

In clear are numbers only: of a device, a sequence number, up to which charges are summed, how many stages of a session
were answered, the day on which rows and events expire, the version of a policy, how long a server's log is; of the name
of a stream, a campaign, a server or a session there is a tag (HMAC). Everything else is sealed under a key of the
device's own (HKDF of the store's key), bound by its associated data to its table, device, number and day, so that
nothing can be moved to another place unseen. Nonces are random, 96 bits: a device may seal 2³² records before two could
meet with probability 2⁻³² (NIST SP 800-38D §8.3), a session has six.

What is deleted is overwritten in the file (secure_delete), and the journal beside it is emptied every hour at least. A
disk, a backup or a copy may hold it longer, sealed. A transaction is on the disk when it ends, or was never there.

An old copy of the file that is put back repeats what it said before, byte by byte (`DeviceCoins`). It
has forgotten what was paid since, which only an honest server makes known (`account_head`).

The store's key is 32 bytes. In a file beside it (`KeyOrigin`) it protects a store that is copied or thrown away without
it, not one that is taken together with it; for that there is the passphrase, stretched by scrypt (RFC 7914) at
N = 2¹⁷, r = 8: 128 MiB and about half a second for every guess.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from hmac import digest as hmac
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hazemap.errors import FileError, HazemapError, InputError
from hazemap.federated.protocols.secure_aggregation.key_agreement import expand

LENGTH = 32
KEY = "HAZEMAP_DEVICE_KEY"
PASSPHRASE = "HAZEMAP_DEVICE_PASSPHRASE"  # noqa: S105 - the name of a variable


class KeyOrigin(Enum):
    """Where a store's key comes from; written in the store, so that an error can name what opens it."""

    FILE = "a key file"
    PASSPHRASE = "a passphrase"  # noqa: S105 - the name of a kind
    GIVEN = "a key"


@dataclass(frozen=True)
class StoreSecret:
    """What a person gave to open a store with; nothing means a key file beside it.

    >>> StoreSecret().origin, StoreSecret(passphrase="correct horse").origin
    (<KeyOrigin.FILE: 'a key file'>, <KeyOrigin.PASSPHRASE: 'a passphrase'>)
    """

    passphrase: str | None = None
    key: bytes | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.passphrase is not None:
            raise InputError(f"a store is opened by a key or a passphrase, not both: unset {KEY} or {PASSPHRASE}")
        if self.passphrase == "":
            raise InputError("an empty passphrase protects nothing: give one with some letters")
        if self.key is not None and len(self.key) != LENGTH:
            raise InputError(f"the key of a store is {LENGTH} bytes; found {len(self.key)}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "StoreSecret":
        """The variable HAZEMAP_DEVICE_KEY (64 hexadecimal digits) or HAZEMAP_DEVICE_PASSPHRASE, or nothing."""
        digits = environment.get(KEY)
        try:
            key = None if digits is None else bytes.fromhex(digits)
        except ValueError:
            raise InputError(f"{KEY} holds {2 * LENGTH} hexadecimal digits; found something else") from None
        return cls(environment.get(PASSPHRASE), key)

    @property
    def origin(self) -> KeyOrigin:
        """What this is."""
        if self.key is not None:
            return KeyOrigin.GIVEN
        return KeyOrigin.FILE if self.passphrase is None else KeyOrigin.PASSPHRASE

    def opened(self, store: Path, salt: bytes, new: bool) -> bytes:
        """The key itself; for a `new` store a key file is written. `FileError` where there is no key."""
        if self.key is not None:
            return self.key
        if self.passphrase is not None:
            return stretch_passphrase(self.passphrase, salt)
        return (_written if new else _read)(key_file(store))

    def __repr__(self) -> str:
        return f"StoreSecret({self.origin.value})"


def stretch_passphrase(passphrase: str, salt: bytes) -> bytes:
    """The key that a passphrase and the salt of a store make: half a second and 128 MiB, on purpose."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=LENGTH, n=1 << 17, r=8, p=1).derive(passphrase.encode())


def key_file(store: Path) -> Path:
    """The key file of a store: beside it, readable by its owner alone.

    >>> key_file(Path("device.sqlite")).name
    'device.sqlite.key'
    """
    return store.with_name(store.name + ".key")


def _written(path: Path) -> bytes:
    key = os.urandom(LENGTH)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read(path)  # of a store whose making was interrupted, or is being made by another process
    except OSError as error:
        raise FileError(f"the key file {path} cannot be written ({error.strerror}); choose another folder") from error
    with os.fdopen(handle, "w") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    return key


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_mode & 0o077:
            raise FileError(f"others may read the key file {path}: take that away with chmod 600, or it is no secret")
        key = bytes.fromhex(path.read_text())
    except OSError as error:
        raise FileError(
            f"the key file {path} cannot be read ({error.strerror}): bring it back; without it the store stays closed"
        ) from error
    except ValueError:
        key = b""
    if len(key) != LENGTH:
        raise FileError(f"{path} holds no key: bring it back from a copy; without it the store stays closed")
    return key


_APPLICATION = 0x485A4456  # "HZDV", in SQLite's header
_SCHEMA = 1
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL)",
    "CREATE TABLE devices (device INTEGER PRIMARY KEY AUTOINCREMENT, sealed BLOB NOT NULL)",
    """CREATE TABLE rows (device INTEGER NOT NULL, sequence INTEGER NOT NULL, expires INTEGER NOT NULL,
        sealed BLOB NOT NULL, PRIMARY KEY (device, sequence))""",
    "CREATE INDEX rows_by_expiry ON rows (expires)",
    """CREATE TABLE sessions (device INTEGER NOT NULL, tag BLOB NOT NULL, answered INTEGER NOT NULL, sealed BLOB,
        PRIMARY KEY (device, tag))""",
    """CREATE TABLE charges (device INTEGER NOT NULL, sequence INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, sequence))""",
    """CREATE TABLE log (device INTEGER NOT NULL, sequence INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, sequence))""",
    """CREATE TABLE campaigns (device INTEGER NOT NULL, tag BLOB NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, tag))""",
    """CREATE TABLE events (device INTEGER NOT NULL, stream BLOB NOT NULL, sequence INTEGER NOT NULL,
        expires INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, stream, sequence))""",
    "CREATE INDEX events_by_expiry ON events (expires)",
    "CREATE TABLE policies (version INTEGER PRIMARY KEY NOT NULL, sealed BLOB NOT NULL)",
    """CREATE TABLE reports (device INTEGER NOT NULL, tag BLOB NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, tag))""",
    """CREATE TABLE logs (device INTEGER NOT NULL, tag BLOB NOT NULL, entries INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (device, tag))""",
    "CREATE TABLE sums (device INTEGER PRIMARY KEY NOT NULL, through INTEGER NOT NULL, sealed BLOB NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_SCHEMA}",
)
"""A session's `sealed` is NULL once it is over: its keys are gone, its tag stays for good."""

_CHECK = b"hazemap device store 1"
_NONCE = 12
PATIENCE = 60.0


class StoreWrite(NamedTuple):
    """One statement that must change exactly one row: anything else means that another process was faster."""

    sql: str
    parameters: tuple[Any, ...]


class EncryptedStore:
    """The file, opened. One thread at a time; several processes may have it open.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "d.sqlite"
    ...     with EncryptedStore.opened(path, create=True) as store:
    ...         store.unseal("log", 1, 1, store.seal("log", 1, 1, b"sent nothing"))
    b'sent nothing'
    """

    def __init__(self, path: Path, database: sqlite3.Connection, key: bytes) -> None:
        self.path = path
        self._database = database
        self._key = key
        self._ciphers: dict[int, AESGCM] = {}

    @classmethod
    def opened(cls, path: Path, secret: StoreSecret | None = None, create: bool = False) -> "EncryptedStore":
        """The store at `path`; `FileError` where it is missing, foreign or damaged, or the secret is not its own."""
        path, secret = path.expanduser().absolute(), secret or StoreSecret()
        if not create and not path.exists():
            raise FileError(f"there is no device at {path}: `hazemap device enrol` or `hazemap device add` makes one")
        with _translated(path):
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would let others read it
            database = _connected(path)
            try:
                return cls(path, database, _recognised(path, database, secret))
            except BaseException:
                database.close()
                raise

    def close(self) -> None:
        """Close the file; what was committed stays."""
        self._database.close()

    def __enter__(self) -> "EncryptedStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seal(self, table: str, device: int, number: int | bytes, plain: bytes, expires: int = 0) -> bytes:
        """A record that only this store can read, at this place alone: 28 bytes longer; a few microseconds."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher(device).encrypt(nonce, plain, _place(table, device, number, expires))

    def unseal(self, table: str, device: int, number: int | bytes, sealed: bytes, expires: int = 0) -> bytes:
        """What was sealed for this place; `FileError` for anything else."""
        place = _place(table, device, number, expires)
        try:
            return self._cipher(device).decrypt(sealed[:_NONCE], sealed[_NONCE:], place)
        except (InvalidTag, ValueError):
            raise FileError(
                f"a record of the {table} of device {device} in {self.path} is damaged, or was moved there"
            ) from None

    def tag(self, device: int, text: bytes) -> bytes:
        """16 bytes that stand for a text without saying it, the same each time: how sessions are remembered."""
        return hmac(self._derived(f"tag {device}"), text, "sha256")[:16]

    def read(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with _translated(self.path):
            return self._database.execute(sql, parameters).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Have the store alone; what the block wrote is on the disk when it ends, or was never there."""
        with _translated(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # after some errors SQLite has rolled back already
                    self._database.execute("ROLLBACK")
                raise

    def commit(self, batches: Sequence[Sequence[StoreWrite]]) -> list[FileError | None]:
        """Write batches in one transaction, each of them whole or not at all; for each what kept it out.

        One wait for the disk serves all devices of the batch.
        """
        outcomes: list[FileError | None] = []
        with self.writing() as database:
            for batch in batches:
                database.execute("SAVEPOINT batch")
                outcomes.append(self._written(database, batch))
                database.execute("RELEASE batch")
        return outcomes

    def _written(self, database: sqlite3.Connection, batch: Sequence[StoreWrite]) -> FileError | None:
        raced = FileError(f"another process wrote to the same device of {self.path} at the same time: try again")
        for write in batch:
            try:
                changed = database.execute(write.sql, write.parameters).rowcount
            except sqlite3.IntegrityError:
                changed = 0
            if changed != 1:
                database.execute("ROLLBACK TO batch")
                return raced
        return None

    def records(self, table: str, device: int) -> list[tuple[int, bytes]]:
        """What a device has sealed in the log or in the charges, by number, the oldest first."""
        found = self.read(f"SELECT sequence, sealed FROM {table} WHERE device = ? ORDER BY sequence", device)  # noqa: S608 - ours
        return [(number, self.unseal(table, device, number, sealed)) for number, sealed in found]

    def added(self, table: str, device: int, number: int, plain: bytes) -> StoreWrite:
        """The statement that writes such a record; it fails where another process was faster."""
        sealed = self.seal(table, device, number, plain)
        return StoreWrite(f"INSERT INTO {table} VALUES (?, ?, ?)", (device, number, sealed))  # noqa: S608 - ours

    def next_number(self, table: str, device: int) -> int:
        """The sequence number after the last one of a device in a table."""
        [(last,)] = self.read(f"SELECT max(sequence) FROM {table} WHERE device = ?", device)  # noqa: S608 - ours
        return int(last or 0) + 1

    def emptied(self) -> None:
        """Empty the journal beside the file, which holds what was deleted until it is written over."""
        with _translated(self.path):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def forgotten(self) -> None:
        """Close and remove the file, the journal beside it, and its key."""
        self.close()
        for path in (self.path, *(Path(f"{self.path}{end}") for end in ("-wal", "-shm")), key_file(self.path)):
            path.unlink(missing_ok=True)

    def _cipher(self, device: int) -> AESGCM:
        if device not in self._ciphers:
            self._ciphers[device] = AESGCM(self._derived(f"device {device}"))
        return self._ciphers[device]

    def _derived(self, purpose: str) -> bytes:
        """HKDF-Expand alone (RFC 5869): the store's key is uniform, so there is nothing to extract."""
        return expand(self._key, f"hazemap device store 1 {purpose}".encode(), 32)

    def __repr__(self) -> str:
        return f"EncryptedStore({str(self.path)!r})"


def _place(table: str, device: int, number: int | bytes, expires: int) -> bytes:
    name = number.hex() if isinstance(number, bytes) else str(number)
    return f"hazemap device store 1|{table}|{device}|{name}|{expires}".encode()


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "cache_size = -4096"):
        database.execute(f"PRAGMA {pragma}").fetchall()
    return database


def _recognised(path: Path, database: sqlite3.Connection, secret: StoreSecret) -> bytes:
    """The key of a store that is what it should be; a file that is empty becomes one."""
    database.execute("BEGIN IMMEDIATE")
    [application], [version], [tables] = (
        database.execute(question).fetchone()
        for question in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if (application, version, tables) == (0, 0, 0):
        key = _made(path, database, secret)
        database.execute("COMMIT")
        return key
    database.execute("ROLLBACK")
    if application != _APPLICATION:
        raise FileError(f"{path} is a database, but not a device's: choose another file")
    if version != _SCHEMA:
        raise FileError(f"the store {path} was written by another version of hazemap ({version}): use that one")
    about = dict(database.execute("SELECT name, value FROM about"))
    origin = KeyOrigin(about["origin"])
    if origin is not secret.origin:
        raise InputError(f"the store {path} is opened by {origin.value}; found {secret.origin.value}")
    key = secret.opened(path, about["salt"], new=False)
    try:
        AESGCM(key).decrypt(about["check"][:_NONCE], about["check"][_NONCE:], _CHECK)
    except InvalidTag:
        raise FileError(f"this is not the secret that the store {path} was made with; nothing was opened") from None
    return key


def _made(path: Path, database: sqlite3.Connection, secret: StoreSecret) -> bytes:
    salt, nonce = os.urandom(16), os.urandom(_NONCE)
    key = secret.opened(path, salt, new=True)
    for statement in _TABLES:
        database.execute(statement)
    check = nonce + AESGCM(key).encrypt(nonce, sha256(salt).digest(), _CHECK)
    about = (("origin", secret.origin.value), ("salt", salt), ("check", check))
    database.executemany("INSERT INTO about VALUES (?, ?)", about)
    return key


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """What SQLite or the system has against the store, in words."""
    try:
        yield
    except HazemapError:
        raise
    except OSError as error:
        raise FileError(f"the store {path} cannot be reached ({error.strerror}): make its folder writable") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        advice = {
            sqlite3.SQLITE_BUSY: "another process has held it for a minute: try again",
            sqlite3.SQLITE_FULL: "the disk is full: make room and try again",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened: make its folder writable",
            sqlite3.SQLITE_READONLY: "it cannot be written: make it writable",
            sqlite3.SQLITE_NOTADB: "it is not a device's store, or is damaged: bring it back from a copy",
        }.get(code, "it is damaged, or its disk does not work: bring it back from a copy")
        raise FileError(f"the store {path}: {advice} ({type(error).__name__})") from error


GATHER = 0.003
"""Seconds for which others may join a transaction."""


@dataclass(eq=False)
class CommitQueue:
    """Gathers statements into transactions; a device goes on when its own are on the disk."""

    store: EncryptedStore
    _waiting: list[tuple[Sequence[StoreWrite], asyncio.Future[None]]] = field(default_factory=list)

    async def write(self, writes: Sequence[StoreWrite]) -> None:
        """Have these statements written, all or none; `FileError` where they could not be."""
        if not writes:
            return
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(GATHER, self._flush)
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((writes, done))
        await done

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            outcomes = self.store.commit([writes for writes, _ in waiting])
        except Exception as error:
            for _, done in waiting:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), outcome in zip(waiting, outcomes, strict=True):
            if done.done():  # its device was stopped meanwhile; what it wrote stays
                continue
            if outcome is None:
                done.set_result(None)
            else:
                done.set_exception(outcome)
