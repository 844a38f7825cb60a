"""Several analysers, each with a token in a file of its own."""

import pytest

from hazemap.errors import InputError
from hazemap.federated.service.access_tokens import named
from hazemap.federated.shuffler.analyser_client import FIRST, AnalyserTokens


def test_each_has_a_file_that_only_its_owner_reads_and_the_same_after_a_restart(tmp_path):
    tokens = AnalyserTokens(tmp_path, ("anna", FIRST))
    first = dict(tokens())
    assert set(first) == {"anna", FIRST} and len(set(first.values())) == 2
    assert tokens.path(FIRST) == tmp_path / "analyser.token"
    assert {tokens.path(name).stat().st_mode & 0o077 for name in first} == {0}
    assert dict(AnalyserTokens(tmp_path, (FIRST, "anna", "ben"))()).items() >= first.items()


def test_a_token_ends_with_its_file_and_with_its_name(tmp_path):
    tokens = AnalyserTokens(tmp_path, ("anna", "ben"))
    anna = tokens()["anna"]
    assert named(tokens(), anna) == "anna" and named(tokens(), "") is None
    tokens.path("anna").write_text("short")
    assert named(tokens(), "short") is None, "what is no token opens nothing"
    tokens.path("anna").write_bytes(b"\xff" * 40)
    assert set(tokens()) == {"ben"}
    tokens.path("anna").unlink()
    assert named(tokens(), anna) is None
    again = AnalyserTokens(tmp_path, ("anna", "ben"))()
    assert again["anna"] != anna
    assert set(AnalyserTokens(tmp_path, ("ben",))()) == {"ben"}


@pytest.mark.parametrize("names", [(), ("a", "a"), ("../up",), ("",), ("a b",), ("x" * 65,), ('a"', "b"), ("ü",)])
def test_names_are_plain_words_and_each_is_there_once(tmp_path, names):
    with pytest.raises(InputError):
        AnalyserTokens(tmp_path, names)
    assert not list(tmp_path.iterdir())
