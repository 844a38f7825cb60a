"""A study of people in this process, of a table or of a store of devices: to try recipes and budgets first.

Nobody is protected by a `PopulationStudy`. Devices of a store decide, pay and answer as they would a server.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from hazemap.errors import InputError, NotOpened, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.device_account import DeviceAccount, PrivateRefusal, RecipeReport
from hazemap.federated.device.policy.consent_policy import Policy, restrict_policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.recipes.query_sandbox import AdmittedQuery
from hazemap.federated.device.recipes.recipe_answer import reported_bin
from hazemap.federated.device.recipes.recipe_check import admit, check_recipe, sum_price
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import ApprovedStreams, EventStore
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeTable
from hazemap.federated.server.study_statement import A_DEVICE, EXCHANGED, NOISE, spent
from hazemap.federated.study.study_answers import NOTHING, RoundAnswer, StudyAnswers, StudyBudget
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


@dataclass
class PopulationStudy:
    """One study of a population, by the rules of a policy: the same refusals and noise as among devices.

    Every person's report is drawn from its exact law. Budgets are those of the policy's analysis, kept in memory.
    """

    population: RecipeTable
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


PRIVATE = "nothing is left to spend on this recipe"
"""What is said where the reason names what others were told."""


@dataclass
class StoredDevices:
    """Every device of a store, within its accepted policy and its owner's `rules`: charged before anybody sees its bin.

    `refusals` counts why devices did not answer the last recipe. Cost: O(devices · events), some milliseconds each.
    """

    store: EncryptedStore
    rules: Policy
    refusals: Counter[str] = field(default_factory=Counter)
    stream: Stream = field(default_factory=Stream.from_os)

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bins of the devices that answer, int64[answers]."""
        self.refusals, every, now = Counter(), enrolment.devices(self.store), datetime.now(UTC)
        accepted = ShippedPolicies(self.store).current()
        if accepted is None:
            raise Refused("these devices have accepted no policy, so they answer no recipe: `hazemap device accept`")
        policy = restrict_policy(accepted.policy, self.rules)
        try:
            admitted = admit(recipe, policy)
        except Refused as error:
            self.refusals[str(error)] = len(every)
            return np.zeros(0, dtype=np.int64)
        price = sum_price(recipe, randomiser_of(recipe), recipe.minimum_cohort, policy.accounting)
        request = ReportRequest.of(recipe, admitted.touched, price, bytes(32))
        asked = RecipeReport(request, policy)
        bins = [self._bin(device, asked, recipe, admitted, now) for device in every]
        return np.array([each for each in bins if each is not None], dtype=np.int64)

    def _bin(
        self, device: int, asked: RecipeReport, recipe: Recipe, admitted: AdmittedQuery, now: datetime
    ) -> int | None:
        """The bin of a device that agrees and has paid."""
        account = DeviceAccount(self.store, device, enrolment.read(self.store, device), self.rules)
        source = ApprovedStreams(EventStore(self.store, device), asked.policy, now.timestamp())
        try:
            paid = account.paid(asked, now, lambda: reported_bin(recipe, admitted, asked.policy, source, self.stream))
        except Refused as error:
            self.refusals[PRIVATE if isinstance(error, PrivateRefusal) else str(error)] += 1
            return None
        [failed] = self.store.commit([paid.writes])
        if failed is not None:
            self.refusals["another process has charged this device meanwhile"] += 1
        return None if failed else paid.made


@dataclass(frozen=True)
class EventPopulation:
    """The devices of a store, whose owners' events answer recipes under one policy: for tests and studies.

    It stands where a `PopulationTable` does: in `federated.trust.in_memory_secure_aggregation`, or in
    `federated.trust.local`. Nothing is charged, so it is for people who are made up.

    >>> EventPopulation.__dataclass_fields__["devices"].name
    'devices'
    """

    store: EncryptedStore
    devices: Sequence[int]
    policy: ShippedPolicy
    now: datetime
    stream: Stream = field(default_factory=Stream.from_os)

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin that each device reports, int64[devices]; `Refused` where the policy does not admit the recipe."""
        admitted = admit(recipe, self.policy)
        return np.array([self._bin(device, recipe, admitted) for device in self.devices], dtype=np.int64)

    def _bin(self, device: int, recipe: Recipe, admitted: AdmittedQuery) -> int:
        source = ApprovedStreams(EventStore(self.store, device), self.policy, self.now.timestamp())
        return reported_bin(recipe, admitted, self.policy, source, self.stream)
