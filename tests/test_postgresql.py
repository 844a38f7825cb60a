"""URLs of PostgreSQL: what is taken, and what is refused without being shown."""

import builtins

import pytest

from hazemap import postgresql
from hazemap.errors import HazemapError, InputError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///ledger",
        "postgres://ann@db.example:5433/ledger?sslmode=verify-full",
        "postgresql://db.example/ledger?service=team&passfile=/run/pgpass",
        "postgresql://ann@one.example:5432,two.example:5432/ledger?target_session_attrs=read-write",
    ],
)
def test_urls_without_secrets_are_taken(url) -> None:
    assert postgresql.checked_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cr3t@db.example/ledger",
        "postgresql://ann:@s3cr3t.example/ledger",
        "postgresql://ann:s3cr3t@one.example,two.example/ledger",
        "postgresql://ann:a@s3cr3t@db.example/ledger",
        "postgresql://db.example/ledger?password=s3cr3t",
        "postgresql://db.example/ledger?PASSWORD=s3cr3t",
        "postgresql://db.example/ledger?p%61ssword=s3cr3t",
        "postgresql://db.example/ledger?sslmode=require&sslpassword=s3cr3t",
        "postgresql://[s3cr3t/ledger",
        "postgresql://db.example/ledger#s3cr3t",
        "postgresql://db.example/led\nger?s3cr3t",
        "mysql://ann:s3cr3t@db.example/ledger",
    ],
)
def test_a_url_with_a_password_or_of_nothing_is_refused_and_not_shown(url) -> None:
    with pytest.raises(InputError) as caught:
        postgresql.checked_url(url)
    assert "s3cr3t" not in str(caught.value)


def test_who_has_no_driver_is_told_how_to_get_it(monkeypatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest):
        if name == "psycopg":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HazemapError, match=r"hazemap\[postgresql\]"):
        postgresql.connect("postgresql:///ledger")
