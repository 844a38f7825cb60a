"""Whatever a stranger sends to our servers is refused in words, or is what it says."""

import pytest

from research.hostile_bytes.servers import corpus
from research.hostile_bytes.spoilt import fuzzed


def faults(number, seed):
    return [(found.name, found.faults[:1]) for found in fuzzed(number, seed, corpus()) if found.faults]


def test_readers_of_servers_refuse_what_was_spoilt_or_read_what_it_says():
    assert faults(100, seed=1) == []


@pytest.mark.slow
def test_readers_of_servers_refuse_what_was_spoilt_three_thousand_times():
    assert faults(3_000, seed=2) == []
