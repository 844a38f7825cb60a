"""What a campaign's statement says of those who carry its reports: what is proved, what is assumed, who they are."""

from fractions import Fraction

from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.trust.cohort_assumptions import OWN_DEVICE, Sampling
from hazemap.federated.trust.one_report import assumed_of_walks
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, ByTwoServers, ReportCarrier
from hazemap.federated.trust.shuffled import assumed_of_parts, assumed_of_reports
from hazemap.federated.trust.two_servers import assumed_of_histograms, assumed_of_randomised

NAMES = {
    ByTwoServers: "two servers",
    ByOneReport: "two servers, one report of each person",
    ByShuffler: "a shuffler",
}
"""Trust models as statements name them."""


EVERY_ROUND = {
    Sampling.ONE: "the same people are asked in every round, so each of them pays for all rounds",
    Sampling.FRESH: "each round asks people drawn anew; who happens to be asked in every round pays the whole",
}
"""Who pays for how many rounds."""


def trust_of(carrier: ReportCarrier) -> str:
    """Whom a campaign trusts, in words."""
    return NAMES[type(carrier)]


def batch_of(campaign: Campaign, carrier: ReportCarrier) -> ReportBatch:
    """The batch of a round."""
    cohort = campaign.cohort
    return ReportBatch(cohort.people, carrier.minimum, cohort.corrupt, cohort.sampling)


def parties(carrier: ReportCarrier) -> str:
    """Who carries the reports, by their addresses."""
    if isinstance(carrier, ByShuffler):
        return (
            f"the shuffler is {carrier.shuffler}, with the key {carrier.key[:16]}…; the coordinator is the analyser: "
            "it enrols who may report, and people that it makes up count as working with it"
        )
    return (
        f"the leader is {carrier.leader}, the helper {carrier.helper}: these two must not work together. The "
        "coordinator collects: it holds the key that opens their noisy sums, and made the keys that they verify by, so "
        "right sums need it, too"
    )


def assumed_of_carrier(campaign: Campaign, carrier: ReportCarrier) -> tuple[str, ...]:
    """What is proved of a report and what is assumed of everybody."""
    batch = batch_of(campaign, carrier)
    if isinstance(carrier, ByTwoServers):
        said = (*assumed_of_histograms(batch), EVERY_ROUND[campaign.cohort.sampling])
    elif isinstance(carrier, ByOneReport):
        said = assumed_of_walks(carrier.levels, batch)
    else:
        own = assumed_of_parts(batch) if carrier.local is None else assumed_of_reports(batch, carrier.local)
        said = (*own, EVERY_ROUND[campaign.cohort.sampling])
    return (parties(carrier), *said, OWN_DEVICE)


def assumed_of_recipes(batch: ReportBatch, carrier: ReportCarrier, most: Fraction | None) -> tuple[str, ...]:
    """The same where reports are randomised and answer recipes, each with an ε₀ of `most` at most."""
    return parties(carrier), *assumed_of_randomised(batch, most), EVERY_ROUND[batch.sampling], OWN_DEVICE
