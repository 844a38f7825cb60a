"""What trust models have in common whose reports go to other servers: choose people, announce, wait, store."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, time
from typing import ClassVar, Protocol

from hazemap.codec import dumps, loads
from hazemap.errors import NotOpened, TranscriptMismatch, Unanswerable
from hazemap.federated.server.announced_rounds import (
    Announcement,
    Issue,
    Turnout,
    forgotten,
    no_credentials,
    nothing_more,
    stored_announcement,
)
from hazemap.federated.server.campaign_house import CampaignHouse
from hazemap.federated.server.campaign_spec import ORDER, Campaign
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import Device
from hazemap.federated.server.networked_secure_aggregation import LOOK, RoundOrder, sample
from hazemap.federated.service.store import Write
from hazemap.federated.trust.cohort_assumptions import Sampling
from hazemap.federated.trust.device_tasks import Task, round_price
from hazemap.federated.trust.report_carriers import CARRIED, CarriedTask, ReportCarrier
from hazemap.privacy.budget import Budget
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question

log = logging.getLogger("hazemap.federated.server")

_EXCHANGE = "INSERT INTO exchanges (campaign, round, question, answer) VALUES (?, ?, ?, ?)"
_FIRST = (
    "SELECT device FROM announced_people JOIN announcements USING (batch) WHERE campaign = ? "
    "AND round = (SELECT min(round) FROM announcements AS every WHERE every.campaign = announcements.campaign)"
)


class CarriedOrder(RoundOrder, Protocol):
    """What a round needs to know of the campaign or the study whose reports others carry."""

    @property
    def carrier(self) -> ReportCarrier | None:
        """Who carries them."""

    @property
    def trust(self) -> str:
        """The carrier's name."""


@dataclass
class CarriedRounds:
    """Rounds whose reports are carried by others. A sibling says what is told, and how sums come back."""

    campaign: CarriedOrder
    house: CampaignHouse
    missing: int = 0
    SECRET: ClassVar[int] = 0
    """Random bytes that only this server knows of a round, from which a sibling makes keys."""

    @property
    def store(self) -> CampaignStore:
        """Where everything is kept."""
        return self.house.store

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
        asked = exchange(task.campaign, task.round, dumps(task.question), dumps(answer))
        await self.store.write(asked, forgotten(task.campaign, task.round))
        return answer

    async def _people(self, round_: int) -> list[Device]:
        """Whom this round asks: those of the first round, or others who are there, as the cohort says."""
        cohort, house = self.campaign.cohort, self.house
        if round_ > 1 and cohort.sampling is Sampling.ONE:
            rows = await asyncio.to_thread(self.store.read, _FIRST, self.campaign.name)
            if first := {name for (name,) in rows}:
                return [device for device in house.enrolled if device.name in first]
        until = monotonic() + self.campaign.wait
        while True:
            there = house.enrolled.recent(house.pace.recent(len(house.enrolled)))
            self.missing = max(0, cohort.people - len(there))
            if not self.missing:
                return sample(there, cohort.people, Stream.from_os())
            if monotonic() >= until:
                raise NotOpened(
                    f"round {round_} asks {cohort.people:,} people, but within {self.campaign.wait:g} s only "
                    f"{len(there):,} devices were there: ask fewer people, or wait for longer"
                )
            await asyncio.sleep(LOOK)


@dataclass
class CarriedCampaign(CarriedRounds):
    """The rounds of a campaign: each answers the next question of its method."""

    campaign: Campaign
    rounds: int = 0

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return issubclass(question, Query)

    def task(self, question: Question, price: Budget, law: Asymmetric | None = None) -> Task:
        """The next round as devices weigh it; with the law of reports that whoever opens them sees."""
        if not isinstance(question, Query) or question.cohort is not None:
            raise Unanswerable("devices answer queries for sums, and ask everybody in the campaign")
        campaign = self.campaign
        return Task(
            campaign=campaign.name,
            purpose=campaign.purpose,
            round=self.rounds + 1,
            question=question,
            price=round_price(price),
            budget=campaign.budget,
            cohort=campaign.cohort,
            randomiser=law,
        )


def exchange(campaign: str, round_: int, question: str, answer: str) -> Write:
    """The statement that stores a question and its answer."""
    return Write(_EXCHANGE, (campaign, round_, question, answer))
