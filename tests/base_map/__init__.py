"""Tests of the base map."""
