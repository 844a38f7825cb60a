"""`hazemap demo`."""

import pytest

from hazemap.releases import Release


def test_the_demo_ends_with_pictures_a_file_and_three_answers_beside_the_truth(hazemap, tmp_path, home):
    done = hazemap("demo", "--people", "5000", "--json")
    assert done.code == 0
    facts = done.json
    assert len(facts["questions"]) == 3
    for question in facts["questions"]:  # ten standard errors, in case luck is bad
        assert abs(question["best_guess"] - question["truth"]) < 10 * question["stddev"] + question["cut"] + 1
    for picture in facts["pictures"]:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert Release.open(tmp_path / facts["file"]).statement.dataset == "demo"
    assert not home.exists(), "the demo touched the ledger of its user"


@pytest.mark.slow
def test_the_demo_says_it_in_words_and_can_be_run_again(hazemap):
    for charges in (1, 2):
        done = hazemap("demo", "--people", "2000", "--folder", "toys/city")
        assert done.code == 0
        assert "2,000 people who do not exist" in done.out
        assert "toys/city/map.png" in done.out
        assert f"remembers {charges} charge(s), ε = {charges} in all" in done.err


def test_a_folder_that_cannot_be_made_is_said(hazemap, tmp_path):
    (tmp_path / "file").write_text("")
    done = hazemap("demo", "--folder", "file/demo")
    assert (done.code, done.out) == (2, "")
    assert "file/demo cannot be made" in done.err


def test_files_that_no_demo_made_are_left_alone(hazemap, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "map.parquet").write_bytes(b"mine")
    done = hazemap("demo", "--folder", "mine")
    assert (done.code, done.out) == (2, "")
    assert "has a map.parquet that no demo made" in done.err
    assert (tmp_path / "mine" / "map.parquet").read_bytes() == b"mine"
