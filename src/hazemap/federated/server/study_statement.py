"""What a study promises to the people whose devices answered it, and what all its rounds have cost them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.privacy_statement import assumed_of_recipes, trust_of
from hazemap.federated.server.study_spec import StudySpec
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import OneReport

A_DEVICE = "a person: all events on one device"
EXCHANGED = "the events of one device, all of them, exchanged for any others; that it takes part is public"
NOISE = "bits flipped by each person"
NOT_CHECKED = (
    "what devices say is not checked: a device that breaks the rules can send any vector, and spoil the counts of its "
    "shard"
)
REPORTS = "all other devices randomise their reports, as the protocol has it, and nothing is added to them"


AMONG_DEVICES = " among devices"


def assumed(spec: StudySpec, most: Fraction | None = None) -> tuple[str, ...]:
    """What is proved of reports and assumed of everybody; `most` is the largest ε₀ of a report, once it is known."""
    if spec.carrier is None or spec.batch is None:
        return spec.cohort.assumed("reports")
    return assumed_of_recipes(spec.batch, spec.carrier, most)


def spent(paid: Sequence[tuple[Fraction, Fraction]]) -> PureDP | ApproxDP:
    """What rounds of these (ε, δ) cost a person together: their sum, whichever question depended on which answer."""
    epsilon, delta = (sum(each, Fraction(0)) for each in zip(*paid, strict=True))
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def study_statement(
    spec: StudySpec,
    paid: Sequence[tuple[Fraction, Fraction]],
    released: Sequence[tuple[int, Recipe]],
    left_out: Collection[int],
) -> Statement:
    """The statement of a file with the answers of these rounds, made now.

    Its price is that of every round that was `paid`: what the people have given, whether or not it is in the file.
    `left_out` are the numbers of the others.
    """
    cohort = spec.cohort
    most = max((recipe.local_epsilon for _, recipe in released), default=Fraction(0))
    asked = tuple(
        f"round {number}: the recipe {recipe.id}, version {recipe.version}, SHA-256 {recipe.digest}, for "
        f"{recipe.purpose}"
        for number, recipe in released
    )
    numbers = ", ".join(map(str, sorted(left_out)))
    rest = (
        f"left out of this file: round {numbers}; what they cost is in the budget, for their people have paid it"
        if left_out
        else ""
    )
    public = (
        f"the study {spec.name!r} of the analysis {spec.analysis}",
        *asked,
        f"the cohort: {cohort.people:,} people a round, {_together(spec)}; {cohort.sampling.value}",
        "which devices were asked, which answered, and how many people each answer is over",
        rest,
    )
    trust = f"secure aggregation{AMONG_DEVICES}" if spec.carrier is None else trust_of(spec.carrier)
    promise = Promise(
        dataset=spec.analysis,
        unit=A_DEVICE,
        neighbours=EXCHANGED,
        budget=spent(paid),
        bounding=OneReport(),
        trust=trust,
        assumptions=(
            *assumed(spec, most),
            REPORTS,
            f"each report by itself is private by ε₀ = {float(most):.6g} at most, against whoever sees it alone: a "
            "person pays that again in every round",
            f"the budget is that of the {len(paid):,} rounds of this study that were paid; other "
            "studies and maps have prices of their own, and a device bounds all of them by its policy",
            *((NOT_CHECKED,) if spec.carrier is None else ()),
        ),
        method=f"recipes by {trust.removesuffix(AMONG_DEVICES)}",
    )
    facts = CohortFacts(
        people=cohort.people,
        shard=cohort.shard,
        dropout=cohort.dropout,
        corrupt=cohort.corrupt,
        sampling=cohort.sampling.name,
        mode=cohort.mode.name,
        local_epsilon=most,
        trust=None if spec.carrier is None else spec.trust,
        minimum=None if spec.carrier is None else spec.carrier.minimum,
    )
    made = stated(
        promise,
        Disclosure((Learned.REPORTS,)),
        public=public,
        circumstances=StatementFacts(DEVICE, Randomness.DEVICES, facts),
    )
    return replace(made, noise=NOISE)


def _together(spec: StudySpec) -> str:
    """How many people's reports are summed together."""
    if spec.carrier is not None:
        return f"of whom the reports of {spec.carrier.minimum:,} or more are opened together"
    shards = spec.cohort.shards
    return f"in {len(shards):,} shards of up to {max(shards):,}"
