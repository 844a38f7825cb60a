"""`hazemap inspect`."""

import pyarrow.parquet as pq
import pytest

from hazemap.errors import TranscriptMismatch
from hazemap.releases import Release


def test_the_statement_and_the_queries_are_shown(release, hazemap):
    done = hazemap("inspect", "map.parquet")
    assert done.code == 0
    for words in ("Protected   a person", "Budget      ε = 1", "Counts", "standard error"):
        assert words in done.out
    facts = hazemap("inspect", "map.parquet", "--json").json
    assert 0.99 < sum(query["share"] for query in facts["queries"]) < 1 + 1e-9
    assert all(query["price"] == f"ε = {query['share']:.6g}" for query in facts["queries"])
    assert facts["statement"]["dataset"] == "visits"


@pytest.mark.parametrize(("method", "asks"), [("privtree", "Growth"), ("kd-tree", "MedianSplitScores")])
def test_questions_that_are_no_sums_are_shown_and_replayed(method, asks, visits, hazemap):
    box = "--box=13.2,52.4,13.6,52.6"
    made = hazemap(
        *f"release visits.parquet --person person --epsilon 1 {box} --method {method} -o map.parquet".split()
    )
    assert made.code == 0, made.err
    done = hazemap("inspect", "map.parquet", "--replay")
    assert done.code == 0 and asks in done.out


def test_a_replay_gives_the_same_numbers(release, hazemap):
    done = hazemap("inspect", "map.parquet", "--replay")
    assert done.code == 0
    assert "Replayed: the stored answers give exactly these numbers." in done.out
    assert hazemap("inspect", "map.parquet", "--replay", "--json").json["replayed"]


def test_a_replay_that_gives_other_numbers_is_an_error(release, hazemap, monkeypatch):
    def other(self, prices):
        raise TranscriptMismatch("other numbers")

    monkeypatch.setattr(Release, "replay", other)
    done = hazemap("inspect", "map.parquet", "--replay")
    assert (done.code, done.out) == (4, "")
    assert "other numbers" in done.err


def test_a_number_that_was_changed_is_noticed(release, hazemap, tmp_path):
    path = tmp_path / "map.parquet"
    table = pq.read_table(path)
    counts = table.column("best_guess").to_numpy().copy()
    counts[0] += 100
    changed = table.set_column(table.column_names.index("best_guess"), "best_guess", [counts])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    done = hazemap("inspect", "map.parquet")
    assert (done.code, done.out) == (2, "")
    assert "damaged" in done.err or "no release" in done.err
