"""Hostile reports, messages and shares of Prio3, a few thousand of them; 10^5 to each decoder in the script."""

from research.hostile_bytes.prio3 import corpus
from research.hostile_bytes.spoilt import fuzzed


def test_spoilt_reports_and_messages_of_prio3_are_refused():
    results = fuzzed(120, 2, corpus())
    assert [(found.name, found.faults[:1]) for found in results if found.faults] == []
    assert all(found.refused for found in results)
