"""Which fields of the stream `places` a campaign's question reads: what a policy's budgets of these fields are charged.

Campaigns ask about rows of places, recipes about streams of events, of which `places` may be one. Both count toward
what a policy lets a field cost.
"""

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder, HaarWavelet
from hazemap.federated.device.event_store import PLACE_FIELDS, PLACES
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.spatial.whole_domain import WholeDomain
from hazemap.tables.contribution_bounding import OneVote
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

EVERY = frozenset(StreamFieldName(PLACES, each.name) for each in PLACE_FIELDS)
"""All that a row holds: what counts as read by a question whose fields are not known."""


def fields_read(encoder: Encoder) -> frozenset[StreamFieldName]:
    """The fields of a person's rows that this question depends on.

    A place is a longitude and a latitude. A row's weight counts by `OneVote` alone, its mark where rows with a mark
    are counted apart, and its time where slots are counted.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> sorted(map(str, fields_read(Counts(Leaves(tree, tree.children(tree.root))))))
    ['places.lat', 'places.lon']
    """
    match encoder:
        case Concatenation():
            return frozenset().union(*map(fields_read, encoder.parts))
        case CountMinSketch() | HaarWavelet():
            tree = encoder.tree
        case Counts(cells=Leaves() | WholeDomain() | AttributeCells() | AllSlots() | EachSlot() as cells):
            tree = cells.tree
        case _:
            return EVERY
    names = ["lon", "lat"]
    names += ["weight"] * isinstance(encoder.bounding, OneVote) + ["mark"] * isinstance(tree, BinaryAttribute)
    names += ["time"] * isinstance(tree, TimedTree)
    return frozenset(StreamFieldName(PLACES, name) for name in names)
