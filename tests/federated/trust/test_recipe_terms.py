"""A round that asks a recipe costs what the recipe states, and its sum tells no more than that."""

from dataclasses import replace
from fractions import Fraction

import pytest

from hazemap import codec
from hazemap.encoders import Concatenation
from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Feature, NumericEdges
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import KNOWN, Task, check, parameters_for
from hazemap.federated.trust.recipe_terms import price_of_sum
from hazemap.privacy.amplification.aggregate_price import minimum_cohort
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.distributed_noise import NoAddedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.queries.noisy_queries import Query

AGES = Recipe(
    id="ages",
    version=1,
    analysis="keyboard",
    purpose="how old the people are who type",
    query=SqlQuery("SELECT age FROM profile"),
    cohort=(),
    features=(Feature("age", NumericEdges((20, 40, 60))),),
    local_epsilon=Fraction(2),
    epsilon=Fraction(1, 2),
    delta=Fraction(1, 10**6),
    minimum_cohort=400,
)
COHORT = Cohort(1_000, 500, Fraction(1, 10), Fraction(1, 20), mode=Mode.SEMI_HONEST)
TASK = Task.asking(AGES, "study", 1, COHORT)


def terms(task, clients=500):
    return parameters_for(task, b"r" * 32, clients, b"g" * 32, b"n" * 32)


def test_a_round_that_asks_a_recipe_is_priced_as_it_states_and_adds_no_noise():
    assert TASK.price == TASK.budget == ApproxDP(Fraction(1, 2), Fraction(1, 10**6))
    assert TASK.randomiser == Asymmetric(Fraction(2))
    offered = terms(TASK)
    assert (offered.size, offered.noise, offered.survivors) == (4, NoAddedNoise(425), 450)
    assert 2**offered.bits > 500
    check(TASK, offered)


def test_a_recipe_without_delta_is_priced_in_pure_epsilon():
    pure = replace(AGES, delta=Fraction(0), epsilon=Fraction(2))
    assert Task.asking(pure, "study", 1, COHORT).price == PureDP(2)


def test_a_task_that_asks_a_recipe_travels_as_it_is():
    text = codec.dumps(TASK)
    assert codec.loads(text, KNOWN, Task, codec.MESSAGE) == TASK
    assert codec.loads(text, KNOWN, Task, codec.MESSAGE).digest == TASK.digest


def test_the_honest_people_of_the_smallest_sum_carry_the_price():
    least = minimum_cohort(BitFlipLaw.asymmetric(2), AGES.epsilon, AGES.delta)
    tight = replace(AGES, minimum_cohort=1)
    assert COHORT.honest(least + 20) < least < COHORT.honest(least + 39)
    assert price_of_sum(Asymmetric(Fraction(2)), least, AGES.delta).epsilon <= AGES.epsilon
    for clients in range(least + 20, least + 40):
        honest, task = COHORT.honest(clients), Task.asking(tight, "study", 1, COHORT)
        if honest >= least:
            check(task, terms(task, clients))
        else:
            with pytest.raises(InputError, match="honest people's reports are certain tells"):
                terms(task, clients)


def test_a_device_refuses_a_sum_of_fewer_people_than_the_recipe_promises():
    promised = replace(terms(TASK), clients=440, survivors=396, noise=NoAddedNoise(374))
    with pytest.raises(Refused, match="400 people or more, but this sum is opened with 396"):
        check(TASK, promised)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"randomiser": None}, "local ε of 2 or less"),
        ({"randomiser": Asymmetric(Fraction(3))}, "local ε of 2 or less"),
        ({"randomiser": Symmetric(Fraction(2))}, "local ε of 2 or less"),
        ({"price": ApproxDP(Fraction(1, 4), AGES.delta)}, "states"),
        ({"price": PureDP(Fraction(1, 2))}, "states"),
        ({"price": ZCDP(1), "budget": ZCDP(1)}, "states"),
        ({"budget": ZCDP(1)}, "says its ε"),
        ({"budget": PureDP(1)}, "more than the share"),
        ({"budget": ApproxDP(Fraction(1, 4), AGES.delta)}, "more than the share"),
        ({"question": Query(RecipeBins(AGES), Fraction(1, 2))}, "more than the share"),
        ({"purpose": "a map of the people who type"}, "the recipe's purpose"),
        ({"question": Query(Concatenation((RecipeBins(AGES), RecipeBins(AGES)), (1, 1)), 1)}, "device counts"),
    ],
    ids=str,
)
def test_a_round_that_departs_from_its_recipe_cannot_be_made(changes, words):
    given = {"randomiser": TASK.randomiser} | changes
    with pytest.raises(InputError, match=words):
        replace(TASK, **given)


def test_no_secure_sum_is_begun_for_a_recipe_that_two_servers_carry():
    task = Task.asking(replace(AGES, carrier=Carrier.TWO_SERVERS), "study", 1, COHORT)
    with pytest.raises(InputError, match="carried by two servers, not by secure sums"):
        task.noise(COHORT.people)
    with pytest.raises(Refused, match="carried by two servers"):
        check(task, terms(TASK))


@pytest.mark.parametrize(
    "law", [Symmetric(Fraction(1)), Asymmetric(Fraction(1)), UnaryEncoding(Fraction(3, 5), Fraction(2, 5))], ids=str
)
def test_a_round_may_use_any_randomiser_that_hides_as_much_as_the_recipe_says(law):
    task = Task.asking(AGES, "study", 1, COHORT, randomiser=law)
    check(task, terms(task))


def test_two_recipes_share_a_budget_by_basic_composition():
    whole = ApproxDP(1, Fraction(2, 10**6))
    first = Task.asking(AGES, "study", 1, COHORT, whole, Fraction(1, 2))
    assert first.price == ApproxDP(Fraction(1, 2), Fraction(1, 10**6))
    with pytest.raises(InputError, match="more than the share"):
        Task.asking(AGES, "study", 1, COHORT, ApproxDP(1, Fraction(1, 10**6)), Fraction(1, 2))
