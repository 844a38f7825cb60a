"""Data frames of pandas: columns of one type as they are, columns of Python objects value by value as text."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hazemap.engines.duckdb_connection import BATCH, DuckDBConnection
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource, named_numbers
from hazemap.errors import TableError
from hazemap.readers.invalid_values import sound

NAME = "the table"


@dataclass(frozen=True)
class PandasFeed:
    """The columns of a frame, those of objects as text and as numbers. A column is converted when it is first read."""

    typed: Mapping[str, Any]
    loose: Mapping[str, Any]
    made: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def numbers(self) -> dict[str, str]:
        """The columns of objects, and what the numbers in them are called."""
        names = named_numbers([*self.typed, *self.loose])
        return {name: names[name] for name in self.loose}

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a row."""
        return (*self.typed, *self.loose, *self.numbers.values())

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns."""
        import pyarrow

        table = pyarrow.table({column: self._column(column) for column in columns})
        yield from table.to_batches(max_chunksize=BATCH)

    def _column(self, name: str) -> Any:
        import pyarrow

        from hazemap.readers.mixed_type_values import numbers_of

        if name in self.typed:
            return self.typed[name]
        if name not in self.made:
            if name in self.loose:
                self.made[name] = _texts(self.loose[name])
            else:
                text = next(text for text, numbers in self.numbers.items() if numbers == name)
                self.made[name] = pyarrow.array(numbers_of(self._column(text).to_pylist()))
        return self.made[name]


def open_pandas(
    connection: DuckDBConnection, frame: Any, beside: Mapping[str, Any] | None = None, geometry: Geometry | None = None
) -> TableSource:
    """The table in a data frame, with other columns beside its own; `TableError` for two columns of one name.

    Which columns hold objects is what the frame declares: whether the values in them are of one type or of several,
    changes nothing about how each is read.
    """
    import pyarrow

    names = [str(name) for name in frame.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise TableError(f"the data frame has two columns called {twice[0]!r}; rename one")
    typed, loose = dict(beside or {}), {}
    for place, name in enumerate(names):
        series = frame.iloc[:, place]
        if _holds_objects(series.dtype):
            loose[name] = series
            continue
        try:
            column = pyarrow.array(series, from_pandas=True)
        except (pyarrow.ArrowException, TypeError):
            continue  # a type that Arrow does not have: nothing here could use it
        if not isinstance(column.type, pyarrow.BaseExtensionType):
            decoded = column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column
            typed[name] = sound(decoded)
    if not loose:
        connection.register("rows", pyarrow.table(typed))
        return TableSource(NAME, (SourcePart("rows", connection.kinds("rows", NAME)),), len(frame), geometry)
    feed = PandasFeed(typed, loose)
    schema = pyarrow.schema([(name, column.type) for name, column in typed.items()])
    kinds = connection.kinds_of(schema, NAME) if typed else {}
    kinds |= dict.fromkeys(loose, "VARCHAR")
    return TableSource(NAME, (SourcePart(FED, kinds, feed, feed.numbers),), len(frame), geometry)


def _holds_objects(kind: Any) -> bool:
    """Whether a type of pandas stores objects of Python, each of which may be anything: texts may be no Unicode."""
    held = getattr(getattr(kind, "categories", None), "dtype", kind)
    return str(held) == "object" or getattr(held, "storage", None) == "python"


def _texts(series: Any) -> Any:
    """The text of each value: all at once where all are texts, which gives the same."""
    import pyarrow

    from hazemap.readers.mixed_type_values import text_of

    values = series.astype(object)
    try:
        return pyarrow.array(values, type=pyarrow.large_string(), from_pandas=True)
    except (pyarrow.ArrowException, TypeError, UnicodeEncodeError):
        return pyarrow.array([text_of(value) for value in values], type=pyarrow.large_string())
