from hypothesis import given
from hypothesis import strategies as st

from hazemap.draw.text_layout import width, wrapped


@given(st.text("ab ε·/_$", max_size=200), st.floats(0.3, 4))
def test_every_word_stays_and_every_line_fits(text: str, inches: float):
    lines = wrapped(text, inches, 7)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width(line, 7) <= inches for line in lines)


def test_line_breaks_of_the_text_stay():
    assert wrapped("one two\nthree", 5, 7) == ["one two", "three"]
