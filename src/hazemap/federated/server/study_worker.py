"""One round of a study: charged, asked, and stored before anybody sees its answer; and what the study may still cost.

A study is bounded by its own limit, and by that of its analysis over all studies.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from hazemap.errors import BudgetError, HazemapError, LedgerError, StoreError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.server.announced_rounds import forgotten as no_more_secret
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.campaign_worker import CampaignCharge
from hazemap.federated.server.failed_round import PAID
from hazemap.federated.server.networked_secure_aggregation import DeviceRounds
from hazemap.federated.server.networked_two_servers import TwoServerRecipes
from hazemap.federated.service.store import Write, instant
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import Budget

log = logging.getLogger("hazemap.federated.server")

AGAIN = (
    ". What the round has cost stays paid. Ask the same recipe again when more devices are there: it goes on with this "
    "round, for nothing, while its silent devices come back or there are enough people whom it has not asked for a "
    "report; else it begins another. Or ask in a study that asks fewer people or waits for longer"
)
"""What to do about a round that was not opened."""

AGAIN_OF_BATCH = (
    ". What the round has cost stays paid. Ask the same recipe again when more devices are there: it waits for the "
    "same people and batch, for nothing, as long as the servers take its reports; then it begins another round"
)
"""The same of a round over two servers."""

_ANSWERED = "SELECT round FROM exchanges WHERE campaign = ? AND round = ?"
_END = "UPDATE study_rounds SET state = ?, reason = ?, ended = ? WHERE study = ? AND round = ? AND state = 'running'"
_LOST = "UPDATE shards SET state = 'lost', sums = NULL WHERE campaign = ? AND round = ? AND state = 'open'"
_FORGET = "DELETE FROM events WHERE session IN (SELECT session FROM shards WHERE campaign = ? AND round = ?)"
_FORGET_OPEN = (
    "DELETE FROM events WHERE session IN (SELECT session FROM shards WHERE campaign = ? AND round = ? "
    "AND (summary IS NULL OR state <> 'lost'))"
)


def failed(study: str, round_: int, reason: str) -> tuple[Write, ...]:
    """The statements that end a round which cannot go on."""
    where = study, round_
    return Write(_END, ("failed", reason, instant(), *where)), Write(_FORGET, where), Write(_LOST, where)


@dataclass
class RoundWorker:
    """Runs one round to its end, and from wherever it was when the server stopped.

    Whether the round is charged, the ledger knows; whether it is answered, the store. So a server that was killed
    charges once and asks the same people the same.
    """

    devices: DeviceRounds | TwoServerRecipes
    task: Task
    account: CampaignCharge
    price: Budget
    store: CampaignStore
    state: str = "running"

    async def run(self) -> None:
        """To the end; the store says what became of it. A store or a ledger that cannot be used leaves it running."""
        try:
            await self._asked()
            self.state, reason = "done", ""
        except (StoreError, LedgerError) as error:
            log.error("%s waits for the server to be started again: %s", self.task.campaign, error)
            raise
        except BudgetError as error:  # the ledger has no room any more: nobody was asked
            self.state, reason = "refused", str(error)
        except HazemapError as error:
            self.state, reason = "failed", str(error).partition(PAID)[0] + self._again
        except Exception as error:
            log.exception("%s: a bug in hazemap", self.task.campaign)
            self.state, reason = "failed", f"a bug in hazemap ({type(error).__name__}); the server's log says where"
        await self.end(self.state, reason)

    async def end(self, state: str, reason: str) -> None:
        """Note what became of it, and forget its messages: of a round that failed, those it cannot go on with."""
        self.state, where = state, (self.task.campaign, self.task.round)
        forget = Write(_FORGET_OPEN if state == "failed" else _FORGET, where)
        secret = [] if state == "failed" else [no_more_secret(*where)]
        await self.store.write(Write(_END, (state, reason, instant(), *where)), forget, Write(_LOST, where), *secret)
        log.info("%s, round %d: %s %s", *where, state, reason)

    async def _asked(self) -> None:
        if await asyncio.to_thread(self.store.read, _ANSWERED, self.task.campaign, self.task.round):
            return  # the server was killed when it had the answer
        await asyncio.to_thread(self.account.charge, self.price)
        await self.devices.asked(self.task)

    @property
    def _again(self) -> str:
        recipe = self.task.recipe
        return AGAIN_OF_BATCH if recipe is not None and recipe.carrier is Carrier.TWO_SERVERS else AGAIN


_OF_ANALYSIS = "SELECT epsilon, delta FROM study_rounds WHERE analysis = ? AND state <> 'refused' AND created > ?"

Paid = Sequence[tuple[Fraction, Fraction]]
"""ε and δ of each round that was paid."""


class Left(NamedTuple):
    """What may still be spent: by a study, or on its analysis by all studies together, whichever is less.

    >>> Left(Fraction(2), Fraction(1, 10**5), 3).after([(Fraction(1, 2), Fraction(1, 10**6))]).reports
    2
    """

    epsilon: Fraction
    delta: Fraction
    reports: int

    def after(self, paid: Paid) -> "Left":
        """What is left once these rounds are paid; never below 0."""
        return Left(
            max(Fraction(0), self.epsilon - sum((epsilon for epsilon, _ in paid), Fraction(0))),
            max(Fraction(0), self.delta - sum((delta for _, delta in paid), Fraction(0))),
            max(0, self.reports - len(paid)),
        )


NOTHING = Left(Fraction(0), Fraction(0), 0)


def least(one: Left, other: Left) -> Left:
    """The smaller of each."""
    return Left(min(one.epsilon, other.epsilon), min(one.delta, other.delta), min(one.reports, other.reports))


def paid_of_analysis(store: CampaignStore, analysis: str, since: str) -> Paid:
    """What rounds of an analysis have cost since then, whichever study asked them."""
    return [(Fraction(epsilon), Fraction(delta)) for epsilon, delta in store.read(_OF_ANALYSIS, analysis, since)]
