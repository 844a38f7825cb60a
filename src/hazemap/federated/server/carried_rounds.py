"""What trust models have in common whose reports go to other servers: choose people, announce, wait, store."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import time
from typing import ClassVar

from hazemap.codec import dumps, loads
from hazemap.errors import TranscriptMismatch
from hazemap.federated.server.announced_rounds import (
    Announcement,
    Issue,
    Turnout,
    forgotten,
    no_credentials,
    nothing_more,
    stored_announcement,
)
from hazemap.federated.server.campaign_house import CampaignRounds, OrderedRounds, sample
from hazemap.federated.server.campaign_spec import ORDER
from hazemap.federated.server.campaign_store import exchange_write
from hazemap.federated.server.device_enrolment import Device
from hazemap.federated.trust.cohort_assumptions import Sampling
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import CARRIED, CarriedTask, ReportCarrier
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer

log = logging.getLogger("hazemap.federated.server")

_FIRST = (
    "SELECT device FROM announced_people JOIN announcements USING (batch) WHERE campaign = ? "
    "AND round = (SELECT min(round) FROM announcements AS every WHERE every.campaign = announcements.campaign)"
)


@dataclass
class CarriedRounds(OrderedRounds):
    """Rounds whose reports are carried by others. A sibling says what is told, and how sums come back."""

    SECRET: ClassVar[int] = 0
    """Random bytes that only this server knows of a round, from which a sibling makes keys."""

    @property
    def carrier(self) -> ReportCarrier:
        """Who carries the reports."""
        assert self.campaign.carrier is not None  # noqa: S101 - whoever has none is asked otherwise
        return self.campaign.carrier

    async def announced(self, task: Task) -> tuple[Announcement, CarriedTask]:
        """The round's announcement: the one that was stored, or a new one, stored before anybody is shown it."""
        found = await asyncio.to_thread(stored_announcement, self.store, self.campaign.name, task.round)
        if found is not None and len(found.secret) < self.SECRET:
            raise TranscriptMismatch(f"what round {task.round} is opened with is gone: it is over")
        if found is not None:
            return found, await asyncio.to_thread(loads, found.task, CARRIED, CarriedTask, ORDER)
        people = await self._people(task.round)
        batch = os.urandom(32)
        carried = CarriedTask(task, self.carrier, batch.hex(), int(time()))
        text = await asyncio.to_thread(dumps, carried)
        made = Announcement(batch, self.campaign.name, task.round, text, os.urandom(self.SECRET))
        await self.store.write(*made.begun(people))
        log.info("%s, round %d: %d people report by %s", task.campaign, task.round, len(people), self.campaign.trust)
        return made, carried

    async def reported(
        self,
        announcement: Announcement,
        own: Callable[[Device], bytes] = nothing_more,
        issue: Issue = no_credentials,
    ) -> Turnout:
        """Wait for the people's reports; `NotOpened` where fewer came than the carrier opens.

        `own` is what each of them alone is told besides the announcement, `issue` gives out credentials.
        """
        least, deadlines = self.carrier.minimum, self.campaign.deadlines
        terms = deadlines.masked, deadlines.quiet, own, issue
        turnout = await self.house.announcing.turnout(announcement, least, *terms)
        turnout.check(announcement.round, least)
        return turnout

    async def stored(self, task: Task, answer: Answer) -> Answer:
        """Store a round's answer, and forget what it was opened with."""
        asked = exchange_write(task.campaign, task.round, task.question, answer)
        await self.store.write(asked, forgotten(task.campaign, task.round))
        return answer

    async def _people(self, round_: int) -> list[Device]:
        """Whom this round asks: those of the first round, or others who are there, as the cohort says."""
        cohort, house = self.campaign.cohort, self.house
        if round_ > 1 and cohort.sampling is Sampling.ONE:
            rows = await asyncio.to_thread(self.store.read, _FIRST, self.campaign.name)
            if first := {name for (name,) in rows}:
                return [device for device in house.enrolled if device.name in first]
        return sample(await self._enough(round_), cohort.people, Stream.from_os())


class CarriedCampaign(CampaignRounds, CarriedRounds):
    """The rounds of a campaign whose reports are carried by others."""
