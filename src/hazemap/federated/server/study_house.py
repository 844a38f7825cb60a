"""What studies need of the server they run in, and how their rounds are asked there."""

from dataclasses import dataclass

from hazemap.federated.server.campaign_house import CampaignHouse
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import EnrolledDevices
from hazemap.federated.server.metrics import Metrics
from hazemap.federated.server.networked_secure_aggregation import DeviceRounds
from hazemap.federated.server.networked_two_servers import TwoServerRecipes
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.server.study_worker import AskedRounds
from hazemap.privacy.ledger import Ledger


@dataclass(frozen=True)
class StudyHouse:
    """The parts of one coordinator that its studies share."""

    parts: CampaignHouse
    ledger: Ledger
    metrics: Metrics

    @property
    def store(self) -> CampaignStore:
        """Where everything is kept."""
        return self.parts.store

    @property
    def enrolled(self) -> EnrolledDevices:
        """The devices."""
        return self.parts.enrolled

    def rounds(self, spec: StudySpec) -> AskedRounds:
        """What asks the rounds of a study, by whom it trusts."""
        parts = self.parts
        if spec.carrier is not None:
            return TwoServerRecipes(spec, parts)
        seats = parts.store, parts.enrolled, parts.seating, parts.pool, parts.pace
        return DeviceRounds(spec, *seats, once=True)
