"""A policy, recipes and people with words, for tests of studies."""

import asyncio
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from tests.federated.recipes.asking import PersonRows
from tests.federated.server.fleet import AS_OPERATOR, Anything, FakeDevice, Town

from hazemap.codec import dumps
from hazemap.encoders.encoder import total
from hazemap.federated.device.recipes.recipe_check import check_recipe
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Feature, PrefixTree
from hazemap.federated.recipes.policy_document import SignedPolicy, from_toml
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import Task, check
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity

PURPOSE = "better suggestions for the next word"
POLICY = from_toml("""
name = "words"
version = 1
days = 30
[[limits]]
days = 365
epsilon = 100
delta = 1e-3
reports = 100
[streams.keyboard]
keep = 30
fields = [{ name = "ngram", type = "text" }, { name = "secret", type = "text" }]
[fields."keyboard.ngram"]
local_epsilon = 8
epsilon = 40
delta = 1e-4
reports = 20
[analyses.keyboard]
purpose = "better suggestions for the next word"
epsilon = 20
delta = 1e-5
reports = 5
minimum_cohort = 5
carriers = ["secure sums"]
[analyses.keyboard.queries]
fields = ["keyboard.ngram"]
[analyses.typos]
purpose = "better suggestions for the next word"
epsilon = 20
delta = 1e-5
reports = 5
minimum_cohort = 5
carriers = ["secure sums"]
[analyses.typos.queries]
fields = ["keyboard.ngram"]
""")
KEY = Identity.create()
SIGNED = SignedPolicy.sign(POLICY, KEY)


def recipe(name="words", tokens=("hello", "world"), sql="SELECT ngram FROM keyboard", analysis="keyboard", **changes):
    price = {"local_epsilon": Fraction(4), "epsilon": Fraction(4), "delta": Fraction(1, 10**6), "minimum_cohort": 8}
    features = (Feature("word", PrefixTree(("",), tokens)),)
    return Recipe(name, 1, analysis, PURPOSE, SqlQuery(sql), (), features, **{**price, **changes})


def study(people=12, name="spring", analysis="keyboard", **changes):
    cohort = Cohort(people, people, Fraction(1, 6), Fraction(0), Sampling.FRESH, Mode.SEMI_HONEST)
    budget = {"epsilon": Fraction(20), "delta": Fraction(1, 10**5), "reports": 4}
    fields = {"cohort": cohort, "deadlines": Deadlines.all(600), "wait": 600.0, **budget, **changes}
    return StudySpec(name, analysis, **fields)


def judge(asked, policy, honest):
    return check_recipe(asked, policy, honest).reasons


@dataclass
class Typist(FakeDevice):
    """One person who typed one text."""

    text: str = "hello"

    def _client(self, task: Task) -> SecureSumClient:
        def contribution(terms):
            check(task, terms)
            rows = PersonRows(((self.text,),), self.identity.public)
            return randomised(task.randomiser, total(task.question.encoder, rows), Stream.from_os())

        paid = lambda *_: self.contributed.append((task.campaign, task.round))  # noqa: E731
        return SecureSumClient(self.identity, Anything(), contribution, pay=paid)


def typists(number):
    return [Typist(0, 0, text="hello" if place % 3 else "world") for place in range(number)]


class StudyTown(Town):
    """A town whose coordinator checks recipes as devices do."""

    async def _start(self):
        await super()._start()
        self.coordinator.studies._judge = judge

    async def kill(self):
        studies = self.coordinator.studies
        await studies.stop()
        await super().kill()

    async def policy(self, signed=SIGNED):
        return await self.http.post("/v1/policies", headers=AS_OPERATOR, content=signed.to_json().encode())

    async def study(self, spec=None, as_=AS_OPERATOR):
        return await self.http.post("/v1/studies", headers=as_, content=dumps(spec or study()).encode())

    async def ask(self, asked, name="spring", as_=AS_OPERATOR):
        return await self.http.post(f"/v1/studies/{name}/rounds", headers=as_, content=dumps(asked).encode())

    async def round(self, number, name="spring"):
        found = await self.http.get(f"/v1/studies/{name}/rounds/{number}", headers=AS_OPERATOR)
        assert found.status_code == 200, found.text
        return found.json()

    async def answered(self, number, name="spring", until=lambda _: False):
        """Let every device ask again and again until the round is over."""
        async with asyncio.timeout(600):
            while (found := await self.round(number, name))["state"] == "running" and not until(found):
                if not await self.asked_around():
                    await asyncio.sleep(0.005)
        return found


def counts(answer):
    return np.asarray(answer.sums, dtype=float)
