"""Whatever the user has becomes a stream of rows: files and frames, columns, ids, points; DuckDB reads them."""
