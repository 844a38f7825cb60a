"""Files that appear whole or not at all, numbers as text, and the pages of Parquet files."""
