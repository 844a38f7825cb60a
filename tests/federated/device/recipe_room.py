"""People with events, a policy, and recipes to ask them with: for tests of what a device answers."""

from fractions import Fraction

from tests.federated.device.room import NOW

from hazemap.federated.device import enrolment
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store.event_store import EventStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy import (
    AnalysisBudget,
    ApprovedCohortField,
    Carrier,
    DeviceLimit,
    FieldBudget,
    ShippedPolicy,
)
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.federated.recipes.recipe import CohortField, Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.signing_identities import Identity

TINY = Fraction(1, 10**6)
WORD, AGE = StreamFieldName("keyboard", "word"), StreamFieldName("profile", "age")
LOCALE = StreamFieldName("profile", "locale")
PURPOSE = "better suggestions for the next word"
STREAMS = (
    EventStream("keyboard", (EventField("word", EventType.TEXT),), keep=30),
    EventStream("profile", (EventField("age", EventType.INTEGER), EventField("locale", EventType.TEXT)), keep=365),
)
POLICY = ShippedPolicy(
    name="keyboard",
    version=1,
    days=30,
    limits=(DeviceLimit(30, Fraction(20), Fraction(1, 1000), 10),),
    streams=STREAMS,
    fields=(
        FieldBudget(WORD, Fraction(4), Fraction(12), 10 * TINY, 5),
        FieldBudget(AGE, Fraction(2), Fraction(12), 10 * TINY, 5),
    ),
    analyses=(
        AnalysisBudget(
            name="words",
            purpose=PURPOSE,
            epsilon=Fraction(12),
            delta=5 * TINY,
            reports=4,
            queries=AnyQueryOverFields((WORD, AGE)),
            minimum_cohort=18,
            carriers=(Carrier.SECURE_SUMS,),
            cohort_fields=(ApprovedCohortField("locale", LOCALE),),
        ),
    ),
)
OPEN = Policy(
    people=10,
    survivors=5,
    modes=("malicious", "semi-honest"),
    campaign=Fraction(100),
    period=Fraction(100),
)
"""A person who lets a small room ask what the policy lets it ask."""


STUDY = ApproxDP(100, Fraction(1, 1000))
"""What the study may cost: more than the policy lets it."""


def recipe(**changes):
    """Which of three words people type; ε is that of a report by itself, for twenty people hide little more."""
    plain = {
        "id": "words",
        "version": 1,
        "analysis": "words",
        "purpose": PURPOSE,
        "query": SqlQuery("SELECT word FROM keyboard"),
        "cohort": (),
        "features": (Feature("word", Categories(("so", "be", "it"))),),
        "local_epsilon": Fraction(4),
        "epsilon": Fraction(4),
        "delta": TINY,
        "minimum_cohort": 18,
    }
    return Recipe(**{**plain, **changes})


def english(**changes):
    return recipe(cohort=(CohortField("locale", ("en_GB", "en_US")),), **changes)


def recipe_task(asked=None, people=20, mode=Mode.SEMI_HONEST, number=1, **changes):
    cohort = Cohort(people, people, mode=mode)
    return Task.asking(asked or recipe(), "study", number, cohort, **{"budget": STUDY, **changes})


def typing(store, people, locale="en_GB", policy=POLICY):
    """Devices whose people typed these words, under an accepted policy."""
    identity = Identity.create()
    if ShippedPolicies(store).current() is None:
        ShippedPolicies(store).accept(SignedPolicy.sign(policy, identity), identity.public, NOW)
    devices = enrolment.add(store, len(people))
    words, ages = (dict(zip(devices, each, strict=True)) for each in (
        [[(word,) for word in person] for person in people],
        [[(33, locale)] for _ in people],
    ))  # fmt: skip
    event_store.store_events(store, STREAMS[0], words, NOW.timestamp() - 60)
    event_store.store_events(store, STREAMS[1], ages, NOW.timestamp() - 60)
    return devices


def more(store, device, words):
    EventStore(store, device).donate(STREAMS[0], [(word,) for word in words], NOW.timestamp() - 30)
