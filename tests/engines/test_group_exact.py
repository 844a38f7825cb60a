"""The counting of people without a database: every vote by memory's twin, every growth and every pass by its number.

How columns grow and who is put off changes no vote, but it is what keeps memory within its limit.
"""

from hashlib import sha256

import numpy as np
import pytest
from tests.tables.people import QUADTREE, crowd, same

from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.engines.streaming import cell_counter as tally
from hazemap.engines.streaming import keyed_hash as hashes
from hazemap.engines.streaming import person_cell_sums as pairing
from hazemap.engines.streaming import person_index as people
from hazemap.engines.streaming import row_buffer
from hazemap.engines.streaming.cell_counter import DenseCellCounter, SparseCellCounter, counters_for, gathered
from hazemap.engines.streaming.one_vote_per_person import OneVotePerPerson
from hazemap.engines.streaming.per_person_bottom_k import CellSample, PersonCellMeans, RowSample
from hazemap.engines.streaming.person_cell_sums import PersonCellSums
from hazemap.engines.streaming.person_groups import NOBODY, Bucket, PersonGroup, RowsOutsideCells, wanted
from hazemap.engines.streaming.person_index import NamedPeople, NumberedPeople, RowBatch, Texts
from hazemap.engines.streaming.row_buffer import RowBuffer
from hazemap.errors import TableError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, OwnMeans, whole_weights
from hazemap.tables.keyed_hash import KeyWords, numbers, seeds
from hazemap.tables.person_cell_values import DRAWN_AS, PersonCellValues
from hazemap.tables.votes import Votes
from hazemap.temporal.time_slots import Always, Clock
from hazemap.values.cell_slot_counters import CellTimeSlots, ObservedCellSlots
from hazemap.values.value_encoding import ValueEncoding

FULL = np.uint64(2**64 - 1)
SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2)
VALUE_ENCODING = ValueEncoding(0, 60, 2, (5, 2), (2, 1, 3))
MEASURED = CellTimeSlots(Leaves.at_level(SQUARE, 2), Always(), VALUE_ENCODING)


def words(rule) -> KeyWords:
    return KeyWords.expanded(11, type(rule).__name__)


def batches(rows: MemoryTable, rule, names: bool, size: int = 500) -> list[RowBatch]:
    """The rows of a table as an engine hands them on."""
    means = isinstance(rule, OwnMeans)
    cells = MEASURED.rows(rows.columns) if means else QUADTREE.cell_at(rows.columns, 3)
    votes = isinstance(rule, OneVote)
    weights = whole_weights(rows.columns["weight"]) if votes else np.ones(len(cells), np.int64)
    own, inside = seeds(rows.person.view(np.uint64), words(rule)), (weights > 0) & (cells != NOWHERE)
    outside = (weights > 0) & ~inside if rule.outside is Outside.PEOPLE else None
    counts = inside if rule.outside is not Outside.COUNT else weights > 0
    found = []
    for begin in range(0, len(cells), size):
        some = slice(begin, begin + size)
        texts = None
        if names:
            each = [b"%d" % who for who in rows.person[some]]
            offsets = np.cumsum([0, *map(len, each)]).astype(np.int32)
            texts = Texts(np.frombuffer(b"".join(each), dtype=np.uint8), offsets)
        beyond = None if outside is None else outside[some]
        found.append(
            RowBatch(own[some], cells[some], weights[some] if votes else weights[:0], counts[some], texts, 0, beyond)
        )
    return found


RULES = {
    AtMostRows(1): RowSample,
    AtMostRows(3): RowSample,
    AtMostRows(3, Outside.PEOPLE): RowSample,
    AtMostCells(2): CellSample,
    AtMostCells(2, Outside.COUNT): CellSample,
    OneVote(7, Outside.PEOPLE): OneVotePerPerson,
    OneVote(1024): OneVotePerPerson,
    OwnMeans(2, 3, VALUE_ENCODING.scale): None,
}


def at_work(rule):
    made = RULES[rule]
    return made(next(iter(rule.sensitivity[:1]))) if made else PersonCellMeans(rule, VALUE_ENCODING.parts)


def mob(count: int) -> MemoryTable:
    """A crowd that measures something, too."""
    rows, chance = crowd(300, count), np.random.default_rng(3)
    return MemoryTable(rows.person, {**rows.columns, "value": chance.normal(30, 25, count)}, 11)


@pytest.fixture
def grown(monkeypatch) -> list[int]:
    """To what size each row buffer grew."""
    sizes: list[int] = []
    grow = RowBuffer.grow

    def noted(self: RowBuffer, capacity: int) -> None:
        sizes.append(capacity)
        grow(self, capacity)

    monkeypatch.setattr(row_buffer, "SMALLEST", 64)
    monkeypatch.setattr(RowBuffer, "grow", noted)
    return sizes


COST = {
    (AtMostRows(3), False): "39fff3434f23",
    (AtMostRows(3), True): "4b306942c371",
    (AtMostRows(3, Outside.PEOPLE), False): "969dd4e83892",
    (AtMostCells(2), False): "e0012bb45c62",
    (OneVote(1024), False): "16e536a27ae2",
    (OneVote(7, Outside.PEOPLE), True): "9b7f08b8eb01",
    (OwnMeans(2, 3, VALUE_ENCODING.scale), False): "2d08420ec48d",
}


@pytest.mark.parametrize(("rule", "names"), COST, ids=repr)
def test_groups_count_what_memory_counts_and_grow_and_halve_as_they_did(rule, names, grown):
    rows = mob(3_000)
    if isinstance(rule, OwnMeans):
        rows.columns["lon"][:], rows.columns["lat"][:] = (rows.columns[name] % 1 for name in ("lon", "lat"))
    memory = rows.votes(MEASURED if isinstance(rule, OwnMeans) else QUADTREE, rule)
    told: list[object] = []
    for limit in (1 << 12, 1 << 14, 1 << 30):
        tree = MEASURED if isinstance(rule, OwnMeans) else QUADTREE
        groups = [
            PersonGroup(i, 2, limit, NamedPeople if names else NumberedPeople, lambda: at_work(rule), each)
            for i, each in enumerate(counters_for(tree, 2))
        ]
        while any(group.busy for group in groups):
            for batch in batches(rows, rule, names):
                chosen = wanted(batch.seeds, groups)
                told.append(int(chosen.sum()))
                for group in groups:
                    group.read(batch._replace(counts=batch.counts & chosen))
            told += [*(group.bucket for group in groups), *(group.progress(0.5) for group in groups), *grown]
            for group in groups:
                group.finish()
            grown.clear()
        assert same(gathered([group.tally for group in groups]), memory)
        assert all(group.counted == 1.0 and group.bucket == NOBODY and group.progress(0.5) == 1 for group in groups)
    assert sha256(repr(told).encode()).hexdigest()[:12] == COST[rule, names]


def test_buckets_are_halved_bit_by_bit():
    assert Bucket(0, 0).halves() == (Bucket(1, 0), Bucket(1, 1)) and Bucket(2, 1).halves() == (
        Bucket(3, 1),
        Bucket(3, 5),
    )
    assert [Bucket(bits, 0).measure for bits in (0, 1, 3)] == [1.0, 0.5, 0.125]


# Who is who ------------------------------------------------------------------------------------------------------

CROWDED = np.array([7, 15, 7, 23, 0, 8, 2**63 + 7, 2**64 - 1, 15, 3, 2**64 - 1, 31, 39, 0], dtype=np.uint64)
"""Seeds that stand at one row of a table of eight, or at its last."""


def numbered(keys: list[object]) -> list[int]:
    known: dict[object, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def test_people_are_numbered_as_they_are_met_wherever_their_seeds_stand():
    for size in (1, 3, len(CROWDED)):
        found, ids, rows = [], NumberedPeople(), np.arange(len(CROWDED))
        batch = RowBatch(CROWDED, CROWDED, rows[:0], rows > 0, None, 0)
        for begin in range(0, len(rows), size):
            found += ids.enter(batch, rows[begin : begin + size]).tolist()
        assert found == numbered(CROWDED.tolist()) and ids.count == 10 and ids.used == 700
        assert ids.seeds[:10].tolist() == list(dict.fromkeys(CROWDED.tolist()))
        kept = np.arange(10) % 3 != 1
        ids.keep(kept)
        assert (ids.count, ids.used, ids._table.shape) == (7, 490, (16,))
        left = np.flatnonzero(np.isin(CROWDED, ids.seeds))
        assert ids.enter(batch, left).tolist() == numbered(CROWDED[left].tolist()) and ids.count == 7


NAMES = [
    b"",
    b"a",
    b"ab",
    b"b",
    b"a",
    b"abcdefgh",
    b"abcdefghi",
    b"abcdefgi",
    b"",
    b"ba",
    b"abcdefghi",
    b"c" * 300,
    b"b",
]


@pytest.mark.parametrize("own", [[9], [0, 1, 2], [2**64 - 1], [len(name) for name in NAMES]], ids=len)
def test_names_are_numbered_as_they_are_met_though_their_seeds_are_the_same(own):
    offsets, rows = np.cumsum([0, *map(len, NAMES)]).astype(np.int32), np.arange(len(NAMES))
    ends = dict.fromkeys(NAMES)
    drawn = np.array([own[NAMES.index(name) % len(own)] for name in NAMES], dtype=np.uint64)
    batch = RowBatch(drawn, drawn, rows[:0], rows > 0, Texts(np.frombuffer(b"".join(NAMES), np.uint8), offsets), 0)
    for size in (1, 4, len(NAMES)):
        found, ids = [], NamedPeople()
        for begin in range(0, len(rows), size):
            found += ids.enter(batch, rows[begin : begin + size]).tolist()
        assert found == numbered(NAMES) and ids.count == len(ends)
        assert ids.used == 78 * len(ends) + sum(map(len, ends))
        ids.keep(np.arange(ids.count) % 2 == 0)
        left = [name for at, name in enumerate(ends) if at % 2 == 0]
        assert ids.used == 78 * len(left) + sum(map(len, left)) and ids.count == len(left)
        some = np.array([at for at, name in enumerate(NAMES) if name in left])
        assert ids.enter(batch, some).tolist() == numbered([NAMES[at] for at in some]) and ids.count == len(left)
    with pytest.raises(TypeError, match="text ids need their texts"):
        NamedPeople().enter(batch._replace(texts=None), rows)


def test_columns_and_tables_of_people_grow_by_half_and_stay_half_empty():
    column = np.arange(10)
    assert people.grown(column, 6, 4) is column and people.grown(column, 0, 10) is column
    assert [len(people.grown(column, used, more)) for used, more in ((6, 5), (10, 1), (9, 2), (3, 100))] == [
        11,
        15,
        13,
        103,
    ]
    assert people.grown(column, 9, 2)[:9].tolist() == list(range(9))
    table = np.zeros(8, np.uint64)
    assert people.roomy(table, CROWDED, 1, 2) is table
    sizes = [len(people.roomy(table, CROWDED[:4], 4, more)) for more in (0, 3, 4, 11, 12)]
    assert sizes == [16, 16, 32, 32, 64]
    filled = people.roomy(table, CROWDED[:2], 2, 5)
    assert filled[7] == 1 and filled[15] == 2 and filled.sum() == 3
    upper = people.roomy(table, CROWDED[:2] | np.uint64(3 << 40), 2, 5)
    assert upper[7] == 3 << 40 | 1 and upper[15] == 3 << 40 | 2 and np.count_nonzero(upper) == 2
    assert people.BYTES_EACH == 70


# Hashes ----------------------------------------------------------------------------------------------------------


def test_hashes_of_numbers_are_those_of_their_twins_and_the_upper_half_of_a_product_is_exact():
    key, some = KeyWords.expanded(5, "a rule"), np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], np.uint64)
    own = hashes.seeds_of_numbers(some, *key)
    assert np.array_equal(own, seeds(some, key))
    assert [int(hashes.number(own[2], word)) for word in some] == numbers(np.full(6, own[2]), some).tolist()
    wide = [*some.tolist(), 0x123456789ABCDEF0, 0xFEDCBA9876543210, 2**32 + 1, 3 << 31]
    for a in wide:
        for b in wide:
            assert int(hashes.high_product(np.uint64(a), np.uint64(b))) == a * b >> 64


def test_the_code_of_a_text_takes_in_its_length_and_eight_bytes_at_a_time():
    def mix(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    data = np.frombuffer(b"from the left to the right: \xff\xfe\x80", dtype=np.uint8)
    offsets = np.array([0, 0, 1, 7, 15, 16, 28, 31], dtype=np.int32)
    codes = []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        code = stop - start
        for at in range(start, stop, 8):
            code = mix(code ^ int.from_bytes(data[at : min(at + 8, stop)].tobytes(), "little"))
        codes.append(code)
        assert int(hashes.text_code(data, start, stop)) == code
    key = KeyWords.expanded(b"some", "use")
    assert np.array_equal(hashes.seeds_of_texts(data, offsets, *key), seeds(np.array(codes, np.uint64), key))


# Tallies ---------------------------------------------------------------------------------------------------------


def test_counters_stand_for_every_cell_where_all_threads_together_have_few(monkeypatch):
    first, last = (int(end[0]) for end in QUADTREE.span(QUADTREE.root))
    size = last - first + 1
    for threads in (1, 3):
        monkeypatch.setattr(tally, "DENSE", size * threads)
        dense = counters_for(QUADTREE, threads)
        assert [type(each) for each in dense] == [DenseCellCounter] * threads and len(dense[0]._counters) == size + 1
        monkeypatch.setattr(tally, "DENSE", size * threads - 1)
        assert [type(each) for each in counters_for(QUADTREE, threads)] == [SparseCellCounter] * threads
    assert (1 << 25, 1 << 20) == (33_554_432, 1_048_576)


@pytest.mark.parametrize("made", [lambda: DenseCellCounter(10, 5), SparseCellCounter])
def test_tallies_count_the_first_the_last_and_no_cell(made):
    found = made()
    found.count(np.array([10, 14, 0, 10], np.uint64))
    found.add(np.array([0, 14, 11], np.uint64), np.array([5, 7, 1]))
    votes = gathered([found, made()]) if made is SparseCellCounter else found.votes()
    assert dict(zip(votes.cells.tolist(), votes.weights.tolist(), strict=True)) == {0: 6, 10: 2, 11: 1, 14: 8}


def test_cells_wait_until_there_are_more_than_few_or_than_were_merged(monkeypatch):
    monkeypatch.setattr(tally, "FEW", 4)
    few, waiting = SparseCellCounter(), []
    for begin in range(0, 24, 2):
        few.add(np.arange(begin, begin + 2, dtype=np.uint64), np.ones(2, np.int64))
        waiting.append(few._many)
    assert waiting == [2, 4, 0, 2, 4, 6, 0, 2, 4, 6, 8, 10]
    assert same(few.votes(), Votes(np.arange(24, dtype=np.uint64), np.ones(24, np.int64)))


# Row buffers and those elsewhere
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("valued", [True, False])
def test_a_row_buffer_is_put_in_order_and_keeps_what_it_should(valued, monkeypatch):
    """Few entries of one place are inserted (32 at most), many are merged; equal words stay in the order they came."""
    monkeypatch.setattr(row_buffer, "PIECE", 20)
    chance, made = np.random.default_rng(5), RowBuffer(valued)
    assert (made.capacity, made.bytes_each) == (1 << 12, 28 if valued else 20)
    made.grow(5000)
    assert made.capacity == 5000 and len(made.value) == (5000 if valued else 0)
    place = np.concatenate([np.zeros(31, int), np.ones(32, int), np.full(33, 2), np.full(2, 4), np.full(90, 5)])
    word, value = chance.integers(0, 40, len(place)).astype(np.uint64), np.arange(len(place), dtype=np.uint64)
    word[:31] = np.sort(word[:31])[::-1]
    mixed = chance.permutation(len(place))
    made.size = len(place)
    made.place[: made.size], made.word[: made.size] = place[mixed], word[mixed]
    if valued:
        made.value[: made.size] = value
    made.arrange(6)
    order = np.lexsort((value, word[mixed], place[mixed]))
    assert made.place[: made.size].tolist() == place[mixed][order].tolist()
    assert made.word[: made.size].tolist() == word[mixed][order].tolist()
    assert [(piece.start, piece.stop) for piece in made.pieces()] == [
        (begin, min(begin + 20, made.size)) for begin in range(0, made.size, 20)
    ]
    made.keep(np.array([False, True, False, True, True, True]))
    left = np.isin(place[mixed][order], (1, 4, 5))
    assert made.size == 124 and made.place[:124].tolist() == [0] * 32 + [2] * 2 + [3] * 90
    assert made.word[:124].tolist() == word[mixed][order][left].tolist()
    assert not valued or made.value[:124].tolist() == value[order][left].tolist()


def test_rows_elsewhere_are_counted_up_to_where_they_fit_with_room_for_half_as_many_people():
    rows, none = RowsOutsideCells(), RowBuffer()
    sizes = []
    for count in (1, 2, 3, 5, 7, 100):
        rows.take(np.array([count - 1, 0]), count)
        sizes.append(len(rows._rows))
    assert sizes == [1, 3, 3, 6, 9, 150]
    assert rows.alone(none).tolist() == [7, 1, 1, 1, 1, 1]
    none.place[:2], none.size = (0, 4), 2
    assert rows.alone(none).tolist() == [1, 1, 1, 1]
    none.place[:1], none.size = 150, 1
    assert rows.alone(none).sum() == 12
    rows._rows[2] = 2**32 - 2
    for _ in range(3):
        rows.take(np.array([2]), 3)
    assert rows._rows[2] == 2**32 - 1
    rows.keep(np.arange(151) == 2)
    assert rows._rows.tolist() == [2**32 - 1]
    rows.keep(np.array([True, True]))
    assert rows.alone(RowBuffer()).tolist() == [2**32 - 1]


# Pairs -----------------------------------------------------------------------------------------------------------


def paired(limit: int, size: int) -> tuple[PersonCellSums, PersonCellValues, list[tuple[int, int]]]:
    """2,000 rows in batches, what memory finds in them, and how large its dictionary and its columns became."""
    chance, number = np.random.default_rng(7), 2_000
    columns = {"lon": chance.uniform(0, 1.2, number), "lat": chance.uniform(0, 1, number)}
    columns |= {"value": chance.normal(30, 20, number), "time": chance.uniform(0, 1e6, number).round()}
    rows, places = (
        MemoryTable(chance.integers(0, 400, number), columns, 8),
        ObservedCellSlots(SQUARE, Clock.hours("UTC"), VALUE_ENCODING),
    )
    own, located, sizes = seeds(rows.person.view(np.uint64), KeyWords.expanded(8, DRAWN_AS)), places.rows(columns), []
    made = PersonCellSums(places, NumberedPeople(), limit)
    for begin in range(0, number, size):
        some = slice(begin, begin + size)
        counts = located.cells[some] != NOWHERE
        batch = RowBatch(own[some], located.cells[some], np.zeros(0, np.int64), counts, None, 0)
        made.take(batch, located.slots[some], located.readings[some])
        sizes.append((len(made._table), len(made._keys)))
    return made, rows.pairs(places), sizes


@pytest.mark.parametrize(("smallest", "wanted"), [(16, "2a861e8babc7"), (1 << 12, "3f9db854f8ee")])
def test_pairs_are_those_of_memory_and_grow_by_a_quarter_and_by_twice(smallest, wanted, monkeypatch):
    monkeypatch.setattr(pairing, "SMALLEST", smallest)
    every = []
    for size in (300, 2_000):
        made, memory, sizes = paired(1 << 30, size)
        found = made.finished()
        for name in ("firsts", "place", "records"):
            assert np.array_equal(getattr(found.whereabouts, name), getattr(memory.whereabouts, name))
        assert np.array_equal(found.sums, memory.sums) and found.tree == memory.tree
        every += sizes
    assert sha256(repr(every).encode()).hexdigest()[:12] == wanted


def test_pairs_beyond_the_limit_are_refused_to_the_byte(monkeypatch):
    monkeypatch.setattr(pairing, "SMALLEST", 16)
    held: list[int] = []

    class Noted(PersonCellSums):
        def _grow(self) -> None:
            super()._grow()
            own = (self._table, self._keys, self._records, self._sums)
            held.append(sum(each.nbytes for each in own) + 70 * self._ids.count)

    monkeypatch.setattr(f"{__name__}.PersonCellSums", Noted)
    paired(1 << 30, 300)
    paired(max(held), 300)
    with pytest.raises(TableError, match="more memory than its limit"):
        paired(max(held) - 1, 300)
