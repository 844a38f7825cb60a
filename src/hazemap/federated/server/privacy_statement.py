"""What a map made by devices promises to the people whose devices they are, and what its answers cost."""

from dataclasses import replace
from typing import cast

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.carried_statement import assumed_of_carrier, trust_of
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling, SecureSumPrices
from hazemap.federated.trust.device_tasks import pure
from hazemap.federated.trust.one_report import OneReportPrices
from hazemap.federated.trust.randomised_reports import ReportPrices
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, ByTwoServers
from hazemap.federated.trust.shuffled import ShuffledReportPrices, ShufflePrices
from hazemap.federated.trust.two_servers import TwoServerPrices
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosing
from hazemap.specs.method_from_name import reach
from hazemap.statement_builder import Promise, stated

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
    people = cohort.assumptions if campaign.local_epsilon is None else cohort.assumptions_of_reports
    return (*people, *noise_of(campaign))


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


def prices(
    said: Statement,
) -> SecureSumPrices | ReportPrices | TwoServerPrices | OneReportPrices | ShufflePrices | ShuffledReportPrices | None:
    """The prices of the answers behind a statement of devices; `None` for one of another trust model."""
    cohort, facts = _cohort(said), said.circumstances.cohort
    if said.unit == A_DEVICE and facts is not None and facts.trust == ByTwoServers.trust:
        return TwoServerPrices(said.budget)
    if said.unit == A_DEVICE and facts is not None and facts.trust == ByOneReport.trust:
        return OneReportPrices(said.budget)
    if said.unit == A_DEVICE and cohort is not None and facts is not None and facts.trust == ByShuffler.trust:
        if facts.minimum is None:
            raise InputError("the statement speaks of a shuffler, and does not say how many reports were opened")
        batch = ReportBatch(cohort.people, facts.minimum, cohort.corrupt, cohort.sampling)
        if facts.local_epsilon is not None and isinstance(said.budget, ApproxDP):
            return ShuffledReportPrices(said.budget, batch, facts.local_epsilon)
        return ShufflePrices(pure(said.budget), batch)
    if said.unit == A_DEVICE and cohort is not None and facts is not None and facts.local_epsilon is not None:
        return ReportPrices(said.budget, cohort, facts.local_epsilon)
    return None if said.unit != A_DEVICE or cohort is None else SecureSumPrices(pure(said.budget), cohort)


def _cohort(said: Statement) -> Cohort | None:
    """Who was asked."""
    facts = said.circumstances.cohort
    if facts is None:
        return None
    if facts.sampling not in Sampling.__members__ or facts.mode not in Mode.__members__:
        raise InputError("the statement's cohort was drawn, or answered, in a way that this hazemap does not know")
    sampling, mode = Sampling[facts.sampling], Mode[facts.mode]
    return Cohort(facts.people, facts.shard, facts.dropout, facts.corrupt, sampling, mode)
