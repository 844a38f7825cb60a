"""Shuffled reports: one sealed message a person, bits that an analyser adds up, and what it leaves out."""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.shuffle.sealed_parts import SUITE
from hazemap.federated.protocols.shuffle.shuffled_reports import INFO, ReportParameters, report_message, summed_reports
from hazemap.privacy.random_stream import Stream
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

KEY = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(range(32)))
TERMS = ReportParameters(bytes(32), size=11, minimum=5)
BITS = np.random.default_rng(4).integers(0, 2, (7, 11))


def sent(terms=TERMS, bits=BITS):
    return [report_message(terms, KEY.public, own, Stream.from_os()) for own in bits]


def test_sums_come_out_and_messages_look_alike():
    made = sent()
    found = summed_reports(TERMS, KEY, made)
    assert found.people == 7 and np.array_equal(found.sums, BITS.sum(axis=0))
    assert {len(each) for each in made} == {TERMS.message_bytes} and len(set(made)) == 7


def test_a_report_that_nobody_can_read_is_left_out_and_the_others_count():
    made = sent()
    enc, payload = SUITE.seal(KEY.public, INFO, TERMS.digest, b"\xff\xff", bytes(32))  # more bits than were asked for
    other = report_message(replace(TERMS, minimum=6), KEY.public, BITS[1], Stream.from_os())
    spoiled = [made[0][:-1] + b"!", other, enc + payload, b"", *made[3:]]
    found = summed_reports(TERMS, KEY, spoiled)
    assert found.people == 4 and np.array_equal(found.sums, BITS[3:].sum(axis=0))


def test_nothing_is_opened_below_the_minimum():
    with pytest.raises(Refused, match="5 reports or more"):
        summed_reports(TERMS, KEY, sent()[:4])


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 1 << 25}, {"minimum": 0}, {"task": b""}, {"size": True}])
def test_parameters_are_checked(wrong):
    with pytest.raises(InputError):
        replace(TERMS, **wrong)


@pytest.mark.parametrize("bits", [np.zeros(10, dtype=np.int64), np.full(11, 2)])
def test_a_report_is_of_bits_as_many_as_are_asked_for(bits):
    with pytest.raises(InputError, match="11 bits"):
        report_message(TERMS, KEY.public, bits, Stream.from_os())
