"""The event stores of many devices as a table of people: recipes asked of real stores, in one process."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from hazemap.federated.device.encrypted_store import EncryptedStore
from hazemap.federated.device.event_store import ApprovedStreams, EventStore
from hazemap.federated.device.query_sandbox import AdmittedQuery
from hazemap.federated.device.recipe_answer import reported_bin
from hazemap.federated.device.recipe_check import admit
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.recipe import Recipe
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream


@dataclass(frozen=True)
class EventPopulation:
    """The devices of a store, whose owners' events answer recipes under one policy: for tests and studies.

    It stands where a `PopulationTable` does: in `trust.recipe_secure_sums`, or in `trust.local`. Nothing is charged, so
    it is for people who are made up.

    >>> EventPopulation.__dataclass_fields__["devices"].name
    'devices'
    """

    store: EncryptedStore
    devices: Sequence[int]
    policy: ShippedPolicy
    now: datetime
    stream: Stream = field(default_factory=Stream.from_os)

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin that each device reports, int64[devices]; `Refused` where the policy does not admit the recipe."""
        admitted = admit(recipe, self.policy)
        return np.array([self._bin(device, recipe, admitted) for device in self.devices], dtype=np.int64)

    def _bin(self, device: int, recipe: Recipe, admitted: AdmittedQuery) -> int:
        source = ApprovedStreams(EventStore(self.store, device), self.policy, self.now.timestamp())
        return reported_bin(recipe, admitted, self.policy, source, self.stream)
