"""A shuffle from end to end: parts, sealed messages, an order that says nothing, and sums that are whole or refused."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.federated.trust.in_memory_shuffle import Shuffler
from tests.privacy.polya_law import fit, laplace_law

from hazemap.errors import InputError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted
from hazemap.federated.protocols.shuffle.sealed_parts import INFO, SUITE, messages, opened, split
from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream, in_any_order
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

LEVEL = 1e-6
KEY = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(range(32)))
TERMS = ShuffleParameters(bytes(32), size=5, bits=9, block=4, honest=19, minimum=19, security=8)
VECTORS = np.random.default_rng(3).integers(-6, 7, (20, 5))


def sent(terms=TERMS, vectors=VECTORS, stream=None):
    stream = stream or Stream.fixed(b"people")
    return [messages(terms, KEY.public, vector, stream) for vector in vectors]


SENT = sent()


def shuffled(each=SENT, terms=TERMS):
    batch = Shuffler(terms)
    for number, own in enumerate(each):
        batch.take(str(number), own)
    return batch.hand_on(Stream.fixed(b"order"))


def test_sums_come_out_and_messages_look_alike():
    found = opened(TERMS, KEY, shuffled())
    assert found.people == 20
    assert np.array_equal(found.sums, VECTORS.sum(axis=0))
    assert {len(each) for own in SENT for each in own} == {TERMS.message_bytes}
    assert {len(own) for own in SENT} == {TERMS.messages}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=6), st.integers(1, 32), st.integers(2, 9))
def test_parts_add_up_to_their_vector(numbers, bits, parts):
    vector = np.array(numbers, dtype=np.int64)
    made = split(Stream.fixed(b"split"), vector, bits, parts)
    assert made.shape == (parts, len(vector)) and int(made.max()) < 1 << bits
    total = made.astype(np.int64).sum(axis=0)
    assert np.array_equal(total % (1 << bits), vector % (1 << bits))


def test_every_part_is_uniform_whatever_the_vector():
    """Chi-square, of each of three parts of 3 bits; the twin is the vector itself."""
    made = split(Stream.fixed(b"uniform"), np.full(40_000, 5), 3, 3)
    for part in made:
        assert chisquare(np.bincount(part, minlength=8)).pvalue > LEVEL
    both = np.bincount(made[0] * 8 + made[2], minlength=64)
    assert chisquare(both).pvalue > LEVEL, "any two parts are independent"
    assert chisquare(np.bincount(made.sum(axis=0) % 8, minlength=8)).pvalue < LEVEL


def test_every_order_is_as_likely_as_any_other():
    """Chi-square over the 24 orders of four messages; the twin sorts three of four words only."""
    stream = Stream.fixed(b"permutation")
    found = Counter(tuple(in_any_order(stream, 4).tolist()) for _ in range(12_000))
    assert chisquare([*found.values(), *([0] * (24 - len(found)))]).pvalue > LEVEL
    twin = Counter((*in_any_order(stream, 3).tolist(), 3) for _ in range(12_000))
    assert chisquare([*twin.values(), *([0] * (24 - len(twin)))]).pvalue < LEVEL
    with pytest.raises(InputError):
        in_any_order(stream, -1)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (SENT[0][:-1], "all or none"),
        ([*SENT[0], SENT[0][0]], "all or none"),
        ([*SENT[0][:-1], SENT[0][0] + b"x"], "every one of them"),
        ([*SENT[0][:-1], SENT[0][0][:-1]], "every one of them"),
    ],
)
def test_a_person_is_taken_whole_or_not_at_all(own, words):
    batch = Shuffler(TERMS)
    with pytest.raises(Refused, match=words):
        batch.take("ann", own)
    assert batch.people == 0
    batch.take("ann", SENT[0])
    with pytest.raises(Refused, match="counts once"):
        batch.take("ann", SENT[1])


def test_a_person_may_have_hundreds_of_long_messages():
    terms = ShuffleParameters(bytes(32), size=512, bits=32, block=64, honest=1_000, minimum=1_000)
    assert terms.messages > 256 < terms.message_bytes
    batch = Shuffler(terms)
    batch.take("ann", [bytes(terms.message_bytes)] * terms.messages)
    assert batch.people == 1


def test_a_batch_is_handed_on_once_and_not_below_its_minimum():
    batch = Shuffler(TERMS)
    for number, own in enumerate(SENT[:18]):
        batch.take(str(number), own)
    with pytest.raises(NotOpened, match="nothing below 19"):
        batch.hand_on(Stream.fixed(b"order"))
    batch.take("last", SENT[18])
    assert sorted(batch.hand_on(Stream.fixed(b"order"))) == sorted(each for own in SENT[:19] for each in own)
    assert batch.people == 0 and not batch._messages, "forgotten"
    for late in (lambda: batch.hand_on(Stream.fixed(b"order")), lambda: batch.take("late", SENT[19])):
        with pytest.raises(Refused, match="handed on already"):
            late()


ALL = shuffled()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ALL[1:], "incomplete"),
        (ALL[: 18 * TERMS.messages], "incomplete"),
        ([*ALL[1:], ALL[1][:-1]], "bytes"),
        ([*ALL[1:], ALL[1][:-1] + b"x"], "does not open"),
    ],
    ids=["one dropped", "too few people", "cut short", "changed"],
)
def test_a_batch_that_is_not_whole_is_not_opened(found, words):
    with pytest.raises(Refused, match=words):
        opened(TERMS, KEY, found)


def test_a_message_twice_in_place_of_another_shifts_no_sum_unseen_unless_of_the_same_block():
    """The analyser counts parts of each block; a shuffler that swaps within a block makes random numbers, as stated."""
    blocks = {
        int.from_bytes(SUITE.open(KEY, each[:32], INFO, TERMS.digest, each[32:])[:4], "big"): at
        for at, each in enumerate(ALL)
    }
    swapped = list(ALL)
    swapped[blocks[0]] = ALL[blocks[1]]
    with pytest.raises(Refused, match="each block has"):
        opened(TERMS, KEY, swapped)


def plain_sealed(plain, terms=TERMS):
    enc, payload = SUITE.seal(KEY.public, INFO, terms.digest, plain, bytes(range(32)))
    return enc + payload


@pytest.mark.parametrize(
    ("plain", "words"),
    [(b"\0\0\0\x09" + bytes(5), "not asked for"), (b"\0\0\0\0" + b"\xff" * 5, "cannot be read")],
)
def test_messages_of_a_person_who_breaks_the_rules_close_the_batch(plain, words):
    with pytest.raises(Refused, match=words):
        opened(TERMS, KEY, [plain_sealed(plain), *ALL[1:]])


def test_messages_of_another_shuffle_do_not_open():
    other = replace(TERMS, task=b"x" * 32)
    with pytest.raises(Refused, match="does not open"):
        opened(other, KEY, ALL)


def test_parameters_are_checked_and_the_cheapest_block_is_found():
    terms = ShuffleParameters.cheapest(bytes(32), 4_096, 17, 90_000, 95_000)
    others = [replace(terms, block=block) for block in (1, 8, 64)]
    assert all(terms.bytes_a_person <= each.bytes_a_person for each in others)
    for size in (1, 4, 5, 16, 64):
        every = [ShuffleParameters(bytes(32), size, 9, 1 << k, 1_000, 1_000) for k in range(size.bit_length())]
        assert every[-1].block <= size < 2 * every[-1].block
        least = min(each.bytes_a_person for each in every)
        assert ShuffleParameters.cheapest(bytes(32), size, 9, 1_000, 1_000).bytes_a_person == least
    assert replace(terms, size=1 << 24).size == 1 << 24
    with pytest.raises(InputError, match=r"2\^24 numbers"):
        replace(terms, size=(1 << 24) + 1)
    with pytest.raises(InputError, match="1 or more are honest"):
        replace(terms, honest=0)
    for wrong in ({"size": 0}, {"bits": 33}, {"block": 6}, {"honest": 20}, {"task": b"short"}, {"minimum": True}):
        with pytest.raises(InputError):
            replace(TERMS, **wrong)
    with pytest.raises(InputError, match="vectors of 5"):
        messages(TERMS, KEY.public, np.zeros(4, dtype=np.int64), Stream.fixed(b"short"))
    with pytest.raises(InputError, match="2 parts"):
        split(Stream.fixed(b"one"), VECTORS[0], 8, 1)


def summed_parts(people, honest, sums, scale, stream):
    """Sums of the parts of so many people, modulo 2^12, lifted: of noise alone."""
    noise, total = DistributedNoise(scale, honest), np.zeros(sums, dtype=np.int64)
    for _ in range(people):
        total += split(stream, noise.share(stream, sums), 12, 4).astype(np.int64).sum(axis=0)
    return lifted((total % (1 << 12)).astype(np.uint16), 12)


@pytest.mark.slow
def test_the_sum_of_ten_thousand_people_s_parts_has_the_law_of_a_curator_s_noise():
    """Chi-square against discrete Laplace; the twin's shares are made for two thirds as many people."""
    found = summed_parts(10_000, 10_000, 2_000, Fraction(8), Stream.fixed(b"sum of parts"))
    assert fit(found, laplace_law(Fraction(8))) > LEVEL
    twin = summed_parts(3_000, 2_000, 6_000, Fraction(8), Stream.fixed(b"too many"))
    assert fit(twin, laplace_law(Fraction(8))) < LEVEL
