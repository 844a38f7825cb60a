"""A URL of a table says where it is, and nothing that has to be kept secret."""

import pytest

from hazemap.cli.main import main
from hazemap.errors import InputError
from hazemap.readers.postgresql_url import TableUrl, absolute, is_database
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.table_spec import TableSpec, named_after

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("text", "database", "table", "name"),
    [
        ("postgresql://h/db?table=visits", "postgresql://h/db", "visits", "visits"),
        ("postgres://ann@h:5/db?table=Trips.Visits", "postgresql://ann@h:5/db", "Trips.Visits", "visits"),
        ("postgresql:///?service=city&table=v", "postgresql:///?service=city", "v", "v"),
        ("postgresql://a,b:7/db?table=v&sslmode=require", "postgresql://a,b:7/db?sslmode=require", "v", "v"),
        ("postgresql://[::1]:5432/db?table=v", "postgresql://[::1]:5432/db", "v", "v"),
        (
            'postgresql:///db?table="a;b"."My ""own"" table"',
            "postgresql:///db",
            '"a;b"."My ""own"" table"',
            'My "own" table',
        ),
        ("postgresql:///db?table=%22V%20V%22&host=%2Ftmp", "postgresql:///db?host=%2Ftmp", '"V V"', "V V"),
        ("postgresql:///db?table=straße", "postgresql:///db", "straße", "straße"),
    ],
)
def test_a_url_is_what_libpq_is_told_and_a_table(text, database, table, name):
    url = TableUrl.parse(text)
    assert (url.database, url.table, url.last_name) == (database, table, name)
    assert is_database(text) and absolute(text) == text and named_after(text) == name
    assert TableSpec(text).source == text


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
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_shown(text, capsys, home):
    for attempt in (TableUrl.parse, TableSpec, lambda each: ReleaseSpec.of(each, epsilon=1, box="0,0,1,1")):
        with pytest.raises(InputError) as refused:
            attempt(text)
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
        TableUrl.parse(text)


def test_paths_are_no_urls():
    assert not any(map(is_database, ["visits.parquet", "postgresql.csv", "./postgresql:x", "", None, 3]))
    assert absolute("visits.parquet").endswith("/visits.parquet")
