"""Sabotaged builds: each breaks the running package in one way that has happened somewhere, to test an audit with.

A plant is a module with one context manager, `planted()`. It is only ever entered in a process of its own
(`audit.subprocess_runs.Laboratory`), and says in its docstring what it breaks and who is exposed by it.
"""

from hazemap.errors import InputError

PLANTS: dict[str, str] = {
    "half-width-noise": "noise half as wide as the budget buys",
    "low-sensitivity": "a rule of k rows says that a person moves k − 1 votes",
    "skipped-charge": "every third charge is not in the ledger",
    "unpaid-cells": "cells are cut where people are, without asking with noise",
    "float16-noise": "noise passes through 16-bit floating point",
    "sniffed-dialect": "a CSV file's dialect is guessed from its rows",
    "merged-ids": "ids that look alike are one person",
    "shared-cohort": "rounds are paid by cohorts that are the same people",
    "unpaid-threshold": "how fine cells are depends on the exact number of people",
    "reused-noise": "noise is cut from a pool that was drawn once",
}
"""The sabotages there are, and what they do."""


def known(name: str) -> str:
    """The name of a plant; `InputError` if there is none."""
    if name not in PLANTS:
        raise InputError(f"a planted fault is one of: {', '.join(PLANTS)}; found {name!r}")
    return name
