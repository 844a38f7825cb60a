"""Noise and money."""
