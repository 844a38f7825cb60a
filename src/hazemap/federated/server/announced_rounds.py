"""Rounds whose reports go to other servers: the coordinator announces what is asked, and hears who has reported.

A device is shown the announcement until it says that its report has arrived where it goes, or that it declines. What
it says is on the disk before it is acknowledged. A round that was announced keeps its people and its batch however
often the server is started: a device that has reported sends the same bytes again, for nothing. Polling intervals are
short enough for the work and long enough for the server.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from hazemap.errors import NotOpened, Refused
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import Device, SeatTask
from hazemap.federated.server.failed_round import PAID
from hazemap.federated.server.shard import LateAnswer
from hazemap.federated.service.store import Contradiction, Write
from hazemap.federated.trust.report_carriers import ANNOUNCED

_OVER: Final = "this round is over, or does not ask this device: ask for work again"
ASKED: Final = "asked"
SENT: Final = "sent"
DECLINED: Final = "declined"

_NEW = "INSERT INTO announcements (batch, campaign, round, task, secret) VALUES (?, ?, ?, ?, ?)"
_PERSON = "INSERT INTO announced_people (batch, device, state, reason) VALUES (?, ?, 'asked', '')"
_FOUND = "SELECT batch, task, secret FROM announcements WHERE campaign = ? AND round = ?"
_PEOPLE = "SELECT device, state, reason FROM announced_people WHERE batch = ? ORDER BY device"
_REPLY = "UPDATE announced_people SET state = ?, reason = ? WHERE batch = ? AND device = ? AND state = 'asked'"
_CREDITED = (
    "INSERT INTO credited_people (batch, device) SELECT batch, device FROM announced_people "
    "WHERE batch = ? AND device = ? AND state <> 'declined' "
    "ON CONFLICT (batch, device) DO UPDATE SET device = excluded.device"
)
_ALL_CREDITED = "SELECT count(*) FROM credited_people WHERE batch = ?"
_NOBODY = "DELETE FROM announced_people WHERE batch = ?"
_NEVER = "DELETE FROM announcements WHERE batch = ?"
_CLOSED = "UPDATE announcements SET secret = NULL WHERE campaign = ? AND round = ?"


@dataclass(frozen=True)
class Announcement:
    """A round as it is stored: its batch of 32 bytes, the task that devices see, what only this server knows."""

    batch: bytes
    campaign: str
    round: int
    task: str
    secret: bytes = field(repr=False)

    def begun(self, people: Iterable[Device]) -> tuple[Write, ...]:
        """The statements that store it: before anybody is shown it."""
        new = Write(_NEW, (self.batch, self.campaign, self.round, self.task, self.secret))
        return (new, *(Write(_PERSON, (self.batch, each.name)) for each in people))


def stored_announcement(store: CampaignStore, campaign: str, round_: int) -> Announcement | None:
    """The announcement of a round that was begun."""
    found = store.read(_FOUND, campaign, round_)
    if not found:
        return None
    [(batch, task, secret)] = found
    return Announcement(bytes(batch), campaign, round_, task, b"" if secret is None else bytes(secret))


def forgotten(campaign: str, round_: int) -> Write:
    """The statement that deletes what only this server knew of a round, once it is answered."""
    return Write(_CLOSED, (campaign, round_))


def check_counted(store: CampaignStore, announcement: Announcement, reports: int) -> None:
    """`Refused`, in words, where servers have counted more reports than people were given a credential.

    Each of the two counts a credential once, whatever the other says; a number with noise is never looked at.
    """
    [(issued,)] = store.read(_ALL_CREDITED, announcement.batch)
    if reports > issued:
        raise Refused(
            f"round {announcement.round}: the servers counted {reports:,} reports, but only {issued:,} people were "
            f"given a credential for one: a server does not follow the protocol, so nothing of this round is "
            f"published{PAID}ask other servers"
        )


def given_up(batch: bytes) -> tuple[Write, ...]:
    """The statements that make a round as if it had not been announced: asked again, it has another batch."""
    return Write(_NOBODY, (batch,)), Write(_NEVER, (batch,))


@dataclass(frozen=True)
class Turnout:
    """How many of a round's people have reported, declined (by reason), or said nothing."""

    sent: int
    declined: Counter[str]
    silent: int

    def check(self, round_: int, least: int) -> None:
        """`NotOpened`, in words, unless enough have reported."""
        if self.sent >= least:
            return
        why = [f"{self.silent:,} did not answer in time"] * bool(self.silent)
        if self.declined:
            [(reason, _)] = self.declined.most_common(1)
            why.append(f"{self.declined.total():,} declined (most often: {reason[:200]})")
        asked = self.sent + self.silent + self.declined.total()
        raise NotOpened(
            f"round {round_}: {self.sent:,} of {asked:,} people have reported, and {least:,} had to; {', '.join(why)}"
            f"{PAID}`hazemap campaign resume` waits for the same people again, which costs those who have reported "
            "nothing, and `hazemap campaign release-partial` publishes what earlier rounds answered"
        )


def nothing_more(_: Device) -> bytes:
    """What a device is told besides a round that is the same for all."""
    return b""


def no_credentials(_: Device, keys: bytes) -> bytes:  # noqa: ARG001 - see `Issue`
    """Of a round whose carrier takes no credentials that a device asks for."""
    raise LateAnswer("no credentials are given out for this round")


Issue = Callable[[Device, bytes], bytes]
"""A device's credentials for a round, for keys that it has signed: the same each time. `Refused` for others."""


class OpenRound:
    """A round while devices report. `own` is what each device alone is told besides, `issue` gives credentials out."""

    def __init__(
        self,
        announcement: Announcement,
        states: dict[str, tuple[str, str]],
        until: datetime,
        own: Callable[[Device], bytes],
        issue: Issue = no_credentials,
    ) -> None:
        self.announcement, self.states, self.until, self.own, self.issue = announcement, states, until, own, issue
        self.changed = asyncio.Event()
        self.credited = set[str]()
        """devices of which it is on the disk that they were given credentials"""

    @property
    def turnout(self) -> Turnout:
        """How it stands."""
        states = Counter(state for state, _ in self.states.values())
        declined = Counter(reason for state, reason in self.states.values() if state == DECLINED)
        return Turnout(states[SENT], declined, states[ASKED])

    def waits_for(self, device: Device) -> bool:
        """Whether this device has not said anything yet."""
        return self.states.get(device.name, ("", ""))[0] == ASKED


class AnnouncedRounds:
    """All rounds that are announced now."""

    def __init__(self, store: CampaignStore) -> None:
        self.running: dict[bytes, OpenRound] = {}
        self._store = store

    async def turnout(
        self,
        announcement: Announcement,
        enough: int,
        seconds: float,
        quiet: float | None = None,
        own: Callable[[Device], bytes] = nothing_more,
        issue: Issue = no_credentials,
    ) -> Turnout:
        """Show it to its people until all have answered, or the time is over; what was stored of them counts.

        With `quiet` it also ends once `enough` have reported and nobody more has for so many seconds.
        """
        rows = await asyncio.to_thread(self._store.read, _PEOPLE, announcement.batch)
        states = {name: (state, reason) for name, state, reason in rows}
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        there = OpenRound(announcement, states, until, own, issue)
        self.running[announcement.batch] = there
        try:
            while (left := (until - datetime.now(UTC)).total_seconds()) > 0 and there.turnout.silent:
                pause = min(left, quiet) if quiet is not None and there.turnout.sent >= enough else left
                there.changed.clear()
                try:
                    async with asyncio.timeout(pause):  # `wait_for` may lose a cancellation
                        await there.changed.wait()
                except TimeoutError:
                    break
            return there.turnout
        finally:
            del self.running[announcement.batch]

    def asks(self, device: Device, batch: bytes) -> bool:
        """Whether a device is among a round's people."""
        return self._asking(device, batch) is not None

    def _asking(self, device: Device, batch: bytes) -> OpenRound | None:
        there = self.running.get(batch)
        return there if there is not None and device.name in there.states else None

    def work(self, device: Device) -> SeatTask | None:
        """The first announcement that a device has not answered. O(rounds)."""
        for batch, there in self.running.items():
            if there.waits_for(device):
                return SeatTask(batch, ANNOUNCED, there.announcement.task, there.own(device), there.until)
        return None

    async def credentials(self, device: Device, batch: bytes, keys: bytes) -> bytes:
        """A device's credentials for a round; that it has them is on the disk before they leave.

        Who asks again gets the same. Who has said that the report has arrived may ask again, too: the answer is lost.
        `Refused` for keys that the device has not signed. `LateAnswer` if unasked, or where the device has declined:
        the database decides that, whatever the device says at the same time.
        """
        there = self._asking(device, batch)
        if there is None or there.states[device.name][0] == DECLINED:
            raise LateAnswer(_OVER)
        made = await asyncio.to_thread(there.issue, device, keys)
        if device.name not in there.credited:
            try:
                await self._store.write(Write(_CREDITED, (batch, device.name), rows=1))
            except Contradiction:
                raise LateAnswer(_OVER) from None
            there.credited.add(device.name)
        return made

    async def answered(self, device: Device, batch: bytes, declined: str | None, *also: Write) -> None:
        """A device says that it has reported, or why it declines: on the disk when this returns.

        `LateAnswer` if unasked. What is written `also` is in its transaction, or alone where the device had answered
        before.
        """
        there = self._asking(device, batch)
        if there is None:
            raise LateAnswer(_OVER)
        if not there.waits_for(device):
            if also:
                await self._store.write(*also)
            return
        state = (SENT, "") if declined is None else (DECLINED, declined)
        await self._store.write(Write(_REPLY, (*state, batch, device.name)), *also)
        there.states[device.name] = state
        there.changed.set()


@dataclass(frozen=True)
class Pace:
    """Waits that keep the polls of any number of devices near a rate.

    With n devices, each of which asks every w seconds, the server sees n/w polls a second. Where a device takes part
    in a secure sum that waits for others it comes back after n/`busy` seconds, n the people in running sums, but not
    sooner than `least`; otherwise after N/`idle`, N all devices, and between `least` and `most`: at the shorter end
    while a campaign is about to ask. Each wait is drawn from half to one and a half of that, so that devices that
    were started together drift apart.

    >>> Pace().idle_wait(5_000, asking=False), Pace().busy_wait(2_000)
    (20.0, 2.0)
    """

    busy: float = 1_000
    idle: float = 250
    least: float = 0.5
    most: float = 300
    calm: float = 10

    def busy_wait(self, people: int) -> float:
        """Seconds for one that takes part in a sum, on average."""
        return max(self.least, people / self.busy)

    def idle_wait(self, devices: int, asking: bool) -> float:
        """Seconds for one that has nothing to do, on average; `asking`: a campaign is running."""
        if asking:
            return min(self.most, max(2 * self.least, devices / self.busy))
        return min(self.most, max(self.calm, devices / self.idle))

    def recent(self, devices: int) -> float:
        """Who was not heard of for so long, three waits, is not there."""
        return 4.5 * self.idle_wait(devices, asking=False) + 5


def jittered(wait: float) -> float:
    """A wait from half to one and a half as long, uniformly."""
    return wait * (0.5 + int.from_bytes(os.urandom(2), "big") / 65536)
