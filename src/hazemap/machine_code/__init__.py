"""Compiled loops and their cache, array types, hash indexes, and work in several threads."""
