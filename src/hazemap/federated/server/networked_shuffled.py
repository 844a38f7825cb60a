"""The trust model of a campaign through a shuffler: people send parts, the coordinator opens and adds them up.

A round's batch follows from its announcement, and the keys of both from a secret that is stored with it and deleted
with the answer. So a coordinator that is killed anywhere announces the same batch again, admits the same people to it,
and opens the same messages, which the shuffler holds until it is told to forget them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from fractions import Fraction
from time import monotonic
from typing import ClassVar, TypeVar

from hazemap.errors import HazemapError, NotOpened, Refused, Unreachable
from hazemap.federated.protocols.shuffle.sealed_parts import opened
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.shuffled_reports import ReportParameters, summed_reports
from hazemap.federated.protocols.shuffle.submission import issued
from hazemap.federated.server.announced_rounds import Announcement, given_up
from hazemap.federated.server.campaign_spec import prices_of
from hazemap.federated.server.carried_rounds import CarriedCampaign
from hazemap.federated.server.device_enrolment import Device
from hazemap.federated.server.failed_round import PAID
from hazemap.federated.shuffler.analyser_client import AnalyserClient
from hazemap.federated.trust.cohort_assumptions import noisy_answer
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.randomised_reports import ReportLaw, debiased
from hazemap.federated.trust.report_carriers import ByShuffler, CarriedTask
from hazemap.federated.trust.shuffled import (
    ShuffledReportPrices,
    batch_terms,
    shuffled_batch,
    shuffled_contents,
    shuffled_law,
    shuffled_noise,
    shuffled_parts,
)
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

log = logging.getLogger("hazemap.federated.server")

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds for which a shuffler may not be there."""
KEY = 32
"""Bytes of the secret that the analyser's key is made of; the rest makes people's numbers."""


class NetworkedShuffled(CarriedCampaign):
    """Each round is a batch of parts; its sums carry the noise that all of its people made together."""

    SECRET: ClassVar[int] = 64

    @property
    def carrier(self) -> ByShuffler:
        """The shuffler."""
        found = super().carrier
        assert isinstance(found, ByShuffler)  # noqa: S101 - `WIRED` gives such campaigns only
        return found

    def task(self, question: Question, price: Budget, law: ReportLaw | None = None) -> Task:
        """The next round, with the law of its reports where the analyser sees them. Finding it takes a moment."""
        prices = prices_of(self.campaign)
        if isinstance(prices, ShuffledReportPrices) and isinstance(question, Query):
            law = prices.law(question.share)
        return super().task(question, price, law)

    async def answer(self, question: Question, price: Budget) -> Answer:
        """Announce a batch, wait for its people, open what the shuffler hands on; stored when this returns."""
        import httpx

        announcement, carried = await self.announced(await asyncio.to_thread(self.task, question, price))
        key = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, announcement.secret[:KEY])
        issuer, secret = self.house.identity, announcement.secret[KEY:]
        terms = await asyncio.to_thread(batch_terms, carried, issuer.public, key.public)

        def admitted(device: Device) -> bytes:
            return key.public + issued(issuer, secret, terms.digest, device.identity)

        url = self.carrier.shuffler
        async with httpx.AsyncClient(base_url=url, verify=self.house.peers.trusting(), timeout=60) as http:
            shuffler = AnalyserClient(http, self.house.peers.token(url))
            if (await patiently(shuffler.key)).hex() != self.carrier.key:
                raise Refused(f"the shuffler at {url} has another key than this campaign told its people")
            await patiently(lambda: shuffler.announce(terms))
            if (await patiently(lambda: shuffler.state(terms.digest))).state == "open":  # else nobody pays any more
                await self.reported(announcement, admitted)
            messages = await patiently(lambda: shuffler.collected(terms))
            log.info("%s, round %d: %d messages of a batch", self.campaign.name, carried.task.round, len(messages))
            try:
                answer = await asyncio.to_thread(_answered, carried, key, messages)
            except Refused as error:
                raise await self._spoiled(announcement, shuffler, terms, error) from error
            answer = await self.stored(carried.task, answer)
            self.rounds += 1
            await self._forgotten(shuffler, terms)
        return answer

    async def _forgotten(self, shuffler: AnalyserClient, terms: BatchTerms) -> None:
        """Have a batch forgotten whose key is gone; where that fails, the shuffler does so by itself, later."""
        try:
            await patiently(lambda: shuffler.forget(terms.digest))
        except HazemapError as error:
            log.warning("%s: a batch was not forgotten yet: %s", self.campaign.name, error)

    async def _spoiled(
        self, announcement: Announcement, shuffler: AnalyserClient, terms: BatchTerms, error: Refused
    ) -> NotOpened:
        """Give a batch up that cannot be added up: it is read by nobody, and asking again is another batch.

        Nobody can say whose message it was (docs/concepts/shuffle.md), so the batch is not asked for without them.
        """
        await self.store.write(*given_up(announcement.batch))
        await self._forgotten(shuffler, terms)
        return NotOpened(
            f"round {announcement.round}: {error}{PAID}`hazemap campaign resume` asks its people once more, who pay "
            "again, and never more than the campaign said"
        )


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """What the shuffler says, once it can be reached: it may be started again meanwhile. `Unreachable` in the end."""
    until, pause = monotonic() + PATIENCE, 0.1
    while True:
        try:
            return await work()
        except Unreachable:
            if monotonic() > until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, 30.0)


def _answered(carried: CarriedTask, key: HpkeKeyPair, messages: Sequence[bytes]) -> Answer:
    """The noisy sums of a whole batch, and the law of the noise that is really in them. Some 100 µs a message.

    `Refused` for one that must not be published.
    """
    law, contents = shuffled_law(carried), shuffled_contents(carried)
    if law is not None and isinstance(contents, ReportParameters):
        found, honest = summed_reports(contents, key, messages), shuffled_batch(carried).honest
        if found.people < honest:
            raise Refused(
                f"of {len(messages):,} messages {found.people:,} are reports, but those of {honest:,} people have to "
                "hide each other: more people, or the shuffler, are dishonest than the campaign assumes"
            )
        return debiased(law, found.sums, found.people, Stream.from_os())
    found, noise = opened(shuffled_parts(carried), key, messages), shuffled_noise(carried)
    parts = Fraction(found.people, shuffled_batch(carried).honest)
    return noisy_answer(found.sums, noise.scale, parts, found.people)
