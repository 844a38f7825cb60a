"""A release as a table of PostGIS: whole or not at all, with its statement, and under the name by which it is read."""

import json

import pytest
import shapely
from tests.federated.server.postgres import cluster

from hazemap.errors import FileError, InputError
from hazemap.readers.postgresql_tables import open_database
from hazemap.releases.gis.postgis_table import write_table
from hazemap.sources.source import DatabaseTable


@pytest.mark.parametrize(
    "wrong",
    [
        "mysql://h/d?table=t",
        "postgresql://h/d",
        "postgresql://h/d?table=",
        "postgresql://h/d?table=a&table=b",
        "postgresql://h/d?table=.t",
        "postgresql://h/d?table=" + "ä" * 32,
        "postgresql://h/d?table=a%00b",
    ],
)
def test_an_address_that_is_none_is_refused(wrong, release):
    with pytest.raises(InputError):
        write_table(release, wrong)


@pytest.fixture(scope="module")
def base():
    """A database with PostGIS, and one without."""
    psycopg = pytest.importorskip("psycopg")
    with cluster() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            try:
                connection.execute("CREATE EXTENSION postgis")
            except psycopg.Error:
                pytest.skip("PostGIS is not here: apt-get install postgresql-15-postgis-3")
            connection.execute("CREATE DATABASE plain")
        yield url


def answers(url, question):
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(question).fetchall()


@pytest.mark.slow
def test_the_table_has_every_cell_its_outline_and_the_statement(base, any_release):
    quoted = '"cells""; drop table x"'
    [(name, rows)] = write_table(any_release, f"{base}&table={quoted}", replace=True)
    frame = any_release.to_geodataframe()
    assert (name, rows) == (quoted, len(frame))
    [(count, people, area, srid)] = answers(
        base, f'SELECT count(*), sum("best_guess"), sum(ST_Area(geometry)), min(ST_SRID(geometry)) FROM {quoted}'
    )
    assert (count, srid) == (len(frame), 4326)
    assert people == pytest.approx(frame["best_guess"].sum())
    assert area == pytest.approx(shapely.area(frame.geometry.values).sum())
    [(comment,)] = answers(base, f"SELECT obj_description('{quoted}'::regclass)")
    line, _, rest = comment.partition("\n")
    assert line == any_release.statement.line()
    assert json.loads(rest) == any_release.statement.to_json()


@pytest.mark.slow
def test_a_table_that_is_there_stays_unless_it_is_to_be_replaced(base, release, nested_release):
    url = base + "&table=public.kept"
    write_table(release, url)
    with pytest.raises(FileError, match="already"):
        write_table(nested_release, url)
    assert answers(base, "SELECT count(*) FROM kept") == [(256,)]
    write_table(nested_release, url, replace=True)
    assert answers(base, "SELECT count(*) FROM kept") == [(len(nested_release.ground.places),)]


@pytest.mark.slow
def test_what_fails_in_the_middle_changes_nothing(base, release, nested_release, monkeypatch):
    url = base + "&table=middle"
    write_table(release, url)

    def torn(most):
        yield from list(type(nested_release).rows(nested_release, 2))[:3]
        raise KeyboardInterrupt

    object.__setattr__(nested_release, "rows", torn)
    with pytest.raises(KeyboardInterrupt):
        write_table(nested_release, url, replace=True)
    assert answers(base, "SELECT count(*) FROM middle") == [(256,)]
    assert answers(base, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hazemap'") == [(0,)]


@pytest.mark.slow
def test_a_server_that_refuses_is_told_in_words(base, release):
    with pytest.raises(FileError, match="no PostGIS"):
        write_table(release, base.replace("/postgres?", "/plain?") + "&table=t")
    with pytest.raises(FileError, match="nothing was changed there"):
        write_table(release, base + "&table=nowhere.t")
    with pytest.raises(FileError, match="nothing was changed there"):
        write_table(release, "postgresql:///d?host=/nonexistent&table=t")


@pytest.mark.slow
def test_a_table_is_read_by_the_url_that_it_was_exported_to(base, release):
    for name, kept in (("Kept_As_Read", "kept_as_read"), ('public."Kept As Read"', "Kept As Read")):
        write_table(release, f"{base}&table={name}")
        assert open_database(DatabaseTable.parse(f"{base}&table={name}")).name == f"the table {name} in PostgreSQL"
        assert answers(base, f"SELECT count(*) FROM pg_class WHERE relname = '{kept}'") == [(1,)]
