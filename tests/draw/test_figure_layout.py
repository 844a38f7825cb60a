"""Lines of text that fit, and pictures as files."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from hazemap import draw
from hazemap.draw.figure_layout import width, wrapped
from hazemap.errors import FileError, InputError


@given(st.text("ab ε·/_$", max_size=200), st.floats(0.3, 4))
def test_every_word_stays_and_every_line_fits(text: str, inches: float):
    lines = wrapped(text, inches, 7)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width(line, 7) <= inches for line in lines)


def test_line_breaks_of_the_text_stay():
    assert wrapped("one two\nthree", 5, 7) == ["one two", "three"]


CAPTION = "ε = 1 per person · " + "a statement that is long enough to be wrapped · " * 5


@pytest.fixture(scope="module")
def figure() -> Figure:
    from hazemap.draw.figure_layout import FigureLayout

    return FigureLayout.ruled(5.0, 0.5, "A title", CAPTION).figure


def test_a_png_says_what_its_caption_says(figure, tmp_path: Path):
    from PIL import Image

    draw.save(figure, tmp_path / "map.png")
    with Image.open(tmp_path / "map.png") as image:
        assert image.info["Description"] == CAPTION
        assert image.info["Title"] == "A title"
        assert image.size[0] == 1000


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_the_suffix_is_the_format(figure, tmp_path: Path, suffix: str, start: bytes):
    draw.save(figure, tmp_path / f"map{suffix}")
    assert (tmp_path / f"map{suffix}").read_bytes().startswith(start)


def test_an_svg_holds_the_caption(figure):
    assert CAPTION.strip() in draw.encode(figure, ".svg").decode()


@pytest.mark.parametrize("name", ["map", "map.jpg", "map.png.exe"])
def test_another_suffix_is_refused_and_nothing_written(figure, tmp_path: Path, name: str):
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw.save(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole_and_nothing_else_stays(figure, tmp_path: Path):
    (tmp_path / "map.png").write_bytes(b"old")
    draw.save(figure, str(tmp_path / "map.png"))
    assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
    assert (tmp_path / "map.png").stat().st_mode & stat.S_IRUSR


@pytest.mark.parametrize("broken", ["os.fsync", "pathlib.Path.replace"])
def test_a_failure_leaves_the_old_file(figure, tmp_path: Path, monkeypatch, broken: str):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "map.png").write_bytes(b"old")
    monkeypatch.setattr(broken, fail)
    with pytest.raises(FileError, match="No space left on device"):
        draw.save(figure, tmp_path / "map.png")
    assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
    assert (tmp_path / "map.png").read_bytes() == b"old"


def test_a_missing_folder_is_said(figure, tmp_path: Path):
    with pytest.raises(FileError, match="could not be written"):
        draw.save(figure, tmp_path / "nowhere" / "map.png")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_picture_is_the_same_bytes_whatever_the_settings(town, suffix: str):
    from matplotlib import rc_context

    def made() -> bytes:
        return draw.encode(draw.draw_map(town, title="A town", panels=[draw.MapPanel.DENSITY]), suffix)

    first = made()
    with rc_context({"svg.hashsalt": "another", "text.hinting": "none", "savefig.facecolor": "red"}):
        assert made() == first


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_no_date_is_in_a_picture(figure, suffix: str):
    import re

    assert not re.search(rb"Date>|/CreationDate|/ModDate|<dc:date", draw.encode(figure, suffix))
