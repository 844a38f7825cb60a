"""Empirical lower bounds on the privacy that a release gives."""
