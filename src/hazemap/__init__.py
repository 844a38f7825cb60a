"""Publish where people are without publishing anyone."""

__version__ = "0.1.0"
