"""A server without a network, and devices beside it: for tests of what a device says."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.device_account import DeviceAccount
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog
from hazemap.federated.device.server_task import ServerTask
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.row_store import DeviceRows
from hazemap.federated.device.task_handler import TaskHandler
from hazemap.federated.protocols.secure_aggregation.merkle_roster import root
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.recipe import LOG_FIELDS, RECIPE_LOG_FORMAT
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.privacy.budget import PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree.world(depth=6)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
UNTIL = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
FEW = Policy(people=10, survivors=5, modes=("malicious", "semi-honest"))
"""Rules for small rooms."""


ONE = PureDP(1)


def task(people=20, share=Fraction(1, 10), budget=ONE, level=2, mode=Mode.SEMI_HONEST, **changes):
    """A question about all cells of a level, for one shard."""
    question = Query(Counts(Leaves.at_level(TREE, level)), share)
    cohort = Cohort(people, people, mode=mode)
    made = Task("homes", "a map of where people live", 1, question, budget.part(share), budget, cohort)
    return replace(made, **changes)


def places(number):
    """One row: person `number` lives where nobody else of the first hundred does."""
    return DeviceRows.of([3.6 * number - 170], [60 - number], time=NOW.timestamp() - 3_600)


def settle(store, number, sample=places):
    """So many devices with a row each."""
    devices = enrolment.add(store, number)
    rows.added(store, {device: sample(i) for i, device in enumerate(devices)}, None)
    return devices


def entry_of(asked, head, **changes):
    """The line of a server's public log about a task that asks a recipe, after a head."""
    recipe = asked.recipe
    values = (head.entries + 1, "2026-03-01T00:00:00Z", "recipe", recipe.id, recipe.version, recipe.digest)
    where = (asked.campaign, asked.round, asked.cohort.people, asked.digest.hex(), head.digest)
    fields = dict(zip(LOG_FIELDS, (*values, *where), strict=True)) | changes
    text = RECIPE_LOG_FORMAT.text(fields)
    return f'{text[:-1]},"digest":"{RECIPE_LOG_FORMAT.digest(text).hex()}"}}'


LOGS = {}
"""What the server of each store's devices has logged so far."""


def logged(store, task):
    """The public log of a server that has logged this task, and the ones before."""
    log = LOGS.setdefault(store.path, PublicRecipeLog())
    if task.recipe is not None:
        log.take([entry_of(task, log.head)])
    return log


class Room:
    """One session of a task among all devices of a store."""

    def __init__(self, store, asked, devices=None, policy=FEW, nonce=bytes(32)):
        self.store, self.task, self.policy = store, asked, policy
        self.devices = devices or enrolment.devices(store)
        identities = [Identity.from_bytes(enrolment.read(store, device).identity).public for device in self.devices]
        seed = bytes(range(32)) if asked.cohort.mode is Mode.SEMI_HONEST else None
        graph = commitment(seed) if seed else bytes(32)
        self.terms = parameters_for(asked, root(identities), len(identities), graph, nonce)
        self.server = Server(self.terms, identities, seed)
        self.told = {}
        self.public_log = logged(store, asked)

    def answering(self, position, store=None):
        store = store or self.store
        device = self.devices[position]
        account = DeviceAccount(store, device, enrolment.read(store, device), self.policy, self.public_log)
        return TaskHandler(account)

    def work(self, position):
        message = self.server.message_for(position)
        text = codec.dumps(self.task) if self.server.stage == 1 else None
        return message and ServerTask(self.terms.session, int(self.server.stage), text, message, UNTIL)

    def turn(self, position, store=None):
        """One message to one device, committed and sent."""
        work = self.work(position)
        if work is None:
            return None
        store = store or self.store
        answering = self.answering(position, store)
        step = answering.answer(work, NOW)
        assert store.commit([step.writes]) == [None]
        if step.refusal:
            self.told[position] = step.refusal
            self.server.leave(position)
        else:
            self.server.receive(position, step.reply)
            if step.last:
                assert store.commit([answering.ended(work.session, "answered to the end")]) == [None]
        return step

    def run(self, silent=()):
        """Every stage, with these positions silent from the start."""
        while self.server.stage < 7:
            for position in range(len(self.devices)):
                if position not in silent:
                    self.turn(position)
            self.server.advance()
        return self.server.result

    def exact(self, positions):
        """The sums over some devices, without noise."""
        encoder = self.task.question.encoder
        sums = np.zeros(encoder.size, dtype=np.int64)
        for position in positions:
            table = rows.RowStore(self.store, self.devices[position]).table(b"", "")
            np.add.at(sums, encoder.encode(table).position, 1)
        return sums
