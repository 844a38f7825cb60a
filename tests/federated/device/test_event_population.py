"""Recipes through real secure sums: the law of their answers is that of local reports over a population."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from tests.federated.device.recipe_room import POLICY, recipe, typing
from tests.federated.device.room import NOW

from hazemap.errors import InputError
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.population_table import PopulationTable
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.study.population_study import EventPopulation
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import RecipeSecureSums
from hazemap.federated.trust.local import LocalReports
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.queries.noisy_queries import Query

PEOPLE = [["so", "be"]] * 8 + [["it"]] * 10 + [[]] * 2
COHORT = Cohort(20, 20, mode=Mode.SEMI_HONEST)
ROUNDS = 8
RISK = 1e-7


@dataclass(frozen=True)
class Bins:
    """People of whom each always reports one bin."""

    bins: Ints

    def recipe_bins(self, _):
        return self.bins


def fixed():
    """The same people in memory: each has one row, so nobody draws."""
    rows = ["be"] * 4 + ["so"] * 4 + ["it"] * 10
    start = np.minimum(np.arange(21), 18)
    return PopulationTable(start, (rows,))


def totals(answers, law, people):
    """The sums of reports that answers came from, added up: whole numbers again, but for their rounding."""
    p, q = law.chances
    return sum(answer.sums * (p - q) + people * q for answer in answers)


def law_of_total(law, count, people, rounds):
    """The exact law of a bin's total over rounds: the one of `LocalReports`, a sum of coins."""
    p, q = law.chances

    def coins(number, heads):
        return np.array([comb(number, k) * heads**k * (1 - heads) ** (number - k) for k in range(number + 1)])

    return np.convolve(coins(rounds * count, p), coins(rounds * (people - count), q))


def unlikely(answers, law, counts, people, sent_by=None):
    """Whether totals lie where the exact law has less than RISK in all, over all bins and both sides.

    `sent_by` is the law that answers were unbiased by, where it is another one. A number is rounded by less than 1 a
    round, which is less than p − q a round of the total.
    """
    p, q = (sent_by or law).chances
    for count, total in zip(counts, totals(answers, sent_by or law, people), strict=True):
        exact = law_of_total(law, int(count), people, len(answers))
        slack = len(answers) * (p - q)
        below, above = exact[: max(0, int(total + slack) + 1)].sum(), exact[max(0, int(total - slack)) :].sum()
        if min(below, above) < RISK / (2 * len(counts)):
            return True
    return False


@pytest.mark.slow
def test_secure_sums_of_reports_have_the_law_of_local_reports_over_a_population():
    """Error probability 10⁻⁷ for each side; the twins, other people or another ε₀, fail."""
    asked, table = recipe(), fixed()
    law, counts = Asymmetric(asked.local_epsilon), RecipeBins(asked).total(fixed())
    assert counts.tolist() == [0, 4, 4, 10, 2]
    real = RecipeSecureSums(table, COHORT)
    answers = [real.answer(asked) for _ in range(ROUNDS)]
    local = LocalReports(table, 20, randomiser=Asymmetric)
    simulated = [local.answer(Query(RecipeBins(asked), 1), PureDP(asked.local_epsilon)) for _ in range(ROUNDS)]
    assert not unlikely(answers, law, counts, 20) and not unlikely(simulated, law, counts, 20)
    assert (answers[0].kurtosis, answers[0].people) == (simulated[0].kurtosis, simulated[0].people)
    others = RecipeSecureSums(Bins(np.full(20, 4)), COHORT)
    assert unlikely([others.answer(asked) for _ in range(ROUNDS)], law, counts, 20), "twin: everybody says none"
    quiet = Asymmetric(Fraction(1))
    silent = [real.answer(asked, quiet) for _ in range(ROUNDS)]
    assert unlikely(silent, law, counts, 20, quiet), "twin: reports of another ε₀"


def test_event_stores_answer_through_real_secure_sums_as_their_people_in_memory_do(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        devices = typing(store, PEOPLE)
        stores = EventPopulation(store, devices, POLICY, NOW)
        asked = recipe()
        bins = stores.recipe_bins(asked)
        assert set(bins[:8]) <= {1, 2} and bins[8:].tolist() == [3] * 10 + [4] * 2
        drawn = np.concatenate([stores.recipe_bins(asked)[:8] for _ in range(10)])
        # 80 fair draws: 12 or fewer of one word have probability below 10^-9
        assert 12 < np.count_nonzero(drawn == 1) < 68
        sums = RecipeSecureSums(stores, COHORT, dropping=Fraction(0))
        answer = sums.answer(asked)
        assert answer.people == 20 and sums.turnouts[0].opened == 1
        local = LocalReports(stores, 20, randomiser=Asymmetric)
        assert local.answer(Query(RecipeBins(asked), 1), PureDP(4)).sums.shape == answer.sums.shape


def test_a_population_is_asked_nothing_that_a_sum_of_it_would_not_hide():
    sums = RecipeSecureSums(fixed(), COHORT)
    with pytest.raises(InputError, match="16 honest people's reports are certain"):
        sums.answer(recipe(epsilon=Fraction(1)))
    with pytest.raises(InputError, match="only 20 are in the table"):
        RecipeSecureSums(fixed(), Cohort(21, 21, mode=Mode.SEMI_HONEST)).answer(recipe())
