"""A fingerprint taken while rows are read: a few nanoseconds a row, O(1) memory.

The hash that decides who is kept need not be strong: it is keyed, and only HMACs of it leave this module. For each
person kept, the outermost place is remembered, in a direction that their hash decides. It is the same in any order of
rows, and different people with the same id rarely share it.
"""

from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.streaming.keyed_hash import mix
from hazemap.tables.keyed_hash import KeyWords
from hazemap.tables.table_fingerprint import MOST, Fingerprint
from hazemap.vdaf.compiled_loops import compiled

if TYPE_CHECKING:
    from hazemap.engines.person_ids import Coded

SLOTS = 4 * MOST
CELLS, ROW_CELLS = 1e3, 1e5
"""Cells to a degree: of places some 100 m wide, and where each row is a person some 1 m."""

FARTHEST = 1e9
"""Whatever lies farther out, in degrees, is no place: numbers of its cell would not end."""

DIRECTIONS = np.array([(np.cos(turn), np.sin(turn)) for turn in 2 * np.pi * (np.arange(8) + 0.1) / 8])
NOBODY = np.inf
State = tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int64]]
"""Slots of people's hashes (0 where empty); how far out their place is, its lon and lat; (level, number of people)."""


def _empty() -> State:
    return np.zeros(SLOTS, np.uint64), np.full((SLOTS, 3), NOBODY), np.zeros(2, np.int64)


class Fingerprinting:
    """The fingerprint of a table that is being read, by `threads` at once."""

    def __init__(self, key: bytes, threads: int) -> None:
        self.key, self._words = key, KeyWords.expanded(key, "fingerprint")
        self._states = [_empty() for _ in range(threads)]
        self._kind = "people"
        self._free: SimpleQueue[State] = SimpleQueue()
        for state in self._states:
            self._free.put(state)

    def people(self, ids: Any, coded: "Coded", words: KeyWords, lon: NDArray[Any], lat: NDArray[Any]) -> None:
        """Take in rows of people: their ids as an Arrow array and as coded with `words`, and where they were."""
        state = self._free.get()
        try:
            names = _whole(ids) if coded.texts is None else _names(*coded.texts, coded.seeds, *words)
            _people(names, coded.known, lon, lat, *self._words, *state)
        finally:
            self._free.put(state)

    def rows(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> None:
        """Take in rows that are people of their own, of whom nothing is known but the place."""
        self._kind = "rows"
        state = self._free.get()
        try:
            _rows(lon, lat, *self._words, *state)
        finally:
            self._free.put(state)

    def state(self) -> bytes:
        """What was taken in so far, for `add_state` of another under the same key: some 16 kB."""
        keys, places, counts = self._whole()
        kept = np.flatnonzero(keys)
        head = f"{self._kind} {int(counts[0])}\n".encode()
        return head + keys[kept].tobytes() + places[kept].tobytes()

    def add_state(self, state: bytes) -> None:
        """Take in what another took in."""
        head, _, body = state.partition(b"\n")
        self._kind, level = head.decode().split()
        words = np.frombuffer(body, np.uint64).reshape(4, -1)
        places = words[1:].reshape(-1).view(np.float64).reshape(-1, 3).copy()
        _merge(words[0].copy(), places, np.array([int(level), words.shape[1]]), *self._states[0])

    def _whole(self) -> State:
        """All states in the first one; the others are empty then."""
        into = self._states[0]
        for other in self._states[1:]:
            _merge(*other, *into)
            for old, new in zip(other, _empty(), strict=True):
                old[:] = new
        return into

    def finished(self) -> Fingerprint:
        """The fingerprint of all rows taken in."""
        keys, places, counts = self._whole()
        kept = np.flatnonzero(keys)
        pairs = [(int(keys[slot]), _cell(places[slot, 1], places[slot, 2])) for slot in kept]
        return Fingerprint.of(self._kind, self.key, int(counts[0]), pairs)


def _cell(lon: float, lat: float) -> bytes:
    """A cell of a lattice whose lines lie where no rounded coordinate does; nothing where there is no place."""
    if not (abs(lon) < FARTHEST and abs(lat) < FARTHEST):
        return b""
    return b"%d,%d" % (np.floor(lon * CELLS + 0.3183098861837907), np.floor(lat * CELLS + 0.3183098861837907))


def _whole(ids: Any) -> NDArray[np.uint64]:
    """Whole numbers of 64 bits, whatever Arrow type holds them; anything where there is none."""
    from hazemap.engines.arrow_arrays import floats, numbers

    if str(ids.type) != "double":
        return numbers(ids, np.uint64)
    found = floats(ids)
    return np.where(np.isnan(found), 0.0, found).astype(np.int64).view(np.uint64)


@compiled
def _slot(person: Any, keys: Any, counts: Any) -> Any:
    """Where a person stands, at their hash or after it; who is new is put there, and counted."""
    slot = np.int64(person & np.uint64(SLOTS - 1))
    while keys[slot] != person:
        if keys[slot] == np.uint64(0):
            keys[slot] = person
            counts[1] += 1
            break
        slot = (slot + 1) & (SLOTS - 1)
    return slot


@compiled
def _refill(level: Any, old: Any, where: Any, keys: Any, places: Any, counts: Any) -> None:
    """Add those of other slots' people who are kept at this level to the people in these slots."""
    for i in range(old.size):
        person = old[i]
        if person == np.uint64(0) or (level > 0 and person >> np.uint64(64 - level) != np.uint64(0)):
            continue
        slot = _slot(person, keys, counts)
        if where[i, 0] < places[slot, 0] or (where[i, 0] == places[slot, 0] and where[i, 1] < places[slot, 1]):
            for k in range(3):
                places[slot, k] = where[i, k]
    counts[0] = level


@compiled
def _raise(level: Any, keys: Any, places: Any, counts: Any) -> None:
    """Go up to a level, and on until there is room for more."""
    while counts[0] < level or counts[1] > MOST:
        old, where = keys.copy(), places.copy()
        for i in range(keys.size):
            keys[i] = np.uint64(0)
            for k in range(3):
                places[i, k] = np.inf
        counts[1] = 0
        _refill(counts[0] + 1, old, where, keys, places, counts)


@compiled
def _merge(keys: Any, places: Any, counts: Any, into: Any, into_places: Any, into_counts: Any) -> None:
    """Add the people of one state to another's; of both there is room for, until the level is raised."""
    _raise(counts[0], into, into_places, into_counts)
    _refill(into_counts[0], keys, places, into, into_places, into_counts)
    _raise(into_counts[0], into, into_places, into_counts)


@compiled
def _people(
    ids: Any, known: Any, lon: Any, lat: Any, first: Any, second: Any, keys: Any, places: Any, counts: Any
) -> None:
    """Rows of people by the numbers of their ids; of rows one after another of one person the id is hashed once."""
    limit = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(counts[0])
    last, across, along = np.uint64(0), 0.0, 0.0
    slot = np.int64(-2)  # of the person before: -1 not kept, -2 nobody
    for i in range(ids.size):
        if not known[i]:
            continue
        if slot == -2 or ids[i] != last:
            last, slot = ids[i], np.int64(-1)
            person = mix((ids[i] ^ first) + second) | np.uint64(1)
            if person > limit:
                continue
            slot = _slot(person, keys, counts)
            turn = np.int64(person >> np.uint64(1)) & 7
            across, along = DIRECTIONS[turn, 0], DIRECTIONS[turn, 1]
        if slot == -1:
            continue
        out = lon[i] * across + lat[i] * along
        if out < places[slot, 0] or (out == places[slot, 0] and lon[i] < places[slot, 1]):
            places[slot, 0] = out
            places[slot, 1] = lon[i]
            places[slot, 2] = lat[i]
        if counts[1] > MOST:
            _raise(counts[0] + 1, keys, places, counts)
            limit = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(counts[0])
            slot = np.int64(-2)


@compiled
def _names(data: Any, offsets: Any, seeds: Any, one: Any, two: Any) -> NDArray[np.uint64]:
    """The number of each text: what it says where it is a whole number as people write it, else 64 bits of its own."""
    names = np.empty(offsets.size - 1, np.uint64)
    for i in range(names.size):
        start, stop = offsets[i], offsets[i + 1]
        number, digits, at = np.uint64(0), 0, start
        if start < stop and data[start] <= 57:  # a digit, or a minus
            at = start + 1 if data[start] == 45 else start
            while at < stop and data[at] - np.uint8(48) <= 9:
                number = number * np.uint64(10) + np.uint64(data[at] - np.uint8(48))
                digits += 1
                at += 1
        if at < stop or not 0 < digits <= 19 or (data[stop - digits] == 48 and stop - start > 1):
            names[i] = _unmixed(_unmixed(seeds[i]) ^ two) - one  # the text's own 64 bits, which need not be found again
        else:
            names[i] = number if stop - start == digits else ~number + np.uint64(1)
    return names


@compiled
def _unmixed(z: Any) -> np.uint64:
    """The word that `mix` makes this of: each of its steps undone."""
    z = (z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
    z = (z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
    word: np.uint64 = z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60))
    return word


@compiled
def _rows(lon: Any, lat: Any, first: Any, second: Any, keys: Any, places: Any, counts: Any) -> None:
    """Rows that are people of their own."""
    limit = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(counts[0])
    for i in range(lon.size):
        x, y = lon[i] * ROW_CELLS + 0.3183098861837907, lat[i] * ROW_CELLS + 0.3183098861837907
        if not (abs(x) < 1e9 and abs(y) < 1e9):
            continue
        cell = np.uint64(np.int64(np.floor(x)) & 0xFFFFFFFF) << np.uint64(32) | np.uint64(
            np.int64(np.floor(y)) & 0xFFFFFFFF
        )
        person = mix((cell ^ first) + second) | np.uint64(1)
        if person > limit:
            continue
        _slot(person, keys, counts)
        if counts[1] > MOST:
            _raise(counts[0] + 1, keys, places, counts)
            limit = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(counts[0])
