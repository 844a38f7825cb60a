"""A study of people in this process: to try recipes and budgets before devices are asked. Nobody is protected by it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from hazemap.errors import InputError, NotOpened
from hazemap.federated.device.recipe_check import check_recipe
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.server.study_statement import A_DEVICE, EXCHANGED, NOISE, spent
from hazemap.federated.study.study_answers import RoundAnswer, StudyAnswers
from hazemap.federated.study.study_budget import NOTHING, StudyBudget
from hazemap.federated.trust.randomised_reports import debiased
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement_facts import Randomness, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import OneReport

IN_THIS_PROCESS = "the population is in this process: whoever runs the study can see every event"


class Population(Protocol):
    """People who answer recipes: a `PopulationTable`, or `StoredDevices`."""

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin of each person who reports."""


@dataclass
class PopulationStudy:
    """One study of a population, by the rules of a policy: the same refusals and noise as among devices.

    Every person's report is drawn from its exact law. Budgets are those of the policy's analysis, kept in memory.
    """

    population: Population
    policy: ShippedPolicy
    analysis: str
    stream: Stream = field(default_factory=Stream.from_os)
    _answers: dict[str, Answer] = field(default_factory=dict)
    _left: StudyBudget | None = None
    _stopped: bool = False
    _asked: list[Recipe] = field(default_factory=list)

    def assumptions(self) -> tuple[str, ...]:
        """What the promise to its people assumes."""
        return (IN_THIS_PROCESS,)

    def left(self) -> StudyBudget:
        """What it may still spend."""
        if self._stopped:
            return NOTHING
        if self._left is None:
            budget = self.policy.analysis(self.analysis)
            if budget is None:
                known = ", ".join(each.name for each in self.policy.analyses)
                raise InputError(f"the policy {self.policy.name} knows no analysis {self.analysis}; it knows {known}")
            self._left = StudyBudget(budget.epsilon, budget.delta, budget.reports)
        return self._left

    def release(self, recipe: Recipe | None = None) -> StudyAnswers:
        """The answers of all rounds, or to one recipe, with a statement that says who could see everything."""
        answers = [self._answers.get(each.digest) if recipe in (None, each) else None for each in self._asked]
        rounds = tuple(
            RoundAnswer(number, asked, answer)
            for number, (asked, answer) in enumerate(zip(self._asked, answers, strict=True), 1)
            if answer is not None
        )
        if not rounds:
            raise InputError(f"this study of {self.analysis} has no such answer: ask first")
        randomness = Randomness.TEST_STREAM if self.stream.is_fixed else Randomness.SYSTEM
        most = max(each.recipe.local_epsilon for each in rounds)
        promise = Promise(
            dataset=self.analysis,
            unit=A_DEVICE,
            neighbours=EXCHANGED,
            budget=spent([(each.epsilon, each.delta) for each in self._asked]),
            bounding=OneReport(),
            trust="whoever runs the study",
            assumptions=(IN_THIS_PROCESS, f"each report is private by ε₀ = {float(most):.6g} at most"),
            method="recipes over a population in one process",
        )
        said = stated(promise, Disclosure((Learned.REPORTS,)), circumstances=StatementFacts(DEVICE, randomness))
        return StudyAnswers(self.analysis, rounds, replace(said, noise=NOISE))

    def stop(self) -> None:
        """Let no further question through."""
        self._stopped = True

    def ask(self, recipe: Recipe) -> Answer:
        """The answer to a recipe: asked, and paid, once."""
        if recipe.digest in self._answers:
            return self._answers[recipe.digest]
        if self._stopped:
            raise InputError(f"this study of {self.analysis} was stopped: it asks nothing more")
        if recipe.analysis != self.analysis:
            raise InputError(f"the recipe {recipe.id} is of {recipe.analysis}, but this study is of {self.analysis}")
        left, law = self.left().after(recipe), randomiser_of(recipe)
        if reasons := check_recipe(recipe, self.policy, recipe.minimum_cohort).reasons:
            raise InputError(f"devices would refuse the recipe {recipe.id}: {'; '.join(reasons)}")
        self._left = left
        self._asked.append(recipe)
        bins = self.population.recipe_bins(recipe)
        people = len(bins)
        if people < recipe.minimum_cohort:
            said = getattr(self.population, "refusals", None) or Counter[str]()
            why = "; ".join(f"{number:,} because {reason}" for reason, number in said.most_common(5))
            raise NotOpened(
                f"the recipe {recipe.id} is summed over {recipe.minimum_cohort:,} people or more, but {people:,} "
                f"answered{f'. Devices refused: {why}' if why else ''}. What the round has cost stays paid"
            )
        sums = law.sums(self.stream, np.bincount(bins, minlength=recipe.size), people)
        self._answers[recipe.digest] = debiased(law, sums, people, self.stream)
        return self._answers[recipe.digest]
