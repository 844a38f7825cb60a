"""The devices of a store as a population: each decides, pays and answers as it would a server, in this process."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from hazemap.errors import Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.allowed_policy import allowed
from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.device.device_account import AskedReport, DeviceAccount, PrivateRefusal
from hazemap.federated.device.encrypted_store import EncryptedStore
from hazemap.federated.device.event_store import ApprovedStreams, EventStore
from hazemap.federated.device.query_sandbox import AdmittedQuery
from hazemap.federated.device.recipe_answer import reported_bin
from hazemap.federated.device.recipe_check import admit, sum_price
from hazemap.federated.device.report_request import ReportRequest
from hazemap.federated.device.shipped_policies import ShippedPolicies
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream

PRIVATE = "nothing is left to spend on this recipe"
"""What is said where the reason names what others were told."""


@dataclass
class StoredDevices:
    """Every device of a store, within its accepted policy and its owner's `rules`: charged before anybody sees its bin.

    `refusals` counts why devices did not answer the last recipe. Cost: O(devices · events), some milliseconds each.
    """

    store: EncryptedStore
    rules: Policy
    refusals: Counter[str] = field(default_factory=Counter)
    stream: Stream = field(default_factory=Stream.from_os)

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bins of the devices that answer, int64[answers]."""
        self.refusals, every, now = Counter(), enrolment.devices(self.store), datetime.now(UTC)
        accepted = ShippedPolicies(self.store).current()
        if accepted is None:
            raise Refused("these devices have accepted no policy, so they answer no recipe: `hazemap device accept`")
        policy = allowed(accepted.policy, self.rules)
        try:
            admitted = admit(recipe, policy)
        except Refused as error:
            self.refusals[str(error)] = len(every)
            return np.zeros(0, dtype=np.int64)
        price = sum_price(recipe, randomiser_of(recipe), recipe.minimum_cohort, policy.accounting)
        request = ReportRequest.of(recipe, admitted.touched, price, bytes(32))
        asked = AskedReport(request, policy)
        bins = [self._bin(device, asked, recipe, admitted, now) for device in every]
        return np.array([each for each in bins if each is not None], dtype=np.int64)

    def _bin(
        self, device: int, asked: AskedReport, recipe: Recipe, admitted: AdmittedQuery, now: datetime
    ) -> int | None:
        """The bin of a device that agrees and has paid."""
        account = DeviceAccount(self.store, device, enrolment.read(self.store, device), self.rules)
        source = ApprovedStreams(EventStore(self.store, device), asked.policy, now.timestamp())
        try:
            paid = account.paid(asked, now, lambda: reported_bin(recipe, admitted, asked.policy, source, self.stream))
        except Refused as error:
            self.refusals[PRIVATE if isinstance(error, PrivateRefusal) else str(error)] += 1
            return None
        [failed] = self.store.commit([paid.writes])
        if failed is not None:
            self.refusals["another process has charged this device meanwhile"] += 1
        return None if failed else paid.made
