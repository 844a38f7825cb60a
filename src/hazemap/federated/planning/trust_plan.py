"""Plans of trust models before any data is touched: errors, bytes, and who may not collude.

The same method is tried on the same made-up city (`synthetic_city`) on every trust model, at one price. Everybody is
asked, answers, and works with nobody. All of it is public, and the same every time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hazemap.algorithms import Adaptive
from hazemap.errors import HazemapError, InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust import report_bytes
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import USUAL_LEVELS
from hazemap.federated.trust.shuffled import ShuffledParts, ShuffledReports
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.planning.release_plan import FEWEST, refuse_shares_in_slots
from hazemap.planning.synthetic_city import CityInSlots, SyntheticTable
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Transcript, Unrecorded, run
from hazemap.queries.noisy_queries import Trust
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import domain, in_slots, method_from_name, method_options, sums_only
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import Outside
from hazemap.trust.curator import Curator

MOST_PEOPLE = 10**7
"""People that are drawn one by one in a plan of trust models."""

DELTA = Fraction(1, 10**6)
"""The δ that is planned with where reports hide each other and only ε was given."""

_SHARD = 10_000
_LOCAL = Fraction(8)
"""The ε of each person's own randomness, at most, where two servers sum what people randomise."""
_STREAM = b"the noise of a plan of trust models"


@dataclass(frozen=True)
class PlannedTrust:
    """Expectations of one trust model.

    * `apart`: who must not work together; `budget`: what everybody's privacy is, against all others.
    * `misplaced`: the part of all people that the map puts in a wrong place, half of its L1 error (with slots, the mean
      of all maps); `total`: the
      standard error of the number of all people; None where the method is `refused`, with the reason.
    * `bytes`: what a device sends in all rounds; None for a curator, who is sent rows.
    """

    name: str
    apart: str
    budget: Budget
    misplaced: float | None = None
    total: float | None = None
    bytes: int | None = None
    refused: str | None = None


@dataclass(frozen=True)
class _Form:
    """The construction of a trust model, and its cost for a device."""

    apart: str
    pure: bool
    make: Callable[[Any, int, Budget, Stream], Trust]
    octets: Callable[[Transcript, int, Budget], int | None]

    def budget(self, asked: Budget) -> Budget:
        """The part of the requested budget that this trust model can spend: ε alone, or with a δ."""
        if self.pure and isinstance(asked, ApproxDP):
            return PureDP(asked.epsilon)
        if not self.pure and isinstance(asked, PureDP):
            return ApproxDP(asked.epsilon, DELTA)
        return asked


def _cohort(people: int) -> Cohort:
    return Cohort(people, min(people, _SHARD), Fraction(0), Fraction(0), Sampling.ONE, Mode.SEMI_HONEST)


def _batch(people: int) -> ReportBatch:
    return ReportBatch(people, people)


def _shuffled_reports(table: Any, people: int, budget: Budget, stream: Stream) -> Trust:
    if not isinstance(budget, ApproxDP):
        raise InputError(f"shuffled reports spend (ε, δ), not {budget}")
    return ShuffledReports(table, _batch(people), budget, stream)


TRUSTS: dict[str, _Form] = {
    "curator": _Form(
        "nobody but the curator, who sees every row",
        False,
        lambda table, _people, _budget, stream: Curator(table, stream),
        lambda *_: None,
    ),
    "secure-sum": _Form(
        "the server with many devices",
        True,
        lambda table, people, _budget, stream: SimulatedSecureAggregation(table, _cohort(people), stream),
        lambda asked, people, budget: report_bytes.of_secure_sums(asked, budget, _cohort(people)),
    ),
    "two-servers": _Form(
        "the two servers",
        False,
        lambda table, people, _budget, stream: TwoServers(table, _batch(people), stream),
        lambda asked, _people, _budget: report_bytes.of_two_servers(asked),
    ),
    "two-servers-randomised": _Form(
        "the two servers; neither may choose reports",
        False,
        lambda table, people, _budget, stream: TwoServers(table, _batch(people), stream, local_epsilon=_LOCAL),
        lambda asked, people, budget: report_bytes.of_randomised(asked, budget, _batch(people), _LOCAL),
    ),
    "one-report": _Form(
        "the two servers",
        False,
        lambda table, people, _budget, stream: OneReportTrust(table, _batch(people), USUAL_LEVELS, stream),
        lambda asked, _people, _budget: report_bytes.of_one_report(asked),
    ),
    "shuffled": _Form(
        "the shuffler with the analyser",
        True,
        lambda table, people, _budget, stream: ShuffledParts(table, _batch(people), stream),
        lambda asked, people, budget: report_bytes.of_shuffled_parts(asked, budget, _batch(people)),
    ),
    "shuffled-reports": _Form(
        "the shuffler with the analyser",
        False,
        _shuffled_reports,
        lambda asked, _people, _budget: report_bytes.of_bits(asked, sealed=True),
    ),
    "local": _Form(
        "anybody may",
        True,
        lambda table, people, _budget, stream: LocalReports(table, people, stream=stream),
        lambda asked, _people, _budget: report_bytes.of_bits(asked, sealed=False),
    ),
}
"""The trust models by the names of `--trust`; the curator and two servers spend what is asked."""

_AS_ASKED = {"curator", "two-servers", "one-report"}


def named_trusts(text: str) -> tuple[str, ...]:
    """The names that `--trust` stands for: all of them, or one; `InputError` for others.

    >>> named_trusts("two-servers")
    ('two-servers',)
    """
    if text == "all":
        return tuple(TRUSTS)
    if text not in TRUSTS:
        raise InputError(f"a trust model is all, or one of {', '.join(TRUSTS)}; found {text!r:.40}")
    return (text,)


def planned_trusts(spec: ReleaseSpec, people: int, names: tuple[str, ...]) -> tuple[PlannedTrust, ...]:
    """Plan a specification's method on each of these trust models; its table does not matter.

    `InputError` for a method that asks for more than sums over people, and for more than ten million people.
    """
    if not FEWEST <= people <= MOST_PEOPLE:
        raise InputError(f"a plan of trust models needs {FEWEST:,} to {MOST_PEOPLE:,} people; found {people:,}")
    if spec.box is None or isinstance(spec.cells, DistrictFiles):
        raise InputError("a plan of trust models needs a box, west,south,east,north (--box), and squares or hexagons")
    if spec.plane is not None:
        raise InputError("a plan is made for a city on the ground: leave the plane out")
    refuse_shares_in_slots(spec)
    trial = SyntheticTable.of(domain(spec.cells, spec.box), spec.box, people)
    return tuple(_tried(name, spec, trial, people) for name in names)


def _timed(spec: ReleaseSpec, trial: SyntheticTable, people: int) -> CityInSlots | None:
    """The same city in the slots that are asked for, if any are."""
    return CityInSlots.of(trial, spec.timeslots, people) if spec.timeslots.timed else None


def _tried(name: str, spec: ReleaseSpec, trial: SyntheticTable, people: int) -> PlannedTrust:
    form, there = TRUSTS[name], int(trial.people.sum())
    budget = spec.budget if name in _AS_ASKED else form.budget(spec.budget)
    method, timed = _method(name, spec, trial), _timed(spec, trial, people)
    there = there if timed is None else int(timed.people.sum())
    try:
        trust = form.make(timed or trial, there, budget, Stream.fixed(_STREAM))
        result = run(method, trust, budget, Unrecorded())
        octets = form.octets(result.transcript, there, budget)
    except HazemapError as error:
        return PlannedTrust(name, form.apart, budget, refused=str(error))
    made: Any = result.value
    if timed is not None:
        everybody = made.total.noise.of(made.total.places.astype(float)).stddev
        return PlannedTrust(name, form.apart, budget, timed.misplaced(made), everybody, octets)
    at = made.cells.locate(trial.base_in(made.cells.tree))
    total = made.noise.of(made.places.astype(float)).stddev
    return PlannedTrust(name, form.apart, budget, trial.misplaced(at, made.values), total, octets)


def _method(name: str, spec: ReleaseSpec, trial: SyntheticTable) -> Any:
    """The method, with the parameters for people who answer themselves where it is adaptive.

    As in campaigns, devices do not count who is outside of the map.
    """
    tree, chosen = trial.tree, spec.method
    cells = QuadtreeCells(tree.depth) if isinstance(tree, Quadtree) else HexagonCells(tree.coarsest, tree.finest)
    bounding = spec.bounding if name == "curator" else replace(spec.bounding, outside=Outside.DROP)
    method: Any = method_from_name(chosen, cells, trial.box, bounding, spec.budget)
    if not sums_only(method):
        raise InputError(f"{chosen} asks for more than sums over people: only a curator can answer it")
    if spec.timeslots.timed:
        return in_slots(method, spec.timeslots)
    if not isinstance(method, Adaptive) or name == "curator":
        return method
    make = Adaptive.for_one_report if name == "one-report" else Adaptive.for_devices
    return replace(make(method.tree, method.bounding), **method_options(chosen))
