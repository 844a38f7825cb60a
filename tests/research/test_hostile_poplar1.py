"""Hostile reports, messages and requests of Poplar1, a few thousand of them; 10^5 to each decoder in the script."""

import pytest

from hazemap.errors import Refused
from research.hostile_bytes.poplar1 import LEVELS, corpus, decided_by
from research.hostile_bytes.spoilt import fuzzed


def test_spoilt_reports_of_poplar1_are_refused_or_count_for_at_most_one():
    results = fuzzed(200, 3, corpus())
    assert [(found.name, found.faults[:1]) for found in results if found.faults] == []
    assert all(found.refused for found in results)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("said", ["verifier message", "verifier share"])
def test_what_is_added_to_one_number_of_a_sketch_and_taken_from_the_other_says_the_same(level, said):
    [honest], check = corpus()[f"level {level}: {said}"]
    size = len(honest) // 3
    numbers = [int.from_bytes(honest[i : i + size], "little") for i in range(0, 3 * size, size)]

    def with_added(*more):
        return b"".join((number + each).to_bytes(size, "little") for number, each in zip(numbers, more, strict=True))

    same = with_added(0, 4, -4)
    assert decided_by(level, same) == decided_by(level, honest) and same != honest
    check(same)  # seed 241122 of the script drew one of these
    for more in [(0, 4, 0), (0, 4, -3), (4, 0, -4), (1, 0, 0)]:
        with pytest.raises(Refused):
            check(with_added(*more))
