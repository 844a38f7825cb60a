"""Executes a run: from a specification and a table to a charge, answers, and a file."""
