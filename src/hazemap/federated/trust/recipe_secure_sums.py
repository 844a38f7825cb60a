"""Recipes answered in one process by the real protocol: for tests, for teaching, and for a few hundred people."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hazemap.errors import InputError, NotOpened
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins, RecipeTable
from hazemap.federated.trust.cohort_assumptions import Cohort, Participation
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.in_memory_secure_aggregation import session_of
from hazemap.federated.trust.random_sampling import without_replacement
from hazemap.federated.trust.randomised_reports import debiased
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.random_permutation import in_any_order
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Answer


@dataclass(frozen=True)
class RecipeSecureSums:
    """Answers recipes at the price that they state, by secure sums of people's reports.

    `table` says which bin each person reports: a `PopulationTable`, or the event stores of many devices
    (`device.event_population`). Each round asks people drawn anew, each a client with an identity, who randomises one
    report and drops out with probability `dropping` before it is sent. Reports have the law of `LocalReports` over the
    people who answered. A shard that cannot be opened is lost; if all are, the round raises `NotOpened`. `turnouts`
    tells what became of each round. A person's part costs some 10 ms a round.

    >>> from hazemap.federated.recipes.features import Categories, Feature
    >>> from hazemap.federated.recipes.population_table import PopulationTable
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
    >>> words = Recipe(
    ...     "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT word FROM keyboard"), (),
    ...     (Feature("word", Categories(("so", "be"))),), Fraction(4), Fraction(4), Fraction(1, 10**6), 9,
    ... )
    >>> people = PopulationTable.of_people(np.arange(10), (["so"] * 10,))
    >>> sums = RecipeSecureSums(people, Cohort(10, 10, corrupt=Fraction(0), mode=Mode.SEMI_HONEST))
    >>> answer = sums.answer(words)
    >>> answer.people, answer.sums.shape
    (10, (4,))
    """

    table: RecipeTable
    cohort: Cohort
    stream: Stream = field(default_factory=Stream.from_os)
    dropping: Fraction = Fraction(0)
    turnouts: list[Participation] = field(default_factory=list)
    _identities: list[Identity] = field(default_factory=list, repr=False)

    def answer(self, recipe: Recipe, randomiser: Symmetric | Asymmetric | UnaryEncoding | None = None) -> Answer:
        """The unbiased numbers of people in each bin; `InputError` where a sum would cost more than the recipe says."""
        task = Task.asking(recipe, "in memory", len(self.turnouts) + 1, self.cohort, randomiser=randomiser)
        law = task.randomiser
        if law is None:
            raise InputError("a recipe is answered by reports that are randomised")
        bins = RecipeBins(recipe).bins(self.table)
        if len(bins) < self.cohort.people:
            raise InputError(f"{self.cohort.people} people are to be asked, but only {len(bins)} are in the table")
        self._identities.extend(Identity.create() for _ in range(len(bins) - len(self._identities)))
        sample = without_replacement(self.stream, len(bins), self.cohort.people)
        sums, answered = np.zeros(recipe.size, dtype=np.int64), []
        shuffled = sample[in_any_order(self.stream, len(sample))]
        for shard in np.split(shuffled, np.cumsum(self.cohort.shards[:-1])):
            reports = [law.report(self.stream, int(bins[one]), recipe.size).astype(np.int64) for one in shard]
            people = [self._identities[one] for one in shard.tolist()]
            try:
                opened = session_of(task, people, reports, self.dropping, self.stream)
            except NotOpened:
                answered.append(0)
                continue
            sums += opened.sums
            answered.append(opened.people)
        turnout = Participation(self.cohort, tuple(answered))
        self.turnouts.append(turnout)
        turnout.need()
        return debiased(law, sums, turnout.people, self.stream)
