"""An answer of a study in a notebook: intervals, who is missing, what is left; and still a data frame."""

import pickle

import pandas as pd
from tests.federated.server.asking_studies import recipe
from tests.federated.study.test_study import study
from tests.releases.test_notebook_table import Seen, printed

from hazemap.errors import HazemapError
from hazemap.federated.study.study import AnswerTable

ASKED = recipe(tokens=("hello", "world"), minimum_cohort=2_000)


def test_a_notebook_shows_counts_with_intervals_and_what_is_left():
    own = study()
    frame = own.ask(ASKED)
    for text in (Seen(frame._repr_html_()).text, printed(frame)):
        assert "3,000 people answered" in text
        assert "95 % interval" in text
        assert f"Left of the study's budget: {own.left}" in text
        assert "Without an answer" in text
        assert "Promise: " in text
        assert "hello" in text and "±" not in text and " … " in text
    assert "ε" in Seen(own.left._repr_html_()).text and str(own.left.reports) in printed(own.left)


def test_what_is_left_is_that_after_the_question_and_reading_it_fails_no_answer(monkeypatch):
    own = study()
    assert own.ask(ASKED).attrs["left"] == str(own.left)

    def nobody(self: object) -> None:
        raise HazemapError("the server went away")

    monkeypatch.setattr(type(own.trust), "left", nobody)
    frame = own.ask(ASKED)
    assert "left" not in frame.attrs
    assert "Left of" not in frame._repr_html_()


def test_it_is_a_data_frame_in_every_respect(tmp_path):
    frame = study().ask(ASKED)
    first = frame.sort_values("count", ascending=False).head(1)
    assert isinstance(first, AnswerTable) and "hello" in first._repr_html_() and "world" not in printed(first)
    assert "3,000 people answered" in first._repr_html_()
    frame.to_parquet(tmp_path / "answer.parquet")
    assert pd.read_parquet(tmp_path / "answer.parquet")["count"].tolist() == frame["count"].tolist()
    again = pickle.loads(pickle.dumps(frame))
    assert again.equals(frame) and again._repr_html_() == frame._repr_html_()
    assert "<table" in frame[["word", "count"]]._repr_html_(), "of an ordinary frame"
    assert "hello" in printed(frame[["word", "count"]])
    assert frame.head(0)._repr_html_()


def test_a_file_of_answers_is_shown_with_its_prices(tmp_path):
    own = study()
    own.ask(ASKED)
    made = own.release(tmp_path / "answers.parquet")
    text = Seen(made._repr_html_()).text
    assert "hello" in text and "without an answer" in text
    assert "Round 1" in text and "ε₀" in text
    assert "95 % interval" in printed(made)


def test_labels_from_devices_become_no_markup():
    frame = study().ask(ASKED)
    frame["word"] = "<script>alert(1)</script>\x1b[31m"
    assert "<script" not in frame._repr_html_() and "\x1b" not in printed(frame)
    odd = frame.rename(columns={"word": "<b onclick=x>"})
    assert "<b onclick" not in odd._repr_html_()
