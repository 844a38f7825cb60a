"""Parquet files as batches of Arrow, for the columns that DuckDB refuses as a whole where one value is not sound."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from hazemap.engines.duckdb_connection import BATCH
from hazemap.readers.invalid_values import sound


@dataclass(frozen=True)
class ParquetFiles:
    """Files that declare the same columns, one after the other. Memory is O(row group), of the columns asked for."""

    files: tuple[str, ...]
    columns: tuple[str, ...]

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, with sound values alone."""
        import pyarrow
        from pyarrow import parquet

        for file in self.files:
            with parquet.ParquetFile(file) as opened:
                for batch in opened.iter_batches(BATCH, columns=list(columns)):
                    arrays = [_plain(batch.column(name)) for name in columns]
                    yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain(column: Any) -> Any:
    """A sound column, the words of a dictionary written out, and points as they are stored."""
    import pyarrow

    if getattr(column.type, "extension_name", "").startswith("geoarrow"):
        return column.storage
    found = sound(column)
    return found.dictionary_decode() if pyarrow.types.is_dictionary(found.type) else found
