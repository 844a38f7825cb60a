"""What a page needs to tell the share of people in a region who carry each mark, as `MarkedRelease.share` does."""

from typing import TYPE_CHECKING, Any

from hazemap.releases.page.asking_payload import asking_of, packed_floats

if TYPE_CHECKING:
    from hazemap.releases.marked_release import MarkedRelease


def asking_marks_of(release: "MarkedRelease") -> dict[str, Any] | None:
    """What questions about people need (`asking_of`), and with it the numbers with and without each mark (`marks`).

    Each is a sum of some of the `sides` noisy counts of a cell, all of one `stddev` and `kurtosis`.
    """
    asking, counts = asking_of(release), release.counts
    if asking is None:
        return None
    marks = []
    for mark in release.marks:
        having = counts.marks.having(mark)
        with_, without = counts.sides[having].sum(axis=0), counts.sides[~having].sum(axis=0)
        marks.append(
            {
                "name": mark,
                "sides": int(having.sum()),
                "marked": packed_floats(with_),
                "without": packed_floats(without),
            }
        )
    law = {"stddev": counts.stddev, "kurtosis": counts.kurtosis, "grain": counts.grain}
    return {**asking, "marks": {**law, "sides": counts.marks.sides, "each": marks}}
