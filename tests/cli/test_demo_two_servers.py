"""`hazemap demo two-servers`."""

from pathlib import Path

import pytest

from hazemap.releases import Release


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("unhurried")
def test_the_demo_ends_with_a_map_by_two_servers_and_leaves_the_ledger_alone(hazemap, tmp_path, home):
    options = ("--people", "200", "--processes", "1", "--drop", "0", "--folder", "two", "--json")
    done = hazemap("demo", "two-servers", *options)
    assert done.code == 0, done.err
    made = Release.open(Path(tmp_path) / "two" / "map.parquet")
    assert {answer.people for _, answer in made.transcript} == {200}
    assert done.json["rounds"][0]["survivors"] == 200
    assert "must not work together" in " ".join(made.statement.assumptions)
    for party in ("leader", "helper"):
        assert "of 200 reports" in (Path(tmp_path) / "two" / f"{party}.log").read_text()
    assert not home.exists(), "the demo touched the ledger of its user"


def test_the_demo_knows_two_ways(hazemap, tmp_path):
    done = hazemap("demo", "two-servers", "--people", "200", "--folder", "two", "--trust", "shuffled")
    assert done.code != 0 and "given" in done.err
    assert "Traceback" not in done.err
