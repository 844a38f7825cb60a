"""What a shuffler could do that is not honest: each is what the statement says it is, no less and no more."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.protocols.shuffle.test_shuffle import ALL, KEY, SENT, TERMS, VECTORS

from hazemap.errors import Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, unpack
from hazemap.federated.protocols.shuffle.sealed_parts import INFO, SUITE, messages, opened
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import assumed_of_parts
from hazemap.privacy.random_stream import Stream

SAID = " ".join(assumed_of_parts(ReportBatch(20, 19)))


def joined(people):
    return [message for own in people for message in own]


def test_one_that_drops_people_makes_a_smaller_sum_and_below_the_minimum_none():
    found = opened(TERMS, KEY, joined(SENT[1:]))
    assert found.people == 19 and np.array_equal(found.sums, VECTORS[1:].sum(axis=0))
    with pytest.raises(Refused, match="incomplete"):
        opened(TERMS, KEY, joined(SENT[2:]))
    assert "hands on nothing below the messages of 19 people" in SAID


def test_one_that_drops_single_messages_spoils_the_batch_and_nobody_reads_it():
    with pytest.raises(Refused, match="incomplete"):
        opened(TERMS, KEY, ALL[:-1])
    assert "a person's whole or not at all" in SAID


def test_one_that_takes_a_person_twice_changes_the_sum_unseen():
    found = opened(TERMS, KEY, joined([*SENT[:19], SENT[0]]))
    assert np.array_equal(found.sums, VECTORS[:19].sum(axis=0) + VECTORS[0])
    assert "it counts nobody twice" in SAID


def test_one_that_makes_people_up_learns_from_the_sum_what_the_others_would_have_hidden():
    """Analysers' keys are public: whoever fills a batch up knows the sum but for one person's share of the noise."""
    nothing = np.zeros(TERMS.size, dtype=np.int64)
    made_up = [messages(TERMS, KEY.public, nothing, Stream.fixed(b"%d" % number)) for number in range(18)]
    found = opened(TERMS, KEY, joined([SENT[0], *made_up]))
    assert found.people == 19 and np.array_equal(found.sums, VECTORS[0])
    assert "and makes up nobody" in SAID


def parts_of(message):
    plain = SUITE.open(KEY, message[:32], INFO, TERMS.digest, message[32:])
    return int.from_bytes(plain[:4], "big"), unpack(plain[4:], TERMS.block, TERMS.bits).astype(np.int64)


def read_together(in_order):
    """What the analyser reads who knows which messages came together: each person's own noisy vector."""
    size = TERMS.messages
    for start in range(0, len(in_order), size):
        sums = np.zeros((TERMS.blocks, TERMS.block), dtype=np.int64)
        for message in in_order[start : start + size]:
            number, part = parts_of(message)
            sums[number] += part
        yield lifted((sums.ravel()[: TERMS.size] % (1 << TERMS.bits)).astype(np.uint16), TERMS.bits)


def test_one_that_keeps_the_order_and_works_with_the_analyser_reads_everybody():
    assert np.array_equal(list(read_together(joined(SENT))), VECTORS)
    assert "together they read every message" in SAID


def test_one_that_permutes_hides_who_sent_which_part_and_changes_no_sum():
    """The same reading of a permuted batch gives nobody's vector; a part by itself is uniform."""
    assert not {tuple(each) for each in read_together(ALL)} & {tuple(each) for each in VECTORS}
    assert np.array_equal(opened(TERMS, KEY, ALL).sums, VECTORS.sum(axis=0))
    numbers = np.concatenate([parts_of(message)[1] for message in ALL])
    seen = Counter((numbers >> (TERMS.bits - 2)).tolist())
    assert all(abs(seen[quarter] - len(numbers) / 4) < 7 * np.sqrt(len(numbers) * 3 / 16) for quarter in range(4))


def test_the_analyser_that_makes_people_up_is_among_those_who_work_with_it():
    """Who signs credentials could sign them for nobody: N counts the honest people who are left."""
    with_corrupt = ReportBatch(20, 19, corrupt=Fraction(1, 4))
    assert with_corrupt.honest == 14
    assert "those of 14 honest people are enough, and at most 5 of 20 work" in " ".join(assumed_of_parts(with_corrupt))
