"""What counts rows: DuckDB with compiled loops, or NumPy in memory, behind one contract."""
