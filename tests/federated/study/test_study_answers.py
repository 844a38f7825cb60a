"""Answers of a study as a file: what is written, what is read back, what is refused."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.federated.server.asking_studies import recipe, study

import hazemap
from hazemap.errors import FileError, InputError
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.server.study_statement import study_statement
from hazemap.federated.study.study_answers import RoundAnswer, StudyAnswers
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.statement import Statement
from hazemap.queries.noisy_queries import Answer
from hazemap.releases import Release, check_whole

WORDS = recipe()
OTHER = replace(recipe("lines"), features=(Feature("count", Categories(("few", "many"))), *WORDS.features))


def answer(asked, people=900):
    return Answer(np.arange(asked.size) * 100, np.linspace(9, 11, asked.size), 0.1, people)


def written(file) -> None:
    answers().save(file)


@pytest.fixture
def made() -> StudyAnswers:
    return answers()


def answers() -> StudyAnswers:
    asked = [(1, WORDS), (3, OTHER)]
    paid = [(Fraction(4), Fraction(1, 10**6))] * 3
    rounds = tuple(RoundAnswer(number, each, answer(each)) for number, each in asked)
    return StudyAnswers("spring", rounds, study_statement(study(), paid, asked, {2}))


def test_what_was_written_is_read_back_by_whatever_opens_releases(made, tmp_path):
    made.save(tmp_path / "a.parquet")
    made.save(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    back = hazemap.open(tmp_path / "a.parquet")
    assert isinstance(back, StudyAnswers)
    assert (back.study, back.statement, back.confidence) == (made.study, made.statement, 0.95)
    assert [(each.round, each.recipe) for each in back.rounds] == [(1, WORDS), (3, OTHER)]
    assert back.to_dataframe().equals(made.to_dataframe())
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["round", "word", "count_", "none", "count", "standard_error", "low", "high"]
    assert table.to_pandas().equals(made.to_dataframe())
    label = json.loads(pq.read_metadata(tmp_path / "a.parquet").metadata[b"hazemap"])
    assert (label["kind"], label["rounds"][1]["digest"], label["rounds"][0]["people"]) == ("answers", OTHER.digest, 900)
    assert Statement.from_json(label["statement"]) == made.statement


def test_lines_are_bins_with_labels_and_people_without_an_answer_stand_apart(made):
    frame = made.to_dataframe(0.99)
    words = frame[frame["round"] == 1]
    assert len(words) == WORDS.size and words["none"].sum() == 1
    assert words["none"].iloc[-1] and words["word"].iloc[-1] == ""
    assert set(words["count_"]) == {""} and set(frame[frame["round"] == 3]["count_"]) >= {"", "few", "many"}
    wide = (frame["high"] - frame["count"]) / frame["standard_error"]
    assert np.allclose(wide[frame["count"] >= 0], 2.576, atol=0.05)
    assert ((frame["low"] <= frame["count"]) & (frame["count"] <= frame["high"])).all()
    assert (frame["low"] >= np.minimum(frame["count"], 0)).all(), "nobody can be fewer than none"
    assert made.of_round(3).recipe == OTHER
    with pytest.raises(InputError, match="holds round 1, 3; found 2"):
        made.of_round(2)


def test_the_statement_says_what_all_rounds_cost_and_what_is_left_out(made):
    said = made.statement
    assert said.budget == ApproxDP(12, Fraction(3, 10**6)), "of three rounds, of which two are in the file"
    text = said.text()
    for words in (
        "exchanged for any others",
        "the sum of what each round may cost",
        "one report a person and round (sensitivity: L1 = 2, L2² = 2 votes)",
        "bits flipped by each person",
        "left out of this file: round 2",
        f"SHA-256 {OTHER.digest}",
        "ε₀ = 4 at most",
        "the reports of",
    ):
        assert words in text, words
    assert "spent as" not in text and "Laplace" not in text
    assert said.circumstances.cohort.local_epsilon == 4


def test_whoever_checks_the_file_finds_every_changed_byte_of_its_footer(made, tmp_path):
    file = tmp_path / "a.parquet"
    made.save(file)
    check_whole(file)
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for at in np.random.default_rng(2).integers(footer, len(content), 40).tolist():
        changed = bytearray(content)
        changed[at] ^= 1 + at % 2
        file.write_bytes(changed)
        try:
            check_whole(file)
        except FileError:
            continue
        key = content.index(b"hazemap.bytes")
        assert key <= at < key + len(b"hazemap.bytes"), "older files have no digest of all bytes"


def test_damage_a_foreign_file_and_another_kind_are_refused(made, tmp_path):
    file = tmp_path / "a.parquet"
    made.save(file)
    with pytest.raises(FileError, match="answers of a study"):
        Release.open(file)
    table, metadata = pq.read_table(file), pq.read_metadata(file).metadata
    changed = table.set_column(4, "count", [table["count"].to_numpy() + 1])
    pq.write_table(changed.replace_schema_metadata(metadata), tmp_path / "changed.parquet")
    with pytest.raises(FileError, match="damaged"):
        hazemap.open(tmp_path / "changed.parquet")
    label = json.loads(metadata[b"hazemap"])
    newer = {**metadata, b"hazemap": json.dumps({**label, "format": 4}).encode()}
    pq.write_table(table.replace_schema_metadata(newer), tmp_path / "newer.parquet")
    with pytest.raises(FileError, match="open it with a newer"):
        hazemap.open(tmp_path / "newer.parquet")
    content, refused = bytearray(file.read_bytes()), 0
    for place in range(0, len(content), len(content) // 40):
        broken = content.copy()
        broken[place] ^= 0xFF
        (tmp_path / "broken.parquet").write_bytes(broken)
        try:  # there are bytes of Parquet that nobody reads
            back = hazemap.open(tmp_path / "broken.parquet")
        except FileError:
            refused += 1
        else:
            assert back.to_dataframe().equals(made.to_dataframe()) and back.statement == made.statement
    assert refused > 20
    with pytest.raises(FileError, match=r"saved as \.parquet"):
        made.save(tmp_path / "a.csv")


def test_a_file_appears_whole_or_not_at_all(made, tmp_path, monkeypatch):
    file = tmp_path / "a.parquet"
    file.write_text("older")

    def full(*_: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(pq.ParquetWriter, "add_key_value_metadata", full)
    with pytest.raises(FileError, match="free some space"):
        made.save(file)
    assert file.read_text() == "older" and list(tmp_path.iterdir()) == [file]


def test_an_export_has_the_statement_beside_it(made, tmp_path):
    made.export(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "round,word,count_,none,count,standard_error,low,high"
    said = json.loads((tmp_path / "a.csv.statement.json").read_text())
    assert Statement.from_json(said) == made.statement
    with pytest.raises(FileError, match=r"\.csv"):
        made.export(tmp_path / "a.geojson")
