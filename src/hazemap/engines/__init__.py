"""What counts rows: DuckDB with compiled loops, Spark with the same ones, or NumPy in memory, behind one contract."""
