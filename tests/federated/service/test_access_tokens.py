"""Tokens in files."""

import stat

import pytest

from hazemap.errors import FileError
from hazemap.federated.service.access_tokens import fresh, kept, same, token_file


def test_a_token_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    path = tmp_path / "operator.token"
    token = token_file(path)
    assert token_file(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["operator.token"]


def test_a_file_that_holds_no_token_is_not_replaced(tmp_path):
    path = tmp_path / "operator.token"
    path.write_text("short")
    with pytest.raises(FileError, match="remove it"):
        token_file(path)
    assert path.read_text() == "short"


def test_a_folder_that_is_missing_is_said(tmp_path):
    with pytest.raises(FileError, match="cannot be read or made"):
        token_file(tmp_path / "nowhere" / "operator.token")


def test_secrets_are_compared_by_their_hashes():
    one, other = fresh(), fresh()
    assert one != other
    assert same(one, one)
    assert not same(one, other)
    assert one.encode() not in kept(one)
