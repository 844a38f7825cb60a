"""Tests of the shuffler."""
