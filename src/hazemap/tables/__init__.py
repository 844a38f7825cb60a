"""Rows, and the person each belongs to: contribution bounding and what it leaves."""
