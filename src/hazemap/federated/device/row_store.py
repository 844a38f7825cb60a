"""A person's own rows: kept for some days, read only to answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.device.encrypted_store import EncryptedStore
from hazemap.federated.device.session_records import leave_all

DAY = 86_400
COLUMNS = ("time", "lon", "lat", "weight", "mark")
NEVER = 1 << 40
"""The day on which rows expire that are kept for good."""


@dataclass(frozen=True, eq=False)
class PersonRows:
    """Where one person was: seconds since 1970 (UTC), degrees, how much each row weighs, and its mark. All float64.

    A mark is 1 for yes and 0 for no (see `values.boolean_attribute.BinaryAttribute`), NaN where a row has none.

    >>> PersonRows.of([2.35], [48.85], time=0).weight
    array([1.])
    """

    time: NDArray[np.float64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    weight: NDArray[np.float64]
    mark: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len({column.shape for column in vars(self).values()}) != 1 or self.lon.ndim != 1:
            raise InputError("rows have a time, a longitude, a latitude, a weight and a mark each")

    @classmethod
    def of(cls, lon: object, lat: object, time: float) -> "PersonRows":
        """Places of one time, each of weight 1 and without a mark."""
        x, y = (np.asarray(column, dtype=np.float64) for column in (lon, lat))
        return cls(np.full(x.shape, float(time)), x, y, np.ones(x.shape), np.full(x.shape, np.nan))

    def __len__(self) -> int:
        return len(self.lon)

    def to_bytes(self) -> bytes:
        """The columns one after the other, little-endian."""
        return b"".join(getattr(self, name).astype("<f8").tobytes() for name in COLUMNS)

    @classmethod
    def from_bytes(cls, data: bytes) -> "PersonRows":
        """What `to_bytes` wrote."""
        return cls(*np.frombuffer(data, dtype="<f8").reshape(len(COLUMNS), -1))

    def days(self) -> Iterator[tuple[int, "PersonRows"]]:
        """The rows of each day; a row whose time is not known is of day 0."""
        day = np.floor(np.nan_to_num(self.time) / DAY).astype(np.int64)
        order = np.argsort(day, kind="stable")
        for chosen in np.split(order, np.flatnonzero(np.diff(day[order])) + 1) if len(order) else ():
            yield int(day[chosen[0]]), PersonRows(*(getattr(self, name)[chosen] for name in COLUMNS))


@dataclass(frozen=True)
class Rows:
    """The rows of one device.

    Rows of one day are sealed together. `keep` days after their own time they are deleted for good.
    """

    store: EncryptedStore
    device: int

    def add(self, places: PersonRows, keep: int | None) -> int:
        """Keep rows for `keep` days from their own time (None: for good); how many were written."""
        return added(self.store, {self.device: places}, keep)

    def all(self) -> PersonRows:
        """All rows, in the order in which they were added."""
        pages = self.store.read(
            "SELECT sequence, expires, sealed FROM rows WHERE device = ? ORDER BY sequence", self.device
        )
        each = [
            PersonRows.from_bytes(self.store.unseal("rows", self.device, sequence, sealed, expires))
            for sequence, expires, sealed in pages
        ]
        return PersonRows(*(np.concatenate([np.zeros(0), *(getattr(p, name) for p in each)]) for name in COLUMNS))

    def table(self, sampling: bytes, campaign: str) -> MemoryTable:
        """All rows as a table of one person, drawing samples of its own for each campaign."""
        rows = self.all()
        columns = {name: getattr(rows, name) for name in COLUMNS}
        person = np.zeros(len(columns["lon"]), dtype=np.int64)
        return MemoryTable(person, columns, sha256(sampling + campaign.encode()).digest())

    def __len__(self) -> int:
        return len(self.table(b"", "").person)


def added(store: EncryptedStore, places: dict[int, PersonRows], keep: int | None) -> int:
    """Keep the rows of many devices in one transaction; how many were written."""
    if keep is not None and keep < 1:
        raise InputError(f"rows are kept for at least 1 day, or for good; found {keep}")
    with store.writing() as database:
        for device, own in places.items():
            sequence = store.next_number("rows", device)
            for number, (day, rows) in enumerate(own.days(), start=sequence):
                expires = NEVER if keep is None else day + keep + 1
                sealed = store.seal("rows", device, number, rows.to_bytes(), expires)
                database.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (device, number, expires, sealed))
    return sum(len(own) for own in places.values())


def any_rows(store: EncryptedStore) -> bool:
    """Whether there is a row of anybody."""
    return bool(store.read("SELECT 1 FROM rows LIMIT 1"))


def expire(store: EncryptedStore, now: float) -> int:
    """Delete for good what is older than it may be; of how many days and devices there was something."""
    today = int(now // DAY)
    if not store.read("SELECT 1 FROM rows WHERE expires <= ? LIMIT 1", today):
        return 0
    with store.writing() as database:
        gone = database.execute("DELETE FROM rows WHERE expires <= ?", (today,)).rowcount
    store.emptied()
    return gone


def forget(store: EncryptedStore, device: int | None = None) -> None:
    """Delete all rows of a device, or of all, for good, and leave the sessions that keep what was counted of them."""
    with store.writing() as database:
        database.execute("DELETE FROM rows WHERE ? IS NULL OR device = ?", (device, device))
        leave_all(database, device)
    store.emptied()
