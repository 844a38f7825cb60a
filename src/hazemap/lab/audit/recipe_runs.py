"""Runs in which devices answer a recipe, from their event stores to what somebody sees of them."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.errors import HazemapError
from hazemap.federated.device import enrolment
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType, EventValue
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy import AnalysisBudget, Carrier, DeviceLimit, FieldBudget, ShippedPolicy
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.study.population_study import EventPopulation, PopulationStudy
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import RecipeSecureSums
from hazemap.lab.audit.audited_settings import REPORT, STUDY, AuditedSetting
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream

WORDS = ("so", "be", "it")
_STREAM = EventStream("keyboard", (EventField("word", EventType.TEXT),), keep=30)
_FIELD, _MUCH, _SOME = StreamFieldName("keyboard", "word"), Fraction(100), Fraction(1, 1000)


def answered(setting: AuditedSetting, content: bytes, folder: Path, runs: int, minimum: int) -> list[list[float] | str]:
    """What is seen of so many runs: the numbers of a report or of an answer, or the words of a refusal.

    `content` has a line for each device, with its word or none. Sums are of all of them, and the recipe states that
    they are of `minimum` people or more.
    """
    words = [line["word"] for line in csv.DictReader(content.decode().splitlines())]
    with _devices(folder / "devices.sqlite", words) as people:
        return [_words_of_errors(lambda: _once(setting, people, len(words), minimum)) for _ in range(runs)]


def observed(raw: list[float]) -> Observation:
    """The same, as it is judged."""
    return Observation(columns={"answer": np.array(raw)})


def _once(setting: AuditedSetting, people: EventPopulation, number: int, minimum: int) -> Ints:
    recipe = _recipe(setting, minimum)
    if setting.method == REPORT:
        [place] = people.recipe_bins(recipe).tolist()
        return recipe.law.report(Stream.from_os(), place, recipe.size).astype(np.int64)
    if setting.method == STUDY:
        return PopulationStudy(people, people.policy, recipe.analysis).ask(recipe).sums
    cohort = Cohort(number, number, dropout=Fraction(0), corrupt=Fraction(0), mode=Mode.SEMI_HONEST)
    return RecipeSecureSums(people, cohort).answer(recipe).sums


def _words_of_errors(run: Callable[[], Ints]) -> list[float] | str:
    try:
        return [float(number) for number in run()]
    except HazemapError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # whatever it is, somebody sees it
        return f"{type(error).__name__} (no error of hazemap's): {error}"


@contextmanager
def _devices(path: Path, words: list[str]) -> Iterator[EventPopulation]:
    with EncryptedStore.opened(path, create=True) as store:
        devices, now = enrolment.add(store, len(words)), datetime.now(UTC)
        events: dict[int, list[tuple[EventValue, ...]]] = {
            device: [(word,)] if word else [] for device, word in zip(devices, words, strict=True)
        }
        event_store.donated(store, _STREAM, events, now.timestamp() - 60)
        yield EventPopulation(store, devices, _policy(), now)


def _policy() -> ShippedPolicy:
    """One that lets everything be asked that an audit asks."""
    analysis = AnalysisBudget(
        name="words",
        purpose="an audit",
        epsilon=_MUCH,
        delta=_SOME,
        reports=100,
        queries=AnyQueryOverFields((_FIELD,)),
        minimum_cohort=1,
        carriers=(Carrier.SECURE_SUMS,),
        cohort_fields=(),
    )
    return ShippedPolicy(
        name="audited",
        version=1,
        days=30,
        limits=(DeviceLimit(30, _MUCH, _SOME, 100),),
        streams=(_STREAM,),
        fields=(FieldBudget(_FIELD, Fraction(20), _MUCH, _SOME, 100),),
        analyses=(analysis,),
    )


def _recipe(setting: AuditedSetting, minimum: int) -> Recipe:
    return Recipe(
        id="words",
        version=1,
        analysis="words",
        purpose="an audit",
        query=SqlQuery("SELECT word FROM keyboard"),
        cohort=(),
        features=(Feature("word", Categories(WORDS)),),
        local_epsilon=Fraction(setting.local or "1"),
        epsilon=Fraction(setting.epsilon or "1"),
        delta=Fraction(setting.delta or "0"),
        minimum_cohort=minimum,
    )
