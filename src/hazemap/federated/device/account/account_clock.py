"""The time by which a device's budgets come back: what has passed for certain, whatever its clock says.

A clock is set forward by a network that lies about the time, a flat battery or a hand; a budget that came back with it
would be spent twice. So the account has a time of its own. It begins with the clock's, or with the last charge where
there is one, and goes on with the machine's uptime, which nobody sets and which runs while it sleeps. It stands still
while the machine is off: nothing on it knows for how long. Who is sure of the date says so (`confirmed`).

> Between two charges the account's time never goes further than time itself, unless the person has confirmed a date.
> So what is charged in any true period is within its cap.

Uptime counts only from one look to the next of one boot, so a boot id that is never the same makes budgets come back
later, never sooner. Two processes of one boot read the same line. A charge brings the first line of a boot with it, in
its transaction, and fails if another process has written one meanwhile. A process that is stopped between its look and
its charge, as by a lid that is closed, dates that one charge too early.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from hazemap.errors import FileError, InputError
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LAST = datetime.max.replace(tzinfo=UTC)


class Uptime(NamedTuple):
    """Nanoseconds that never go back within one boot."""

    boot: str
    nanoseconds: int


def system_uptime() -> Uptime:
    """The machine's. Where it does not name its boots, each process counts as one.

    >>> system_uptime() <= system_uptime()
    True
    """
    which = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Uptime(_boot(), time.clock_gettime_ns(which))


@lru_cache(maxsize=1, typed=True)
def _boot() -> str:
    try:
        return _BOOT.read_text().strip() or str(uuid4())
    except OSError:
        return str(uuid4())


class ClockReading(NamedTuple):
    """The account's time, and what has to be written with a charge of this time."""

    now: datetime
    writes: tuple[StoreWrite, ...] = ()


class _Line(NamedTuple):
    """The account's time at an uptime, as it is sealed."""

    now: datetime
    uptime: Uptime
    sealed: bytes


@dataclass(frozen=True)
class AccountClock:
    """The clock of all accounts of a store: 30 µs a look."""

    store: EncryptedStore
    uptime: Callable[[], Uptime] = system_uptime

    def reading(self, clock: datetime) -> ClockReading:
        """The time now, of which `clock`, what the device's own clock says, tells only the beginning.

        Take the number of a charge before: then no other process can charge by another line unseen.
        """
        line, uptime = self._line(), self.uptime()
        now = self._now(line, uptime, clock)
        known = line is not None and line.uptime.boot == uptime.boot
        return ClockReading(now, () if known else (self._written(line, now, uptime),))

    def keep(self, clock: datetime) -> None:
        """Note the time, so that what has passed counts after a restart too; whoever is faster notes as much."""
        line, uptime = self._line(), self.uptime()
        self.store.commit([(self._written(line, self._now(line, uptime, clock), uptime),)])

    def confirmed(self, clock: datetime, today: date) -> None:
        """Go on from what the clock says, if that is the day that somebody knows it to be, by whatever time zone."""
        if abs(clock.astimezone(UTC).date() - today) > timedelta(days=1):
            raise InputError(f"the clock of this device says {clock:%Y-%m-%d}, not {today}: put it right first")
        line, uptime = self._line(), self.uptime()
        [failed] = self.store.commit([(self._written(line, max(clock, self._now(line, uptime, clock)), uptime),)])
        if failed is not None:
            raise FileError(f"another process has noted the time in {self.store.path} meanwhile: try again")

    def _line(self) -> _Line | None:
        found = self.store.read("SELECT value FROM about WHERE name = 'clock'")
        if not found:
            return None
        plain = json.loads(self.store.unseal("clock", 0, 1, found[0][0]))
        return _Line(datetime.fromisoformat(plain["now"]), Uptime(plain["boot"], plain["uptime"]), found[0][0])

    def _now(self, line: _Line | None, uptime: Uptime, clock: datetime) -> datetime:
        if line is None:
            return self._last_charge() or clock
        if line.uptime.boot != uptime.boot:
            return line.now
        passed = max(0, uptime.nanoseconds - line.uptime.nanoseconds)
        try:
            return line.now + timedelta(microseconds=passed // 1_000)
        except OverflowError:
            return _LAST

    def _last_charge(self) -> datetime | None:
        """By the clock that older versions charged by; O(charges), once in the life of a store."""
        devices = [device for (device,) in self.store.read("SELECT DISTINCT device FROM charges")]
        times = (json.loads(plain)["time"] for device in devices for _, plain in self.store.records("charges", device))
        return max(map(datetime.fromisoformat, times), default=None)

    def _written(self, line: _Line | None, now: datetime, uptime: Uptime) -> StoreWrite:
        plain = {"now": now.isoformat(), "boot": uptime.boot, "uptime": uptime.nanoseconds}
        sealed = self.store.seal("clock", 0, 1, json.dumps(plain).encode())
        if line is None:
            return StoreWrite("INSERT INTO about VALUES ('clock', ?)", (sealed,))
        return StoreWrite("UPDATE about SET value = ? WHERE name = 'clock' AND value = ?", (sealed, line.sealed))
