"""The maps of the evaluation data: names lead to them, and what is not here is named."""

import pytest

from hazemap.errors import FileError, InputError
from research.compare.evaluation_datasets import evaluation_datasets, known_datasets


def test_maps_that_need_no_data_are_those_of_the_wheel_and_known_by_the_same_names():
    for name, entry in known_datasets(None).items():
        if entry.kind == "maps" and not entry.needs_data:
            assert evaluation_datasets().map(name).people > 1_000


def test_a_map_that_needs_data_says_which_do_not():
    with pytest.raises(InputError, match=r"--data FOLDER.*city, gaussian-20.*--map NAME=FILE"):
        evaluation_datasets().map("twitter")
    with pytest.raises(InputError, match="there are city"):
        evaluation_datasets().map("atlantis")


def test_a_table_has_no_pixels():
    with pytest.raises(InputError, match="two-humps is a table"):
        evaluation_datasets().map("two-humps/64")


def test_a_folder_without_the_data_is_named(tmp_path):
    with pytest.raises(FileError, match="dpbench_2d_histograms_256"):
        evaluation_datasets(tmp_path).map("twitter")
    with pytest.raises(FileError, match="synthetic_city"):
        evaluation_datasets(tmp_path).map("city")


def test_the_evaluation_data_has_the_people_it_says(shared):
    atlas = evaluation_datasets(shared / "data")
    assert atlas.map("twitter").people == 193_563 and atlas.map("stroke").side == 256
    assert atlas.map("gowalla").people == 138_957
    assert evaluation_datasets(shared).map("new-york").people == 54_565_579
