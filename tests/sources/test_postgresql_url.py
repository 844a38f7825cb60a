"""A URL of PostgreSQL says where a database or a table is, and nothing that has to be kept secret."""

import random

import pytest

from hazemap.cli.main import main
from hazemap.errors import InputError
from hazemap.federated.service.databases import database as server_database
from hazemap.privacy.ledger import Ledger
from hazemap.releases.gis.postgis_table import write_table
from hazemap.sources.postgresql import PARAMETERS, checked_url, driver, is_postgresql_url
from hazemap.sources.source import DatabaseTable, parse_source
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.table_spec import TableSpec

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("text", "database", "table", "names"),
    [
        ("postgresql://h/db?table=visits", "postgresql://h/db", "visits", ("visits",)),
        ("postgres://ann@h:5/db?table=Trips.Visits", "postgres://ann@h:5/db", "Trips.Visits", ("trips", "visits")),
        ("postgresql:///?service=city&table=v", "postgresql:///?service=city", "v", ("v",)),
        ("postgresql://a,b:7/db?table=v&sslmode=require", "postgresql://a,b:7/db?sslmode=require", "v", ("v",)),
        ("postgresql://[::1]:5432/db?table=v", "postgresql://[::1]:5432/db", "v", ("v",)),
        (
            'postgresql:///db?table="a;b"."My ""own"" table"',
            "postgresql:///db",
            '"a;b"."My ""own"" table"',
            ("a;b", 'My "own" table'),
        ),
        ("postgresql:///db?table=%22V%20V%22&host=%2Ftmp", "postgresql:///db?host=%2Ftmp", '"V V"', ("V V",)),
        ("postgresql:///db?table=straße", "postgresql:///db", "straße", ("straße",)),
        ("postgresql:///db?table=ÉCOLE", "postgresql:///db", "ÉCOLE", ("École",)),
    ],
)
def test_a_url_is_what_libpq_is_told_and_a_table(text, database, table, names):
    url = DatabaseTable.parse(text)
    assert (url.database, url.table, url.names) == (database, table, names)
    assert is_postgresql_url(text) and parse_source(text) == url == url.absolute and url.dataset == names[-1]
    assert TableSpec(text).source == text == str(url)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ann:{HIDDEN}@h/db?table=visits",
        f"postgres://ann:{HIDDEN}@h/db?table=visits",
        f"POSTGRESQL://ann:{HIDDEN}@h/db?table=visits",
        f"postgresql:/ann:{HIDDEN}@h/db?table=visits",
        f"postgresql:ann:{HIDDEN}@h/db?table=visits",
        f"postgresql://:{HIDDEN}@h/db?table=visits",
        f"postgresql://ann:{HIDDEN}@x@h/db?table=visits",
        f"postgresql://ann:a#{HIDDEN}@h/db?table=visits",
        f"postgresql://h/db?table=visits&password={HIDDEN}",
        f"postgresql://h/db?table=visits&PassWord={HIDDEN}",
        f"postgresql://h/db?table=visits&pass%77ord={HIDDEN}",
        f"postgresql://h/db?sslpassword={HIDDEN}&table=visits",
        f"postgresql://h/db?scram_client_key={HIDDEN}&table=visits",
        f"postgresql://h/db?oauth_client_secret={HIDDEN}&table=visits",
        f"postgresql://h/db?options=-cx={HIDDEN}&table=visits",
        f"postgresql://h/?dbname=password%3D{HIDDEN}&table=visits",
        f"postgresql://h/?dbname=postgresql://u:{HIDDEN}@h/db&table=visits",
        f"postgresql://h/password%3D{HIDDEN}?table=visits",
        f"postgresql://ann:{HIDDEN}@h/db",
        f"postgresql://ann:@{HIDDEN}.example/db?table=visits",
        f"postgresql://ann:{HIDDEN}@one.example,two.example/db?table=visits",
        f"postgresql://ann:{HIDDEN}?port=5@h/db&table=visits",
        f"postgresql://ann:{HIDDEN}?x@h/db?table=visits",
        f"postgresql://ann:a?{HIDDEN}@h/db?table=visits",
        f"postgresql://ann:a/{HIDDEN}@h/db?table=visits",
        f"postgresql://ann:{HIDDEN}/a@h/db?table=visits",
        f"postgresql://ann:{HIDDEN}/db?table=visits",
        f"postgresql://[{HIDDEN}/db?table=visits",
        f"postgresql://h/db\n{HIDDEN}?table=visits",
        f"postgresql://h/db?table=visits#{HIDDEN}",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_shown(text, capsys, home):
    attempts = [
        *(DatabaseTable.parse, TableSpec, lambda each: ReleaseSpec.of(each, epsilon=1, box="0,0,1,1")),
        *(checked_url, Ledger, server_database, lambda each: write_table(None, each)),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        for each in (text, text.replace("table=visits", "")):
            with pytest.raises(InputError) as refused:
                attempt(each)
            assert HIDDEN not in str(refused.value)
    assert main(["release", text, "--epsilon", "1", "--box=13,52,14,53", "-o", "map.parquet"]) == 2
    said = "".join(capsys.readouterr())
    assert HIDDEN not in said
    assert not home.exists() or not any(
        HIDDEN.encode() in each.read_bytes() for each in home.rglob("*") if each.is_file()
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("postgresql://ann:@h/db?table=visits", "pgpass"),
        ("postgresql://h/db", "name one table"),
        ("postgresql://h/db?table=a&table=b", "found 2"),
        ("postgresql://h/db?table=", "no name of a table"),
        ("postgresql://h/db?table=SELECT * FROM visits", "make a view of it"),
        ("postgresql://h/db?table=(SELECT 1)", "make a view of it"),
        ("postgresql://h/db?table=visits;DROP TABLE visits", "make a view of it"),
        ("postgresql://h/db?table=a.b.c", "no name of a table"),
        ('postgresql://h/db?table="a"b"', "no name of a table"),
        ("postgresql://h/db?query=SELECT 1", "make a view of it"),
        ("postgresql://h/db?sql=SELECT 1", "make a view of it"),
        ("postgresql://h/db?table=v&nonsense=1", "no parameter 'nonsense'"),
        ("postgresql://h/db?table", "NAME=VALUE"),
        ("postgresql://h/db?table=%ff", "UTF-8"),
        ("postgresql:h", "postgresql://host/database"),
    ],
)
def test_what_names_no_table_is_refused_in_words(text, why):
    with pytest.raises(InputError, match=why):
        DatabaseTable.parse(text)


def test_paths_are_no_urls():
    assert not any(map(is_postgresql_url, ["visits.parquet", "postgresql.csv", "./postgresql:x", "", None, 3]))
    assert str(parse_source("visits.parquet").absolute).endswith("/visits.parquet")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///ledger",
        "postgres://ann@db.example:5433/ledger?sslmode=verify-full",
        "postgresql://db.example/ledger?service=team&passfile=/run/pgpass",
        "postgresql://ann@one.example:5432,two.example:5432/ledger?target_session_attrs=read-write",
    ],
)
def test_urls_of_databases_are_taken_as_they_are(url):
    assert checked_url(url) == url and Ledger(url).place == url and server_database(url).url == url
    with pytest.raises(InputError, match="URL of a table"):
        checked_url(url + ("&" if "?" in url else "?") + "table=visits")


def test_libpq_finds_no_secret_in_a_url_that_is_taken():
    """20,000 random URLs: of those taken, libpq reads nothing but what may be said."""
    psycopg = pytest.importorskip("psycopg")
    signs = [*":@/?#&=,%[].", "ann", "h", "5", "password", "%40", "%3A", "%3D", "host=", "?port=5", "//", "db", ":1"]
    chance, taken = random.Random(23), 0
    for _ in range(20_000):
        url = "postgresql://" + "".join(chance.choices(signs, k=chance.randint(1, 9)))
        try:
            checked_url(url)
        except InputError:
            continue
        try:
            told = driver().conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            continue
        taken += 1
        assert set(told) <= PARAMETERS, url
    assert taken > 500
