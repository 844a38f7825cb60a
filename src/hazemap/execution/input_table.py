"""The table of a specification, opened; and whether a file is still the one that it was."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hazemap.engines.duckdb import EngineTable
from hazemap.errors import FileError
from hazemap.readers.file_formats import files_of
from hazemap.readers.open_table import open_table
from hazemap.specs.method_names import reach
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.tables.keyed_hash import SamplingKey
from hazemap.temporal.time_slots import moment

Progress = Callable[[str, float | None], None]
"""Is told what is being done now, and which part of it is done, 0 to 1, where that is known."""


def opened(
    spec: ReleaseSpec | StatisticsSpec, source: Any, key: SamplingKey, memory_limit: int | None, say: Progress
) -> EngineTable:
    """The table that a specification is about; `source` where it lies in memory."""
    of = spec.table
    own: dict[str, Any]
    if isinstance(spec, ReleaseSpec):
        own = {"value": spec.value, "box": reach(spec.algorithm), "since": of.since, "until": of.until}
    else:
        since, until = (None if time is None else moment(spec.time_zone, time) for time in of.window)
        own = {"measured": spec.value, "timed": spec.timeslots.timed, "box": spec.reach, "since": since, "until": until}
    say("opening the table", None)
    return open_table(
        source if of.source is None else of.source,
        person=of.person,
        lon=of.lon,
        lat=of.lat,
        time=of.time,
        dialect=of.dialect,
        key=key,
        memory_limit=memory_limit,
        progress=lambda part: say("reading rows", part),
        **own,
    )


def fingerprint(source: str | None) -> str | None:
    """The names, sizes and times of change of the files of a source, as a digest; None for a table in memory."""
    if source is None:
        return None
    files: list[str] = []
    with suppress(FileError):  # nothing is there: whoever opens it says so
        files = files_of(source)
    try:
        stats = [(file, Path(file).stat()) for file in files]
    except OSError as error:
        raise FileError(f"{source} cannot be read ({error.strerror})") from error
    told = repr([(name, each.st_size, each.st_mtime_ns) for name, each in stats])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
