"""Which trust model answers a campaign over the network, by the name that the campaign gives it."""

from collections.abc import Callable, Mapping
from typing import Protocol

from hazemap.errors import InputError
from hazemap.federated.server.campaign_house import CampaignHouse
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.networked_one_report import NetworkedOneReport, check_walk
from hazemap.federated.server.networked_secure_aggregation import DeviceTrustModel
from hazemap.federated.server.networked_shuffled import NetworkedShuffled
from hazemap.federated.server.networked_two_servers import NetworkedTwoServers, check_first_round
from hazemap.federated.trust.report_carriers import LOCAL, SECURE_SUM, ByOneReport, ByShuffler, ByTwoServers
from hazemap.privacy.budget import Budget
from hazemap.queries.noisy_queries import Answer, Prices, Question


class NetworkedTrust(Protocol):
    """A trust model of one campaign, as its worker needs it."""

    campaign: Campaign
    rounds: int
    """how many questions are answered"""
    missing: int
    """devices that are waited for before a round can begin"""

    @property
    def store(self) -> CampaignStore:
        """Where its rounds are."""

    def prices(self, budget: Budget) -> Prices:
        """What a share of the budget buys."""

    def answers(self, question: type[Question]) -> bool:
        """Whether such a question can be answered at all."""

    async def answer(self, question: Question, price: Budget) -> Answer:
        """The answer; it, and its question, are in the table `exchanges` when this returns."""


def _secure_sums(campaign: Campaign, house: CampaignHouse) -> NetworkedTrust:
    return DeviceTrustModel(campaign, house.store, house.enrolled, house.seating, house.pool, house.pace)


WIRED: Mapping[str, Callable[[Campaign, CampaignHouse], NetworkedTrust]] = {
    SECURE_SUM: _secure_sums,
    LOCAL: _secure_sums,
    ByTwoServers.trust: NetworkedTwoServers,
    ByOneReport.trust: NetworkedOneReport,
    ByShuffler.trust: NetworkedShuffled,
}
"""A trust model's maker, by the trust's name."""


def networked(campaign: Campaign, house: CampaignHouse) -> NetworkedTrust:
    """The trust model of a campaign that was accepted."""
    return WIRED[campaign.trust](campaign, house)


def check_wired(campaign: Campaign, house: CampaignHouse) -> None:
    """`InputError` for a campaign that this coordinator cannot carry: before anything is paid."""
    if campaign.trust not in WIRED:
        raise InputError(
            f"this coordinator cannot carry a campaign by {campaign.trust!r} yet: take one of {', '.join(WIRED)}"
        )
    if campaign.carrier is not None:
        house.peers.check(campaign.carrier)
    if isinstance(campaign.carrier, ByTwoServers):
        check_first_round(campaign)
    if isinstance(campaign.carrier, ByOneReport):
        check_walk(campaign, campaign.carrier)
