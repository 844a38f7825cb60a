"""Remarks about how rows were read: general sentences, from options, names and headers alone.

They stand after every run, for whether a time or a line could be read is a secret of the rows. What a run may hint at
beyond them follows from the noisy numbers that it has paid for.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hazemap.cli.console_output import note
from hazemap.errors import HazemapError, Stopped
from hazemap.sources.source import LocalFiles

if TYPE_CHECKING:
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec

NO_TIME = "whether times are written as is said below, or need --time-format"
NO_LINE = "whether lines are written as is said below"


def reading_notes(order: "ReleaseSpec | StatisticsSpec") -> list[str]:
    """How times are read, where a run uses any, and which lines count, where it reads CSV."""
    notes = []
    if order.timed:
        notes.append(f"Times were read as {order.table.times}.")
    if _is_csv(order):
        notes.append(_of_lines(order))
    return notes


@contextmanager
def notes_where_it_stops(order: "ReleaseSpec | StatisticsSpec", as_json: bool) -> Iterator[None]:
    """Print the notes of a run that stops after its look; one that goes on prints them beside its result."""
    try:
        yield
    except Stopped:
        for line in () if as_json else reading_notes(order):
            note(line)
        raise


def where_nobody_is(order: "ReleaseSpec | StatisticsSpec") -> str:
    """What to check if the noise hides whether any row counted, from options and names alone."""
    looks = ["whether the box is the right one", "whether coordinates are degrees, not swapped, in the right columns"]
    looks += [NO_TIME] if order.timed else []
    looks += [NO_LINE] if _is_csv(order) else []
    return f"look {', '.join(looks[:-1])} and {looks[-1]}"


def _is_csv(order: "ReleaseSpec | StatisticsSpec") -> bool:
    from hazemap.readers.file_formats import reads_csv

    return order.table.address is not None and reads_csv(order.table.address)


def _of_lines(order: "ReleaseSpec | StatisticsSpec") -> str:
    """By the header of a single local file; in general words for other sources."""
    from hazemap.readers.csv_files import read_header
    from hazemap.readers.stored_file import LocalFile

    source, fields = order.table.address, "as many fields as its header"
    if isinstance(source, LocalFiles) and os.path.isfile(source.path):  # noqa: PTH113 - a path as it was written
        try:
            names = read_header(LocalFile(source.path), order.table.dialect).names
        except HazemapError:
            names = ()
        if names:
            fields = f"{len(names)} field{'' if len(names) == 1 else 's'}, as its header has"
    return (
        f"A line of CSV counted if it has {fields}, each bare or whole in quotes; any other was left out, and nothing "
        "says how many: row names, or a delimiter at the end of lines, make a field more than the header has."
    )
