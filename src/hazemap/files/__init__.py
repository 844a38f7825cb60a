"""Files that appear whole or not at all, small texts, numbers as text, and the pages of Parquet files."""
