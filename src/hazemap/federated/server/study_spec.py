"""What an analyst orders who wants to ask several recipes: a study, all of it public and checked before it begins."""

import re
from dataclasses import dataclass, field
from fractions import Fraction

from hazemap.codec import Limits, loads
from hazemap.errors import BudgetExceeded, InputError
from hazemap.federated.recipes.policy import MOST_REPORTS, AnalysisBudget, Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.campaign_spec import LONGEST, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import KNOWN as OF_TASKS
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import CARRIERS, SECURE_SUM, ByOneReport, ByShuffler, ByTwoServers
from hazemap.federated.trust.two_server_tasks import recipe_blank, recipe_report
from hazemap.field_types import check_fields
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
LARGEST_ROUND = 1 << 30
"""Bytes of all reports of a round together: the server keeps them until their sums are opened."""


@dataclass(frozen=True)
class StudySpec:
    """A named series of recipe rounds of one analysis: who is asked, and what all rounds may cost together.

    `epsilon`, `delta` and `reports` bound the sums of what the recipes state, within the budget that the devices'
    policy gives the analysis. `wait` is how many seconds a round waits for enough devices to be there; `attempts` is
    how often a shard is begun that cannot be opened. A `carrier`, two servers, takes the place of secure sums.

    >>> study = StudySpec("spring", "keyboard", Fraction(1), Fraction(1, 10**5), 4, Cohort(1_000, 1_000))
    >>> study.attempts
    3
    """

    name: str
    analysis: str
    epsilon: Fraction
    delta: Fraction
    reports: int
    cohort: Cohort
    deadlines: Deadlines = field(default_factory=Deadlines)
    wait: float = 3600
    attempts: int = 3
    carrier: ByTwoServers | ByOneReport | ByShuffler | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not NAME.fullmatch(self.name):
            raise InputError("a study's name is 1 to 64 of a-z, 0-9, dot, dash and underscore, beginning with a-z, 0-9")
        if not 0 < self.epsilon <= 1_000 or not 0 <= self.delta < 1 or not 1 <= self.reports <= MOST_REPORTS:
            raise InputError(
                f"a study may cost ε above 0 and up to 1,000, δ from 0 to below 1, and 1 to {MOST_REPORTS:,} reports"
            )
        if not 0 <= self.wait <= LONGEST or not 1 <= self.attempts <= 5:
            raise InputError(f"a study waits 0 to {LONGEST:,} seconds for its people, and begins a shard 1 to 5 times")
        self._check_carrier()

    def exceeds(self, analysis: AnalysisBudget) -> str | None:
        """What of it is more than the devices' policy gives its analysis; None where nothing is."""
        for what, own, most in (
            ("ε", self.epsilon, analysis.epsilon),
            ("δ", self.delta, analysis.delta),
            ("reports", self.reports, analysis.reports),
        ):
            if own > most:
                return (
                    f"the study {self.name} may cost {what} = {float(own):.6g}, but the devices' policy gives the "
                    f"analysis {analysis.name} {float(most):.6g}: ask for less"
                )
        return None

    @property
    def budget(self) -> PureDP | ApproxDP:
        """What all its rounds may cost a person."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def trust(self) -> str:
        """Who is trusted, by name: one of `report_carriers.TRUSTS`."""
        return SECURE_SUM if self.carrier is None else self.carrier.trust

    @property
    def honest(self) -> int:
        """How many people's reports are certain to be in any sum that is opened."""
        return self.cohort.fewest_honest if self.batch is None else self.batch.honest

    @property
    def batch(self) -> ReportBatch | None:
        """The reports that two servers open together; None where shards of people do."""
        return None if self.carrier is None else ReportBatch.of(self.cohort, self.carrier.minimum)

    def task(self, recipe: Recipe, round_: int) -> Task:
        """The question of one round as devices are shown it; `InputError` says why it cannot be asked.

        Its share is the part of the study's budget that it costs: of ε or of δ, whichever is larger.
        """
        self._check(recipe)
        share = max(recipe.epsilon / self.epsilon, recipe.delta / self.delta if self.delta else Fraction(0))
        if not 0 < share <= 1 or (recipe.delta and not self.delta):
            raise BudgetExceeded(
                f"the recipe {recipe.id} states (ε, δ) = ({float(recipe.epsilon):.6g}, {float(recipe.delta):.3g}), but "
                f"all rounds of the study {self.name} together may cost {self.budget}"
            )
        task = Task.asking(recipe, self.name, round_, self.cohort, self.budget, share)
        if isinstance(self.carrier, ByTwoServers):
            recipe_report(task, self.carrier)
            recipe_blank(task, self.carrier)
            return task
        for size in {min(self.cohort.shards), max(self.cohort.shards)}:
            task.noise(size)
        return task

    def charge(self, recipe: Recipe) -> ZCDP:
        """The ρ that a round costs in the ledger: of a person's report against that of another bin, such as none."""
        return ZCDP(zcdp_of_sum(randomiser_of(recipe).bit_flips, self.honest).rho)

    def _check(self, recipe: Recipe) -> None:
        """`InputError` where a recipe is another analysis's, or so large that the server could not keep the reports."""
        if recipe.analysis != self.analysis:
            raise InputError(
                f"the recipe {recipe.id} is of the analysis {recipe.analysis}, but the study {self.name} is of "
                f"{self.analysis}: begin a study of that analysis"
            )
        wanted = Carrier.SECURE_SUMS if self.carrier is None else Carrier.TWO_SERVERS
        if recipe.carrier is not wanted:
            raise InputError(
                f"the recipe {recipe.id} is carried by {recipe.carrier.value}, but the study {self.name} by "
                f"{wanted.value}: write carrier = {wanted.value!r} in the recipe, or begin a study of the other kind"
            )
        if self.carrier is not None:
            return  # the servers keep the reports
        size = self.cohort.people * -(-recipe.size * (self.cohort.shard.bit_length() + 1) // 8)
        if size > LARGEST_ROUND:
            raise InputError(
                f"the reports of {self.cohort.people:,} people with {recipe.size:,} numbers each are {size >> 20:,} "
                f"MiB, and a round has {LARGEST_ROUND >> 20:,} MiB at most: use fewer buckets, or ask fewer people"
            )

    def _check_carrier(self) -> None:
        if self.carrier is None:
            return
        if not isinstance(self.carrier, ByTwoServers):
            raise InputError(
                f"a study asks by secure sums or by two servers, not by {self.carrier.trust!r}: a report to a recipe "
                "answers that one, and nobody sees it before it is summed"
            )
        if self.carrier.minimum > self.cohort.people:
            raise InputError(
                f"a batch is opened with {self.carrier.minimum:,} reports or more, but only {self.cohort.people:,} "
                "people are asked: ask more, or set a smaller minimum"
            )
        _ = self.honest


KNOWN: tuple[type, ...] = (StudySpec, Deadlines, *CARRIERS, *OF_TASKS)
"""What a study adds to the codec's closed list."""

ORDER = Limits(length=1 << 16, items=1 << 10, work=1 << 16)
RECIPE = Limits(length=1 << 25, items=1 << 22, work=1 << 26, lists=1 << 21)
"""A recipe may list the cells of a large map."""


def study_from(text: str | bytes) -> StudySpec:
    """A study that somebody ordered or the server kept; `CodecError` for anything else."""
    study: StudySpec = loads(text, KNOWN, StudySpec, ORDER)
    return study


def recipe_from(text: str | bytes) -> Recipe:
    """A recipe as an analyst sends it: the codec's JSON. `CodecError` for anything else."""
    recipe: Recipe = loads(text, KNOWN, Recipe, RECIPE)
    return recipe
