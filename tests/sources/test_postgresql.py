"""PostgreSQL's driver, and what is said where there is none."""

import builtins

import pytest

from hazemap.errors import HazemapError
from hazemap.sources import postgresql


def test_who_has_no_driver_is_told_how_to_get_it(monkeypatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest):
        if name == "psycopg":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HazemapError, match=r"hazemap\[postgresql\]"):
        postgresql.connect("postgresql:///ledger")
