import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hazemap.federated.protocols.secure_aggregation.unmasking import SecretShareHolders, blamed


@st.composite
def graphs(draw):
    clients = draw(st.integers(1, 9))
    others = st.sets(st.integers(0, clients - 1))
    rows = draw(st.dictionaries(st.integers(0, clients - 1), others, max_size=clients))
    return clients, {dealer: sorted(row - {dealer}) for dealer, row in rows.items()}


@given(graphs(), st.data())
def test_edges_are_the_same_from_both_ends(graph, data):
    clients, rows = graph
    sharing = SecretShareHolders(clients, {dealer: np.array(row, dtype=np.int64) for dealer, row in rows.items()})
    pairs = {(dealer, holder) for dealer, row in rows.items() for holder in row}
    assert sharing.edges == len(pairs)
    numbers = {}
    for dealer in range(clients):
        edges = range(*sharing.from_dealer(dealer).indices(sharing.edges))
        numbers |= {
            (dealer, holder): edge for edge, holder in zip(edges, sharing.holders(dealer).tolist(), strict=True)
        }
    assert numbers.keys() == pairs
    for holder in range(clients):
        dealers, edges = sharing.dealers(holder).tolist(), sharing.to_holder(holder).tolist()
        assert dealers == sorted(dealer for dealer, other in pairs if other == holder)
        assert edges == [numbers[dealer, holder] for dealer in dealers]
        assert sharing.peers(holder).tolist() == sorted({*dealers, *rows.get(holder, [])})
    marks = np.array(data.draw(st.lists(st.booleans(), min_size=clients, max_size=clients)))
    assert sharing.holding(marks).tolist() == [sum(marks[h] for h in rows.get(d, [])) for d in range(clients)]
    near = [any(marks[p] for p in sharing.peers(client)) for client in range(clients)]
    assert sharing.adjacent(marks).tolist() == near


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
