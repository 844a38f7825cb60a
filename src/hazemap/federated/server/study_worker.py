"""One round of a study: charged, asked, and stored before anybody sees its answer."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from hazemap.errors import BudgetError, HazemapError, LedgerError, StoreError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.server.announced_rounds import forgotten as no_more_secret
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.campaign_worker import CampaignCharge
from hazemap.federated.server.round_failure import PAID
from hazemap.federated.service.store import Write, instant
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import Budget
from hazemap.queries.noisy_queries import Answer

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


class AskedRounds(Protocol):
    """Rounds of one study: among devices themselves, or over two servers."""

    async def asked(self, task: Task) -> Answer:
        """The answer to a round; it is in the table `exchanges` when this returns."""


@dataclass
class RoundWorker:
    """Runs one round to its end, and from wherever it was when the server stopped.

    Whether the round is charged, the ledger knows; whether it is answered, the store. So a server that was killed
    charges once and asks the same people the same.
    """

    devices: AskedRounds
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
