from hypothesis import given
from hypothesis import strategies as st

from hazemap.protocols.secure_aggregation.fault_attribution import blamed


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), max_size=30))
def test_whoever_is_named_explains_every_quarrel(quarrels):
    named = blamed(quarrels)
    assert all(holder in named or dealer in named for holder, dealer in quarrels)
    assert bool(named) == bool(quarrels)


def test_one_liar_among_many_is_named_alone():
    assert blamed((3, dealer) for dealer in range(10, 60)) == {3: "told 50 shares that are wrong or missing"}
    assert blamed((holder, 3) for holder in range(10, 60)) == {3: "dealt 50 shares that are wrong or missing"}


def test_who_lies_both_ways_is_told_so():
    assert blamed({(3, 4), (3, 5), (6, 3)}) == {
        3: "told 2 shares that are wrong or missing, dealt 1 shares that are wrong or missing"
    }


def test_in_a_quarrel_of_two_the_holder_is_named_whoever_comes_first():
    assert list(blamed({(1, 2)})) == [1] and list(blamed({(2, 1)})) == [2]
