"""The tasks of DAP that follow from a round over two servers: the coordinator and each device compute the same.

A round asks for one vector or several, in each of which a person has a single 1 or none. Each is a task of its own:
Prio3MultihotCountVec with at most one 1, which unlike a histogram needs no place for people without a row, so that a
device's rows, there or not, move each sum by 1 at most, and only one of them. Each task's noise costs its part of the
round's price. Its batch is all reports of the task.

To a recipe a device randomises its bin as for a secure sum, and splits the bits in shares. The servers prove that they
are bits, and no more of them 1 than an honest report has; honest coins they cannot prove. Each adds reports of people
who hold nothing, as many as the price counts on others: so it holds where one server is honest, whoever else has
reported.
"""

from fractions import Fraction
from hashlib import sha256
from math import ceil
from typing import Final

from hazemap.cells import Leaves, Tree
from hazemap.codec import digest
from hazemap.encoders import Counts
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.blank_reports import BlankReports
from hazemap.federated.protocols.dap.privacy_parameters import MICRO, PrivacyParameters, WalkTerms
from hazemap.federated.protocols.dap.report_credentials import ReportAdmission
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.vdaf_configuration import (
    MultihotConfiguration,
    Poplar1Configuration,
    VdafConfiguration,
)
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.device_tasks import Task, pure
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.recipe_terms import check_recipe_sum
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByOneReport, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_servers import ones_allowed, vectors
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.queries.noisy_queries import Query
from hazemap.tables.contribution_bounding import Bounding
from hazemap.vdaf.circuits import shortest_chunk_length


def recipe_batch(task: Task, carrier: ByTwoServers) -> ReportBatch:
    """Who is asked, and how many reports are in the smallest sum that is opened; `InputError` if none hides another.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> from hazemap.federated.trust.cohort_assumptions import Cohort
    >>> task = Task.asking(recipe_from_toml(EXAMPLE), "words", 1, Cohort(20_000, 10_000))
    >>> recipe_batch(task, ByTwoServers("https://one.example/", "https://two.example/", 18_000)).honest
    16000
    """
    return ReportBatch.of(task.cohort, carrier.minimum)


def recipe_report(task: Task, carrier: ByTwoServers) -> MultihotConfiguration:
    """What the servers prove of each report: its length, and how many bits it sets at most.

    `InputError` unless the smallest sum that they open is over the people that the recipe states, and tells no more
    than it states.
    """
    recipe, law = asked(task)
    batch = recipe_batch(task, carrier)
    check_recipe_sum(recipe, law, batch.minimum, batch.honest)
    most = ones_allowed(law, recipe.size, batch)
    return MultihotConfiguration(recipe.size, shortest_chunk_length(recipe.size + most.bit_length()), most)


def recipe_blank(task: Task, carrier: ByTwoServers) -> BlankReports:
    """What each server adds: with the person's own report they are as many as the price is computed for.

    `InputError` for a law that no task can name.
    """
    _, law = asked(task)
    return BlankReports.of(law, recipe_batch(task, carrier).honest - 1)


def asked(task: Task) -> tuple[Recipe, Symmetric | Asymmetric | UnaryEncoding]:
    """The recipe of a round, and how its reports are randomised."""
    if task.recipe is None or task.randomiser is None:
        raise InputError("this round asks no recipe")
    return task.recipe, task.randomiser


PRECISION: Final = 7 * 86_400
"""Seconds: times of reports are told to the week, and a round is over in two."""
CAMPAIGN: Final = b"hazemap "
"""How the task info of a round begins."""
_FINEST = 1 << 20
_LARGEST = 1 << 63


def round_noise(carried: CarriedTask) -> TwoServerNoise:
    """What each server adds to every sum of the round: that of the price, or the next wider one that can be written.

    `Unanswerable` for noise so wide that it cannot be drawn.
    """
    noise = TwoServerNoise.within(pure(carried.task.price), carried.task.question.encoder.sensitivity)
    if not isinstance(noise.each, DiscreteLaplace) or not noise.fits:
        raise Unanswerable("this round's price is so low that its noise cannot be drawn: ask for fewer rounds")
    scale = noise.each.scale
    if max(scale.numerator, scale.denominator) >= _LARGEST:
        scale = Fraction(ceil(scale * _FINEST), _FINEST)
    return TwoServerNoise(DiscreteLaplace(scale))


def round_tasks(carried: CarriedTask, issuer: bytes) -> tuple[DapTask, ...]:
    """One task for each vector of the round. `InputError` where the round is not of two servers.

    `issuer` is the public key of the coordinator, which gives each of the round's people a credential for each task.
    They are computed once for each announcement that was read: O(cells asked).
    """
    known: tuple[DapTask, ...] | None = carried.__dict__.get("_round_tasks")
    if known is None or known[0].admission != admission(carried, issuer):
        known = _round_tasks(carried, issuer)
        object.__setattr__(carried, "_round_tasks", known)
    return known


def _round_tasks(carried: CarriedTask, issuer: bytes) -> tuple[DapTask, ...]:
    if not isinstance(carried.carrier, ByTwoServers):
        raise InputError("a round of another carrier has no tasks for each question")
    info = _info(carried)
    if carried.task.recipe is not None:
        report, blank = recipe_report(carried.task, carried.carrier), recipe_blank(carried.task, carried.carrier)
        return (_task(carried, issuer, 0, info, report, blank=blank),)
    noise = round_noise(carried).each
    assert isinstance(noise, DiscreteLaplace)  # noqa: S101 - `round_noise` gives no other
    privacy = PrivacyParameters.of(noise, 1, Fraction(ceil(MICRO / noise.scale), MICRO))
    return tuple(
        _task(carried, issuer, place, info, MultihotConfiguration(size, shortest_chunk_length(size + 1), 1), privacy)
        for place, size in enumerate(vectors(carried.task.question.encoder))
    )


def whole_tree(tree: Tree, bounding: Bounding) -> Query:
    """What devices are shown of a campaign to which they report once: its tree and rule, at the whole price."""
    return Query(Counts(Leaves(tree, tree.root), bounding), Fraction(1))


def walk_task(carried: CarriedTask, issuer: bytes) -> DapTask:
    """The one task of a campaign to which people report once: its budget and its levels are bound into every report.

    `InputError` or `Unanswerable` where the round is not of one report, or has no tree that one can walk down.
    """
    carrier, task = carried.carrier, carried.task
    if not isinstance(carrier, ByOneReport):
        raise InputError("a round of another carrier has no task for a whole tree")
    tree, bounding = walked(carried)
    if task.question != whole_tree(tree, bounding) or task.round != 1 or task.price != task.budget:
        raise InputError("people who report once are asked once, about a whole tree, at the whole price")
    if bounding.sensitivity.l1 != 1:
        raise Unanswerable(f"one report holds one row of a person, not {bounding}: bound each to one row")
    known: DapTask | None = carried.__dict__.get("_walk_task")
    if known is None or known.admission != admission(carried, issuer):
        terms = WalkTerms.of(pure(task.budget), carrier.levels, carrier.prefixes)
        known = _task(carried, issuer, 0, _info(carried), Poplar1Configuration(CellStrings(tree).bits), walk=terms)
        object.__setattr__(carried, "_walk_task", known)
    return known


def walked(carried: CarriedTask) -> tuple[Tree, Bounding]:
    """The tree that servers walk down, and the rule that leaves one cell of a person."""
    encoder = carried.task.question.encoder
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves):
        raise Unanswerable("one report answers counts of the cells of a tree")
    return encoder.cells.tree, encoder.bounding


def batch_interval(carried: CarriedTask) -> TimeInterval:
    """When reports of a round are made, in time precisions."""
    return TimeInterval(carried.begun // PRECISION, 2)


def admission(carried: CarriedTask, issuer: bytes) -> ReportAdmission:
    """Who may report to the tasks of a round: whoever is asked, by credentials of this issuer."""
    return ReportAdmission(issuer, carried.task.cohort.people)


def _info(carried: CarriedTask) -> bytes:
    return CAMPAIGN + bytes.fromhex(digest(carried))


def task_id(carried: CarriedTask, place: int) -> bytes:
    """The id of a round's task: from its batch, which is random, so that nobody can have it beforehand."""
    return sha256(b"hazemap task of a campaign" + bytes.fromhex(carried.batch) + place.to_bytes(4, "big")).digest()


def _task(
    carried: CarriedTask,
    issuer: bytes,
    place: int,
    info: bytes,
    measured: VdafConfiguration,
    privacy: PrivacyParameters | None = None,
    walk: WalkTerms | None = None,
    blank: BlankReports | None = None,
) -> DapTask:
    carrier = carried.carrier
    assert isinstance(carrier, ByTwoServers | ByOneReport)  # noqa: S101 - see above
    return DapTask.created(
        task_id(carried, place),
        info,
        carrier.leader,
        carrier.helper,
        PRECISION,
        carrier.minimum,
        BatchMode.TIME_INTERVAL,
        measured,
        interval=batch_interval(carried),
        privacy=privacy,
        walk=walk,
        admission=admission(carried, issuer),
        blank=blank,
    )
