"""What every server of ours stands on: a database with one writer, limits of HTTP, tokens."""
