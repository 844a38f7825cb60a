"""The statement of a map made by devices, the prices of its answers, and the standard errors that they may claim."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import NamedTuple, cast

import numpy as np

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, DevicePrices, device_prices
from hazemap.federated.trust.cohort_assumptions import EVERY_ROUND, OWN_DEVICE, Cohort, Sampling, SecureSumPrices
from hazemap.federated.trust.one_report import assumed_of_walks
from hazemap.federated.trust.randomised_reports import ROUNDING, ReportPrices
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, ByTwoServers, ReportCarrier
from hazemap.federated.trust.shuffled import ShuffledReportPrices, ShufflePrices, assumed_of_parts, assumed_of_reports
from hazemap.federated.trust.two_servers import assumed_of_histograms, assumed_of_randomised
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosing
from hazemap.queries.noisy_queries import Answer, Prices, Query
from hazemap.specs.method_from_name import reach
from hazemap.statement_builder import Promise, stated

NAMES = {
    ByTwoServers: "two servers",
    ByOneReport: "two servers, one report of each person",
    ByShuffler: "a shuffler",
}
"""Trust models as statements name them."""


def trust_of(carrier: ReportCarrier) -> str:
    """Whom a campaign trusts, in words."""
    return NAMES[type(carrier)]


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
    batch = ReportBatch.of(campaign.cohort, carrier.minimum)
    if isinstance(carrier, ByTwoServers):
        said = (*assumed_of_histograms(batch), EVERY_ROUND[batch.sampling])
    elif isinstance(carrier, ByOneReport):
        said = assumed_of_walks(carrier.levels, batch)
    else:
        own = assumed_of_parts(batch) if carrier.local is None else assumed_of_reports(batch, carrier.local)
        said = (*own, EVERY_ROUND[batch.sampling])
    return (parties(carrier), *said, OWN_DEVICE)


def assumed_of_recipes(batch: ReportBatch, carrier: ReportCarrier, most: Fraction | None) -> tuple[str, ...]:
    """The same where reports are randomised and answer recipes, each with an ε₀ of `most` at most."""
    return parties(carrier), *assumed_of_randomised(batch, most), EVERY_ROUND[batch.sampling], OWN_DEVICE


A_DEVICE = "a person: all rows on one device"
NOT_CHECKED = (
    "what devices say is not checked: a device can add false people, as much as its bounding rule allows and more if "
    "it breaks the rules"
)


def statement(campaign: Campaign) -> Statement:
    """The statement of a campaign that has ended now."""
    method, cohort = campaign.algorithm, campaign.cohort
    name, relied_on = credited(type(campaign.asking).__name__, method)
    carrier, trust = campaign.carrier, "secure aggregation"
    asked = f"{cohort.people:,} people a round, "
    if carrier is None:
        asked += f"in {len(cohort.shards):,} shards of up to {max(cohort.shards):,}; "
    else:
        trust = trust_of(carrier)
    prior = getattr(campaign.asking, "prior", None)
    public = (
        f"the campaign {campaign.name!r}: {campaign.purpose}",
        f"the method: {name}, with the parameters in the file",
        *(
            ["the first cells: those of a release, which had its own price, or declared public"]
            if prior is not None
            else ()
        ),
        *([campaign.marks.said] if campaign.marks else ()),
        *([f"the slots: {campaign.slots.in_words}"] if campaign.slots else ()),
        f"the cohort: {asked}{cohort.sampling.value}",
        "which devices were asked, which answered, and how many people each answer is over",
    )
    promise = Promise(
        dataset=campaign.dataset,
        unit=A_DEVICE,
        neighbours="the rows of one device, all of them, there or not; that it takes part is public",
        budget=campaign.budget,
        bounding=campaign.bounding,
        trust=f"{trust} among devices" if carrier is None else trust,
        assumptions=(*assumed(campaign), *((NOT_CHECKED,) if carrier is None else ()), *relied_on),
        method=f"{name} by {trust}",
    )
    facts = CohortFacts(
        people=cohort.people,
        shard=cohort.shard,
        dropout=cohort.dropout,
        corrupt=cohort.corrupt,
        sampling=cohort.sampling.name,
        mode=cohort.mode.name,
        local_epsilon=carrier.local if isinstance(carrier, ByShuffler) else campaign.local_epsilon,
        trust=None if carrier is None else campaign.trust,
        minimum=carrier.minimum if isinstance(carrier, ByShuffler) else None,
    )
    made = stated(
        promise,
        cast(Disclosing, method).disclosure,
        box=None if isinstance(method, PrivateBoundingBox) else reach(cast(MethodOfBox, method)),
        public=public,
        circumstances=StatementFacts(DEVICE, Randomness.DEVICES, facts),
    )
    return made if facts.local_epsilon is None else replace(made, noise="bits flipped by each person")


def assumed(campaign: Campaign) -> tuple[str, ...]:
    """What is assumed of the people and the server, whose noise it is, and what bounds what the sums give away."""
    cohort = campaign.cohort
    if campaign.carrier is not None:
        return assumed_of_carrier(campaign, campaign.carrier)
    return (*cohort.assumed("noise" if campaign.local_epsilon is None else "reports"), *noise_of(campaign))


def noise_of(campaign: Campaign) -> tuple[str, ...]:
    """Whose noise it is, and what bounds what the sums give away."""
    if campaign.local_epsilon is None:
        return ("all other devices add their share of the noise, as the protocol has it",)
    local, honest = campaign.local_epsilon, campaign.cohort.fewest_honest
    alone = (
        f"each report by itself is private by ε₀ = {float(local):.6g} at most, against whoever sees it alone: a person "
    )
    alone += "pays that again in every round"
    if isinstance(campaign.budget, PureDP):
        bound = f"the {campaign.budget} of all rounds is what the reports hide by themselves, in a sum or not"
    else:
        bound = (
            f"against the sums, all rounds together cost {campaign.budget}: each sum is bounded by the Rényi"
            f" divergences of its exact law, whatever the other people say, among {honest:,} honest people's reports"
        )
    return (
        alone,
        bound,
        "all other devices randomise their reports, as the protocol has it, and nothing is added to them",
        "to exchange one device's rows for others, rather than to leave them out, costs twice the ρ or ε of it",
    )


def prices(said: Statement) -> DevicePrices | None:
    """The prices of the answers behind a statement of devices; `None` for one of another trust model."""
    cohort, facts = _cohort(said), said.circumstances.cohort
    if said.unit != A_DEVICE or cohort is None or facts is None:
        return None
    return device_prices(facts.trust, said.budget, cohort, facts.local_epsilon, facts.minimum)


def _cohort(said: Statement) -> Cohort | None:
    """Who was asked."""
    facts = said.circumstances.cohort
    if facts is None:
        return None
    if facts.sampling not in Sampling.__members__ or facts.mode not in Mode.__members__:
        raise InputError("the statement's cohort was drawn, or answered, in a way that this hazemap does not know")
    sampling, mode = Sampling[facts.sampling], Mode[facts.mode]
    return Cohort(facts.people, facts.shard, facts.dropout, facts.corrupt, sampling, mode)


NEAR = 1e-6
"""How far standard errors may be apart that are the same: they are sums in another order."""


class ClaimableErrors(NamedTuple):
    """The least and the largest standard error of each number: of one number where all have the same."""

    least: Floats
    largest: Floats

    def fits(self, claimed: Floats) -> bool:
        """Whether these are claimed; O(numbers)."""
        return bool(((claimed >= self.least * (1 - NEAR)) & (claimed <= self.largest * (1 + NEAR))).all())


def claimable(prices: Prices, question: Query, answer: Answer) -> ClaimableErrors:
    """What this answer may claim, by what its share of the budget buys.

    Noise that devices make together, and that of randomised reports, is of as many people as the answer says it is
    over. That number is not checked here, except that no round is opened with fewer than the trust model says.
    """
    encoder, share, people = question.encoder, question.share, answer.people
    if isinstance(prices, SecureSumPrices) and people is not None:
        cohort = prices.cohort
        one = noise_for(prices.budget.part(share), encoder.sensitivity).stddev
        honest = [cohort.honest(size) for size in cohort.shards]
        fewest = max(people, min(cohort.survivors(size) for size in cohort.shards))
        return _both(one * sqrt(fewest / max(honest)), one * sqrt(fewest / min(honest)))
    if isinstance(prices, ShufflePrices) and people is not None:
        one = noise_for(prices.budget.part(share), encoder.sensitivity).stddev
        return _only(one * sqrt(max(people, prices.batch.minimum) / prices.batch.honest))
    if isinstance(prices, ReportPrices | ShuffledReportPrices) and people is not None:
        law = prices.law(share) if isinstance(prices, ShuffledReportPrices) else prices.law(share, encoder.size)
        sums = answer.sums.astype(np.float64)
        # the variance may depend on the count, of which the answer has a whole number beside it
        variances = np.stack([law.variance(people, sums + step) for step in (-1.0, 0.0, 1.0)]) + ROUNDING
        return ClaimableErrors(np.sqrt(variances.min(axis=0)), np.sqrt(variances.max(axis=0)))
    return _only(prices.stddev(encoder, share))


def _only(stddev: float) -> ClaimableErrors:
    return _both(stddev, stddev)


def _both(least: float, largest: float) -> ClaimableErrors:
    return ClaimableErrors(np.array([least]), np.array([largest]))
