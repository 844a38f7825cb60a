"""Maps of campaigns: from one report of each person, and of campaigns that ended early.

Devices paid when they reported, so a campaign that ends early is published as far as it was answered.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.cellmap import CellMap
from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedCounts, is_about_sides
from hazemap.execution.release_assembly import released
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, prices_of
from hazemap.federated.server.campaign_status import so_far
from hazemap.federated.server.campaign_worker import CampaignCharge
from hazemap.federated.server.failed_round import PAID
from hazemap.federated.server.networked_one_report import CollectedOneReport
from hazemap.federated.server.privacy_statement import A_DEVICE, statement
from hazemap.federated.trust.cohort_assumptions import OWN_DEVICE, Sampling
from hazemap.federated.trust.one_report import assumed_of_walks
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport
from hazemap.federated.trust.two_servers import OPEN
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosing
from hazemap.queries.algorithm_session import Exchange, Result, Session, Unrecorded, run
from hazemap.releases import Release
from hazemap.specs.method_from_name import reach
from hazemap.statement_builder import Promise, stated

TRUST = "two servers, one report of each person"
OUTSIDE = (
    "who has no row on the map is counted, too, as outside of it: a device's rows, there or not, move two counts, and "
    "every question has noise for that"
)
"""What a statement says of a map that counts people outside."""


def collected_map(trust: CollectedOneReport, algorithm: MethodOfBox | PrivateBoundingBox, dataset: str) -> Release:
    """Ask the servers until the method is done. Nothing is charged here, and a run again gives the same map.

    Each device has paid the whole budget, and both servers keep the account of its report.
    """
    result: Result[CellMap] = run(algorithm, trust, trust.terms.budget, Unrecorded())
    people = min(each.answer.people or 0 for each in result.transcript)
    said = _statement(trust, algorithm, dataset, people)
    return Release(result.value, said, algorithm, result.transcript)


def _statement(
    trust: CollectedOneReport, algorithm: MethodOfBox | PrivateBoundingBox, dataset: str, people: int
) -> Statement:
    task, asking = trust.task, algorithm.method if isinstance(algorithm, PrivateBoundingBox) else algorithm
    name, relied_on = credited(type(asking).__name__, algorithm)
    batch = ReportBatch(people, min(people, task.min_batch_size))
    promise = Promise(
        dataset=dataset,
        unit=A_DEVICE,
        neighbours="the rows of one device, all of them, there or not; that it takes part is public",
        budget=trust.terms.budget,
        bounding=asking.bounding,
        trust=TRUST,
        assumptions=(
            *(_parties(task), *assumed_of_walks(trust.terms.levels, batch, OPEN), OWN_DEVICE, *relied_on),
            *((OUTSIDE,) if asking.bounding.outside.asked else ()),
        ),
        method=f"{name} by {TRUST}",
    )
    facts = CohortFacts(
        people, people, Fraction(0), Fraction(0), Sampling.ONE.name, Mode.MALICIOUS.name, None, ByOneReport.trust
    )
    return stated(
        promise,
        cast(Disclosing, algorithm).disclosure,
        box=None if isinstance(algorithm, PrivateBoundingBox) else reach(asking),
        public=(
            f"the method: {name}, with the parameters in the file",
            "when reports were made, to the time precision of the task, and how many each answer is over",
        ),
        circumstances=StatementFacts(DEVICE, Randomness.DEVICES, facts),
    )


def _parties(task: DapTask) -> str:
    return (
        f"the leader is {task.leader}, the helper {task.helper}: these two must not work together. Whoever collects "
        "holds the key that opens their noisy sums"
    )


def release_in_part(
    campaign: Campaign, account: CampaignCharge, transcript: list[Exchange], reason: str, file: Path
) -> int:
    """Write the map that the answered rounds make, and note it in the ledger; how many rounds they are.

    It is post-processing of answers that were paid for, so it costs nothing. The statement says what was left out. The
    charge stays that of the whole campaign. The map reads the finest cells that were asked for last; the method's own
    estimate needs all its rounds. `InputError` where nothing was answered, or where the campaign has not paid.
    """
    paid = account.record
    if not transcript or paid is None:
        raise InputError(
            f"the campaign {campaign.name!r} has no answered round, so nothing can be released: resume it, or begin "
            "another"
        )
    Session(
        campaign.algorithm,
        prices_of(campaign),
        campaign.budget,
        Unrecorded(),
        lambda _: True,
        transcript,
    )  # TranscriptMismatch where the answers are not those of this campaign
    if paid.released and file.exists():
        return len(transcript)
    try:
        marks = campaign.marks if is_about_sides(transcript[-1].question) else None
        found = MarkedCounts.of(*transcript[-1], marks) if marks else so_far(transcript)
    except InputError:
        raise InputError(
            f"the {len(transcript)} answered rounds of {campaign.name!r} hold no counts of listed cells, so they make "
            "no map: resume the campaign"
        ) from None
    whole = statement(campaign)
    left_out = (
        f"released in part: the campaign ended after {len(transcript)} answered rounds, and its method asks more; the "
        f"map reads those rounds alone, and the price is that of all ({reason.partition(PAID)[0]})"
    )
    said = replace(whole, public=(*whole.public, left_out), method=f"{whole.method}, in part")
    released(found, said, campaign.algorithm, tuple(transcript)).save(file)
    account.released(said, str(file.absolute()))
    return len(transcript)
