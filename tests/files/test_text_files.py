"""Small files that people write are read in one way, and refused in words that name the file and its purpose."""

import pytest

from hazemap.errors import FileError, InputError
from hazemap.files.text_files import read_text, toml_table


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_a_text_is_the_same_with_a_byte_order_mark_and_with_any_newline(tmp_path, mark, newline):
    (tmp_path / "a.toml").write_bytes(mark + newline.join([b"days = 30", 'of = "Köln"'.encode(), b""]))
    text = read_text(tmp_path / "a.toml", "the policy")
    assert text == 'days = 30\nof = "Köln"\n'
    assert toml_table(text, "the policy", 100) == {"days": 30, "of": "Köln"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere", "No such file"),
        ("", "Is a directory"),
        ("long", "more than 9 bytes"),
        ("latin", "no text in UTF-8"),
        ("a\0b", "no name that a file can have"),
    ],
)
def test_a_file_that_is_no_such_text_is_refused_in_words(tmp_path, name, why):
    (tmp_path / "long").write_bytes(b"x" * 10)
    (tmp_path / "latin").write_bytes("Köln".encode("latin-1"))
    with pytest.raises(FileError, match=rf"the list .* cannot be read \(.*{why}.*\): write another"):
        read_text(tmp_path / name, "the list", 9, "write another")


def test_a_file_without_an_end_is_read_no_further_than_it_may_be_long():
    with pytest.raises(FileError, match="more than 1,048,576 bytes"):
        read_text("/dev/zero", "the recipe")


def test_a_file_of_just_the_allowed_length_is_read(tmp_path):
    (tmp_path / "full").write_bytes(b"x" * 9)
    assert read_text(tmp_path / "full", "the list", 9) == "x" * 9


def test_toml_that_would_take_long_or_is_none_is_refused_in_words():
    for text, why in (("a" * 101, "at most 100"), (".".join("a" * 20) + " = 1", "16 parts"), ("= 1", "is not TOML")):
        with pytest.raises(InputError, match=f"the policy.*{why}|{why}"):
            toml_table(text, "the policy", 100)
