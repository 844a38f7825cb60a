"""The table that a specification is about, and how to read it."""

from dataclasses import dataclass, field, replace
from typing import Any

from hazemap.errors import InputError
from hazemap.readers.csv_files import CsvDialect
from hazemap.sources.source import Address, Frame, parse_address
from hazemap.specs.spec_fields import Value
from hazemap.temporal.time_format import TimeFormat, checked_format

COLUMNS = ("source", "person", "lon", "lat", "cell_column", "time", "since", "until", "time_format")
DIALECT = ("delimiter", "encoding", "decimal", "multiline")
"""The names of a document that are about the table."""

USUAL_DIALECT = CsvDialect()


@dataclass(frozen=True)
class TableSpec:
    """Where a table is (a file, folder, pattern, or an address elsewhere), the columns that were named, and from when
    until when rows count.

    `source` and the `address` that it means are None for a table in memory, which nobody can open again from here.

    >>> TableSpec("visits.parquet", person="user").document
    {'source': 'visits.parquet', 'person': 'user'}
    """

    source: str | None
    person: str | None = None
    lon: str | None = None
    lat: str | None = None
    time: str | None = None
    since: str | None = None
    until: str | None = None
    dialect: CsvDialect = USUAL_DIALECT
    cell_column: str | None = None
    time_format: TimeFormat = "iso"
    address: Address | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in COLUMNS:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise InputError(f"{name} must be non-empty text; found {type(value).__name__}")
        checked_format(self.time_format)
        object.__setattr__(self, "address", None if self.source is None else parse_address(self.source))
        if self.cell_column is not None and (self.lon is not None or self.lat is not None):
            raise InputError("a row is in the H3 cell of --cell-column or at --lon and --lat: name one or the other")
        if not isinstance(self.dialect, CsvDialect):
            raise InputError(f"the dialect of a table must be a CsvDialect; found {type(self.dialect).__name__}")

    @classmethod
    def taken(cls, source: str | None, given: dict[str, Any]) -> "TableSpec":
        """Of the keywords of a call those about the table, which are taken out of them."""
        columns = {name: given.pop(name) for name in COLUMNS[1:] if name in given}
        signs = {name: given.pop(name) for name in DIALECT if name in given}
        return cls(source, **columns, dialect=replace(given.pop("dialect", USUAL_DIALECT), **signs))

    @property
    def document(self) -> dict[str, Value]:
        """The names that are not left out, and how CSV files are written where that is not as usual."""
        named = {name: value for name in COLUMNS if (value := getattr(self, name)) is not None}
        if self.time_format == "iso":
            del named["time_format"]
        told = {name: getattr(self.dialect, name) for name in DIALECT}
        return named | {name: value for name, value in told.items() if value != getattr(USUAL_DIALECT, name)}

    @property
    def dataset(self) -> str:
        """The data set that the table belongs to, unless somebody says otherwise."""
        return Frame.dataset if self.address is None else self.address.dataset

    @property
    def window(self) -> tuple[str | None, str | None]:
        """From when, and until before when, rows count."""
        return self.since, self.until

    @property
    def times(self) -> str:
        """How the times of rows are written, and what becomes of others.

        >>> TableSpec("visits.csv", time_format="seconds").times
        'seconds since 1970; a row with any other time is in no slot and no window, and nothing says how many'
        """
        how = "ISO 8601, dates and timestamps" if self.time_format == "iso" else f"{self.time_format} since 1970"
        return f"{how}; a row with any other time is in no slot and no window, and nothing says how many"

    @property
    def when(self) -> str:
        """The window in words; empty without one."""
        return " ".join(
            f"{word} {time}" for word, time in zip(("from", "until before"), self.window, strict=True) if time
        )
