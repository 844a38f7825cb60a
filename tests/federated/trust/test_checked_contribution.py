"""Nobody, and no number of people, adds more than the sensitivity promises: at its very edges."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from hazemap.encoders import Concatenation
from hazemap.encoders.encoder import Entries
from hazemap.engines.memory import MemoryTable
from hazemap.errors import Refused
from hazemap.federated.trust.checked_contribution import CheckedContribution, bounded, contribution, within
from hazemap.tables.contribution_bounding import Sensitivity

NOBODY = MemoryTable(np.empty(0, dtype=np.int64), {"lon": np.empty(0), "lat": np.empty(0)})

NINE = Sensitivity(9, 81)


@dataclass(frozen=True)
class Says:
    """An encoder that says what it is told to."""

    position: tuple[int, ...]
    value: tuple[int, ...]
    size: int = 4
    sensitivity: Sensitivity = NINE

    def encode(self, table):
        return Entries(*(np.array(each, dtype=np.int64) for each in ([1] * len(self.value), self.position, self.value)))


def is_taken(sums, most, people) -> bool:
    try:
        return within(sums, most, people) is sums
    except Refused:
        return False


@pytest.mark.parametrize("people", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [Sensitivity(1, 1), Sensitivity(2, 2), Sensitivity(3, 5), Sensitivity(2, 4)], ids=str)
def test_sums_are_taken_up_to_both_norms_of_so_many_people_and_not_beyond(most, people):
    """All vectors of three numbers; L2² bounds by itself where it is below the square of L1."""
    reach = min(people * most.l1 + 1, 8)
    for each in (
        product(range(-reach, reach + 1), repeat=3) if reach <= 4 else product((-reach, -1, 0, 2, reach), repeat=3)
    ):
        l1, l2_squared = sum(abs(x) for x in each), sum(x * x for x in each)
        possible = l1 <= people * most.l1 and l2_squared <= people**2 * most.l2_squared
        assert is_taken(np.array(each), most, people) == possible


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 1 - 2**63, -(2**32)])
def test_large_numbers_do_not_wrap_on_the_way_to_their_norms(number):
    """In 64 bits the squares of 2³² and 2⁶² are 0, and −2⁶³ is its own size."""
    for sums in ([number], [number, number], [0, number, 1], [number] * 8):
        array = np.array(sums, dtype=np.int64)
        l1, l2_squared = sum(abs(x) for x in sums), sum(x * x for x in sums)
        assert is_taken(array, Sensitivity(l1, l2_squared), 1)
        assert not is_taken(array, Sensitivity(l1 - 1, l2_squared), 1)
        assert not is_taken(array, Sensitivity(l1, l2_squared - 1), 1)


@pytest.mark.parametrize("position", [(-1,), (4,), (0, 4), (4, 0), (3, -1), (0, 1, 2, 7)])
def test_a_vote_outside_the_vector_adds_nothing_wherever_it_stands(position):
    asked = Says(position, (1,) * len(position))
    with pytest.raises(Refused, match="outside the vector"):
        bounded(asked, NOBODY)
    found = contribution(asked, lambda: NOBODY)
    assert found.sums.tolist() == [0] * 4 and found.trouble == "Refused"


def test_votes_at_the_ends_of_the_vector_are_added_up():
    assert contribution(Says((0, 3, 3), (1, 2, 3)), lambda: NOBODY).sums.tolist() == [1, 0, 0, 5]
    assert contribution(Says((), ()), lambda: NOBODY) == CheckedContribution(pytest.approx(np.zeros(4)), None)
    assert contribution(Says((2,), (9,)), lambda: NOBODY).trouble is None
    assert contribution(Says((2,), (10,)), lambda: NOBODY).trouble == "Refused"


@pytest.mark.parametrize("error", [ValueError, KeyError, MemoryError, ZeroDivisionError, Refused])
def test_rows_that_cannot_be_read_are_those_of_somebody_without_rows(error):
    def rows():
        raise error("no")

    found = contribution(Says((2,), (9,)), rows)
    assert found.sums.tolist() == [0] * 4 and found.sums.dtype == np.int64 and found.trouble == error.__name__


def test_each_part_of_a_stack_is_checked_for_itself_and_weighs_what_it_weighs():
    """A vote past the end of the first part would lie in the second, and what one leaves free the other may not use."""
    fine, past, heavy = Says((0, 3), (4, 5)), Says((4,), (1,)), Says((0,), (10,))
    stack = Concatenation((fine, Says((1,), (-9,)), fine), (2, 1, 3))
    assert contribution(stack, lambda: NOBODY).sums.tolist() == [8, 0, 0, 10, 0, -9, 0, 0, 12, 0, 0, 15]
    for wrong in (past, heavy):
        for parts in ((wrong, Says((), ())), (Says((), ()), wrong), (Concatenation((wrong,), (1,)), fine)):
            assert contribution(Concatenation(parts, (1, 5)), lambda: NOBODY).trouble == "Refused"
