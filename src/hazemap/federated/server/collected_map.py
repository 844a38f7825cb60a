"""A map that a collector makes of one report of each person, with its statement; devices paid when they reported."""

from fractions import Fraction
from typing import cast

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.cellmap import CellMap
from hazemap.federated.protocols.dap.task import Task
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.collected_one_report import CollectedOneReport
from hazemap.federated.server.privacy_statement import A_DEVICE
from hazemap.federated.trust.cohort_assumptions import OWN_DEVICE, Sampling
from hazemap.federated.trust.one_report import assumed_of_walks
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport
from hazemap.federated.trust.two_servers import OPEN
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosing
from hazemap.queries.algorithm_session import Result, Unrecorded, run
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


def _parties(task: Task) -> str:
    return (
        f"the leader is {task.leader}, the helper {task.helper}: these two must not work together. Whoever collects "
        "holds the key that opens their noisy sums"
    )
