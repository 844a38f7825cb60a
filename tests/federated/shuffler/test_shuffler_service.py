"""A shuffler without a socket: whole people, one order, nothing lost and nothing kept, whenever its machine dies."""

import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.federated.aggregator.two_servers import Crash
from tests.federated.shuffler.batches import LIMITS, NOW, TERMS, Machine, messages_of, other, request_of

from hazemap.errors import CodecError, InputError, NotOpened, Refused, StoreError, Unreachable
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.service.databases import Sqlite
from hazemap.federated.shuffler import shuffler_service as pieces_module
from hazemap.federated.shuffler.shuffler_service import BatchOver, ShufflerService, UnknownBatch, permuted_pieces
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity

PEOPLE = ("ann", "ben", "cem", "dora")


def cut(every, size=TERMS.message_bytes):
    return Counter(every[start : start + size] for start in range(0, len(every), size))


def of(people):
    return Counter(message for person in people for message in messages_of(person))


@pytest.fixture
def machine():
    made = Machine().start()
    made.service.announce(TERMS, NOW)
    yield made
    made.store.close()


def test_a_batch_goes_in_whole_comes_out_in_one_order_and_is_gone(machine):
    for person in PEOPLE:
        machine.send(person)
        machine.send(person)  # its answer was lost: the same bytes count once
    assert machine.service.state(TERMS.digest).people == 4
    first = machine.fetch()
    assert cut(first) == of(PEOPLE)
    assert [machine.fetch() for _ in range(3)] == [first] * 3
    assert machine.rows("submissions") == 0, "who sent what is deleted with the draw of the order"
    machine.service.forget(TERMS.digest)
    machine.service.forget(TERMS.digest)
    assert machine.rows("permuted") == 0
    for late in (machine.fetch, lambda: machine.send("late"), lambda: machine.service.piece(TERMS.digest, 0)):
        with pytest.raises(BatchOver):
            late()
    machine.service.announce(TERMS, NOW)
    assert machine.service.state(TERMS.digest).state == "forgotten", "a batch is not opened twice"


def test_nothing_is_handed_on_below_the_minimum_and_nothing_is_lost_by_asking(machine):
    for person in PEOPLE[:2]:
        machine.send(person)
    with pytest.raises(NotOpened, match="nothing below 3"):
        machine.fetch()
    with pytest.raises(BatchOver, match="this batch is open"):
        machine.service.piece(TERMS.digest, 0)
    machine.send("cem")
    assert cut(machine.fetch()) == of(PEOPLE[:3])
    with pytest.raises(CodecError, match="pieces 0 to 0"):
        machine.service.piece(TERMS.digest, 1)


def test_a_person_counts_once_and_nobody_counts_who_is_not_enrolled(machine):
    machine.send("ann")
    stranger = Identity.from_bytes(b"x" * 32)
    refused = {
        "counts once": request_of("ann", said="something else"),
        "only who is enrolled": request_of("ben", issuer=stranger),
        "all or none": request_of("ben")[:-1],
        "does not open": request_of("ben")[:-1] + b"x",
    }
    for words, request in refused.items():
        with pytest.raises(Refused, match=words):
            machine.service.taking(TERMS.digest, request, NOW)
    with pytest.raises(Refused, match="does not open"):  # a credential and messages of another batch
        machine.service.taking(TERMS.digest, request_of("ben", other(nonce=b"o" * 16)), NOW)
    with pytest.raises(UnknownBatch):
        machine.service.taking(bytes(32), request_of("ben"), NOW)
    with pytest.raises(BatchOver, match="closed"):
        machine.send("ben", now=TERMS.closes + 1)
    assert machine.service.state(TERMS.digest).people == 1


def test_a_batch_takes_no_more_people_than_its_sums_have_room_for(machine):
    for person in "abcdef":
        machine.send(person)
    with pytest.raises(BatchOver, match="full"):
        machine.send("g")
    writes = machine.service.taking(TERMS.digest, request_of("a"), NOW)
    assert writes == (), "who is in it may ask again"


def test_numbers_of_one_person_in_two_batches_have_nothing_in_common():
    serials = set()
    for nonce in (b"1" * 16, b"2" * 16):
        machine, terms = Machine().start(), other(nonce=nonce)
        machine.service.announce(terms, NOW)
        machine.send("ann", terms)
        serials |= {bytes(serial) for (serial,) in machine.store.read("SELECT serial FROM submissions")}
        machine.store.close()
    assert len(serials) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"minimum": 1}, "nothing below the messages of 2 people"),
        ({"closes": NOW}, "closes after now"),
        ({"closes": NOW + 31 * 86_400}, "within 30 days"),
        ({"people": 20_000}, "holds 1,048,576 at most"),
    ],
)
def test_batches_beyond_the_operator_s_limits_are_not_announced(machine, changes, words):
    with pytest.raises(InputError, match=words):
        machine.service.announce(other(**changes), NOW)
    assert machine.rows("batches") == 1


def opened_again(machine):
    """A batch that was handed on and then forgotten by a clock that was ahead, announced anew once it is put right."""
    for person in PEOPLE:
        machine.send(person)
    first = machine.fetch()
    ahead = TERMS.closes + LIMITS.keep + 1
    assert machine.service.expire(ahead) == 1
    machine.start()
    machine.service.announce(TERMS, NOW)
    for person in PEOPLE[1:]:
        machine.send(person)
    return cut(first) - cut(machine.fetch())


def test_no_batch_is_opened_a_second_time_though_a_clock_was_ahead_and_is_put_right(machine):
    """Whoever is not in it the second time would be known by the difference."""
    with pytest.raises(InputError, match="may have been opened here before"):
        opened_again(machine)
    later = other(closes=TERMS.closes + 1)
    machine.service.announce(later, NOW)
    assert machine.service.state(later.digest).state == "open"


def test_a_shuffler_that_does_not_keep_until_when_it_forgot_would_give_a_person_away(machine, monkeypatch):
    monkeypatch.setattr(ShufflerService, "_forgotten_until", lambda _: -1)
    assert opened_again(machine) == of(PEOPLE[:1])


def test_one_analyser_s_batches_are_bounded_though_each_is_forgotten_at_once(machine, monkeypatch):
    monkeypatch.setattr("hazemap.federated.shuffler.shuffler_service.BATCHES", 3)
    for nonce in (b"1" * 16, b"2" * 16):
        machine.service.announce(other(nonce=nonce), NOW)
        machine.service.forget(other(nonce=nonce).digest)
    with pytest.raises(InputError, match="3 batches at most"):
        machine.service.announce(other(nonce=b"3" * 16), NOW)
    machine.service.announce(other(nonce=b"3" * 16), NOW, "ben")


def test_batches_share_the_room_that_there_is(machine):
    machine.service.announce(other(nonce=b"b" * 16, people=10_000), NOW)
    with pytest.raises(InputError, match="1,000,600 are promised"):
        machine.service.announce(other(nonce=b"c" * 16, people=1_000), NOW)


@pytest.mark.parametrize("state", ["open", "permuted", "forgotten"])
def test_what_nobody_collects_is_forgotten_in_time_and_not_before(machine, state):
    for person in PEOPLE:
        machine.send(person)
    if state != "open":
        machine.fetch()
    if state == "forgotten":
        machine.service.forget(TERMS.digest)
    assert machine.service.expire(TERMS.closes + LIMITS.keep) == 0
    assert machine.service.expire(TERMS.closes + LIMITS.keep + 1) == 1
    assert [machine.rows(table) for table in ("batches", "submissions", "permuted")] == [0, 0, 0]
    with pytest.raises(InputError, match="closes after now"):
        machine.service.announce(TERMS, TERMS.closes + LIMITS.keep + 1)


@pytest.mark.parametrize("size", [1, 7, 48])
def test_pieces_hold_every_message_once_whatever_their_size(monkeypatch, size):
    monkeypatch.setattr(pieces_module, "PIECE", 20)
    sent = [bytes([person]) * size * 3 for person in range(9)]
    pieces = permuted_pieces(sent, size, Stream.fixed(b"pieces"))
    assert cut(b"".join(pieces), size) == cut(b"".join(sent), size)
    assert {len(piece) for piece in pieces[:-1]} == {max(1, 20 // size) * size}


def test_every_order_is_as_likely_as_any_other_and_a_person_s_messages_are_not_kept_together():
    """Chi-square over the 24 orders of two people's four messages; the twin permutes people and fails."""
    stream, orders = Stream.fixed(b"orders"), ["".join(each) for each in permutations("abcd")]
    found = Counter(b"".join(permuted_pieces([b"ab", b"cd"], 1, stream)).decode() for _ in range(4_800))
    assert chisquare([found[order] for order in orders]).pvalue > 1e-9
    twin = Counter(b"".join(permuted_pieces([b"ab", b"cd"], 2, stream)).decode() for _ in range(4_800))
    assert chisquare([twin[order] for order in orders]).pvalue < 1e-9


def test_while_a_batch_is_permuted_people_are_asked_to_wait_and_then_told(machine):
    for person in PEOPLE[:3]:
        machine.send(person)
    machine.service._permuting.add(TERMS.digest)
    with pytest.raises(Unreachable, match="ask again"):
        machine.send("dora")
    machine.service._permuting.clear()
    late = machine.service.taking(TERMS.digest, request_of("dora"), NOW)  # on its way to the disk
    machine.fetch()
    with pytest.raises(Exception, match="contradicts"):
        machine.store.write_now(*late)
    assert cut(machine.fetch()) == of(PEOPLE[:3])
    with pytest.raises(BatchOver):
        machine.send("dora")


def test_messages_on_their_way_to_the_disk_are_in_the_batch_or_not_acknowledged(tmp_path):
    """People who send while the batch is permuted: whoever was acknowledged is in it."""
    machine = Machine(database=Sqlite(tmp_path / "shuffler.sqlite")).start()
    machine.service.announce(TERMS, NOW)
    for person in PEOPLE[:3]:
        machine.send(person)

    def late(person):
        try:
            machine.send(person)
        except (BatchOver, Unreachable):
            return

    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(late, person) for person in ("e", "f", "g")]
        fetched = threads.submit(machine.fetch).result()
        for each in waiting:
            each.result()
    assert cut(fetched) == of(machine.acknowledged)
    machine.store.close()


STEPS = st.one_of(st.sampled_from(PEOPLE), st.sampled_from(["fetch", "again"]))


def history(machine, steps):
    """A campaign with lost answers; everybody tries again whenever the machine has died."""
    todo = ["announce", *steps, *PEOPLE, "fetch", "fetch", "forget", "forget"]
    while todo:
        step = todo[0]
        try:
            if step == "announce":
                machine.service.announce(TERMS, NOW)
            elif step in ("fetch", "again"):
                machine.fetch()
            elif step == "forget":
                machine.service.forget(TERMS.digest)
            else:
                machine.send(step)
        except Crash:
            machine.start()
            continue
        except (NotOpened, BatchOver):
            pass
        todo.pop(0)


def check(machine):
    """One order ever left, it holds everybody who was acknowledged, whole, and nothing is left on the disk."""
    assert len(set(machine.handed_on)) == 1, "two orders left"
    [found] = {frozenset(cut(each).items()) for each in machine.handed_on}
    people = {message.split(b":")[0].decode() for message, _ in found}
    assert dict(found) == of(people), "somebody is there in part, or twice"
    assert machine.acknowledged <= people, "somebody was lost"
    assert machine.rows("submissions") == machine.rows("permuted") == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, max_size=6), st.sampled_from(["before", "after"]), st.integers(0, 9))
def test_whenever_the_machine_dies_one_order_leaves_with_everybody_in_it(steps, dies, at):
    machine = Machine().start()
    machine.store.left, machine.store.dies = at, dies
    try:
        history(machine, steps)
        check(machine)
    finally:
        machine.store.close()


@pytest.mark.parametrize("dies", ["before", "after"])
@pytest.mark.parametrize("at", range(9))
def test_at_every_write_of_a_plain_history_the_machine_may_die(dies, at):
    machine = Machine().start()
    machine.store.left, machine.store.dies = at, dies
    history(machine, [])
    assert (machine.store.left is None) == (at < 8), "eight writes: a batch, four people, an order, two deletions"
    check(machine)
    machine.store.close()


def test_what_was_handed_on_is_overwritten_on_the_disk(tmp_path):
    machine = Machine(database=Sqlite(tmp_path / "shuffler.sqlite")).start()
    machine.service.announce(TERMS, NOW)
    for person in PEOPLE:
        machine.send(person)

    def left():
        return [person for person in PEOPLE if any(b"%s:0" % person.encode() in each for each in files(tmp_path))]

    assert left() == list(PEOPLE)
    machine.fetch()
    machine.service.forget(TERMS.digest)
    machine.store.close()  # as `Store` does it, some time after anything was deleted
    assert left() == []


@dataclass(frozen=True)
class FullDisk(Sqlite):
    """A disk with room for so many pages."""

    pages: int = 0

    def own(self):
        writer = super().own()
        writer.execute(f"PRAGMA max_page_count = {self.pages}")
        return writer


@pytest.mark.parametrize(("pages", "people"), [(20, 2), (32, 4)])
def test_a_full_disk_loses_nobody_who_was_told_that_they_are_in_and_hands_nothing_on(
    tmp_path, pages, people, monkeypatch
):
    """Nobody else is in it either: whoever was told to try again is in it once."""
    monkeypatch.setattr("hazemap.federated.service.store.PATIENCE", 0)
    terms, path = other(messages=4, message_bytes=5_000), tmp_path / "shuffler.sqlite"
    Machine(database=Sqlite(path)).start().store.close()
    machine = Machine(database=FullDisk(path, pages=pages)).start()
    machine.service.announce(terms, NOW)

    def until_it_is_full():
        for person in PEOPLE:
            machine.send(person, terms)
        machine.fetch(terms)  # the order of all messages has no room beside them

    with pytest.raises(StoreError, match="cannot be written"):
        until_it_is_full()
    assert len(machine.acknowledged) == people
    for ask in (lambda: machine.fetch(terms), lambda: machine.send("late", terms)):
        with pytest.raises((StoreError, NotOpened)):
            ask()
    assert machine.service.state(terms.digest)[1:3] == ("open", len(machine.acknowledged))
    machine.database = Sqlite(path)
    machine.start()
    assert machine.service.state(terms.digest).people == len(machine.acknowledged)
    for person in PEOPLE:
        machine.send(person, terms)
    every = Counter(message for person in PEOPLE for message in messages_of(person, terms))
    assert cut(machine.fetch(terms), terms.message_bytes) == every
    machine.store.close()


def files(folder):
    return [path.read_bytes() for path in folder.iterdir() if path.is_file()]


class DrawsAgain(ShufflerService):
    """A twin that permutes what it hands on anew each time."""

    def piece(self, batch, number):
        return permuted_pieces([super().piece(batch, number)], TERMS.message_bytes, Stream.from_os())[0]


class ForgetsFirst(ShufflerService):
    """A twin that deletes what people sent before the order is on the disk."""

    def _permuting_writes(self, batch, found):
        *rest, drop = super()._permuting_writes(batch, found)
        self.store.write_now(drop)
        return rest


@pytest.mark.parametrize(("twin", "words"), [(DrawsAgain, "two orders"), (ForgetsFirst, "")])
def test_twins_that_draw_twice_or_forget_too_early_are_found(twin, words):
    found = []
    for at in range(10):
        machine = Machine(kind=twin).start()
        machine.store.left = at
        try:
            history(machine, [])
            check(machine)
        except Exception as error:
            found.append(str(error))
        finally:
            machine.store.close()
    assert found and all(words in each for each in found)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_terms_that_are_none_are_refused_in_words(text):
    with suppress(CodecError):
        assert BatchTerms.from_bytes(text).to_bytes() == text


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"nonce": b""},
        {"messages": 0},
        {"message_bytes": 48},
        {"messages": 1 << 24},
        {"minimum": 7},
        {"minimum": 0},
        {"people": 1 << 25},
        {"closes": 1 << 40},
        {"people": True},
    ],
)
def test_terms_that_cannot_be_are_not_made(changes):
    with pytest.raises(InputError):
        other(**changes)


def test_a_batch_is_permuted_in_twice_its_bytes_and_a_little_for_each_message():
    """What docs/how-to/shuffler.md says of memory; three times would be too much."""
    size, every = 1_000, 500 * 40_000
    tracemalloc.start()
    pieces = permuted_pieces([bytes([n % 256]) * 40_000 for n in range(500)], size, Stream.fixed(b"memory"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, pieces)) == every
    assert peak < 2 * every + 64 * every // size + (4 << 20)
