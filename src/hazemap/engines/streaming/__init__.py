"""Rows on their way to votes: compiled loops that keep what the bounding rules keep of each person."""
