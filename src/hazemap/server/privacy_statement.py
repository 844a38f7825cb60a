"""What a map made by devices promises to the people whose devices they are, and what its answers cost."""

from typing import cast

from hazemap.algorithm_disclosure import Disclosing
from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.codec import loads
from hazemap.errors import InputError
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.protocols.secure_aggregation.session_parameters import Mode
from hazemap.server.campaign_spec import Campaign
from hazemap.specs.method_from_name import reach
from hazemap.statement_builder import Promise, stated
from hazemap.trust.cohort_assumptions import Cohort, Sampling, SecureSumPrices
from hazemap.trust.device_tasks import KNOWN as OF_TASKS
from hazemap.trust.device_tasks import pure

A_DEVICE = "a person: all rows on one device"
_COHORT = "the cohort, for machines: "
"""How statements of version 1 began the sentence that the cohort was in."""


def statement(campaign: Campaign) -> Statement:
    """The statement of a campaign that has ended now."""
    method, cohort = campaign.algorithm, campaign.cohort
    name, relied_on = credited(type(campaign.asking).__name__, method)
    shards = cohort.shards
    public = (
        f"the campaign {campaign.name!r}: {campaign.purpose}",
        f"the method: {name}, with the parameters in the file",
        f"the cohort: {cohort.people:,} people a round, in {len(shards):,} shards of up to {max(shards):,}; "
        f"{cohort.sampling.value}",
        "which devices were asked, which answered, and how many people each answer is over",
    )
    promise = Promise(
        dataset=campaign.dataset,
        unit=A_DEVICE,
        neighbours="the rows of one device, all of them, there or not; that it takes part is public",
        budget=campaign.budget,
        bounding=campaign.bounding,
        trust="secure aggregation among devices",
        assumptions=(
            *cohort.assumptions,
            "all other devices add their share of the noise, as the protocol has it",
            "what devices say is not checked: a device can add false people, as much as its bounding rule allows and "
            "more if it breaks the rules",
            *relied_on,
        ),
        method=f"{name} by secure aggregation",
    )
    facts = CohortFacts(
        cohort.people, cohort.shard, cohort.dropout, cohort.corrupt, cohort.sampling.name, cohort.mode.name
    )
    return stated(
        promise,
        cast(Disclosing, method).disclosure,
        box=None if isinstance(method, PrivateBoundingBox) else reach(cast(MethodOfBox, method)),
        public=public,
        circumstances=StatementFacts(DEVICE, Randomness.DEVICES, facts),
    )


def prices(said: Statement) -> SecureSumPrices | None:
    """The prices of the answers behind a statement of devices; `None` for one of another trust model."""
    cohort = _cohort(said)
    return None if said.unit != A_DEVICE or cohort is None else SecureSumPrices(pure(said.budget), cohort)


def _cohort(said: Statement) -> Cohort | None:
    """Who was asked: in version 1 it stood in a sentence."""
    facts = said.circumstances.cohort
    if facts is not None:
        if facts.sampling not in Sampling.__members__ or facts.mode not in Mode.__members__:
            raise InputError("the statement's cohort was drawn, or answered, in a way that this hazemap does not know")
        sampling, mode = Sampling[facts.sampling], Mode[facts.mode]
        return Cohort(facts.people, facts.shard, facts.dropout, facts.corrupt, sampling, mode)
    found = [text.removeprefix(_COHORT) for text in said.public if text.startswith(_COHORT)]
    if len(found) != 1:
        return None
    cohort: Cohort = loads(found[0], OF_TASKS, Cohort)
    return cohort
