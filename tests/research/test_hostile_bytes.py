"""Whatever a peer sends is refused in words, or is what it says: messages of DAP, and what devices and servers say."""

import pytest

from hazemap.errors import CodecError
from hazemap.vdaf.tls_encoding import Structure
from research.hostile_bytes import devices
from research.hostile_bytes.dap_messages import corpus
from research.hostile_bytes.spoilt import Found, fuzzed, little_room, structure, tried


def test_decoders_of_dap_refuse_what_was_spoilt_or_read_what_it_says():
    results = fuzzed(150, 1, corpus())
    assert [(found.name, found.faults[:1]) for found in results if found.faults] == []
    assert all(found.refused for found in results) and sum(found.taken for found in results) > 100


def test_readers_of_devices_refuse_what_was_spoilt_or_read_what_it_says():
    results = fuzzed(10, 1, devices.corpus())
    assert [(found.name, found.faults[:1]) for found in results if found.faults] == []
    assert sum(found.taken for found in results) > 20 < sum(found.refused for found in results)


@pytest.mark.slow
def test_readers_of_devices_refuse_what_was_spoilt_three_thousand_times():
    assert [(found.name, found.faults[:1]) for found in fuzzed(3_000, 2, devices.corpus()) if found.faults] == []


@pytest.mark.slow
def test_decoders_of_dap_refuse_what_was_spoilt_ten_thousand_times():
    assert [(found.name, found.faults[:1]) for found in fuzzed(10_000, 2, corpus()) if found.faults] == []


def test_the_greatest_length_at_every_place_takes_no_memory():
    with little_room():
        for name, (valid, check) in corpus().items():
            found = Found(name)
            for data in valid:
                for at in range(max(len(data) - 4, 1)):
                    tried(found, check, data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
            assert found.faults == []


def test_a_decoder_that_believes_a_length_errs_or_reads_loosely_is_found_out():
    def believes(data):
        bytearray(int.from_bytes(data[:4], "big") % (1 << 40))
        if data != bytes(4):
            raise CodecError("too late")

    def clumsy(data):
        if data[3]:
            raise CodecError("not zero")

    class Loose(Structure):
        @classmethod
        def from_bytes(cls, _data):
            return cls()

        def to_bytes(self):
            return bytes(4)

    valid = [bytes(4)]
    targets = {"believes": (valid, believes), "clumsy": (valid, clumsy), "loose": (valid, structure(Loose))}
    faults = {found.name: found.faults for found in fuzzed(60, 3, targets)}
    for name, what in (("believes", "MemoryError"), ("clumsy", "IndexError"), ("loose", "Unsound")):
        assert any(what in fault for fault in faults[name])
