"""Hostile reports, messages and requests of Poplar1, a few thousand of them; 10^5 to each decoder in the script."""

from research.hostile_dap_messages import fuzzed
from research.hostile_poplar1 import corpus


def test_spoilt_reports_of_poplar1_are_refused_or_count_for_at_most_one():
    results = fuzzed(200, seed=3, targets=corpus())
    assert [(found.name, found.faults[:1]) for found in results if found.faults] == []
    assert all(found.refused for found in results)
