"""A number is written in one way wherever people write one, so what they see is what is charged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hazemap
from hazemap.cli.main import main
from hazemap.errors import InputError
from hazemap.files.number_text import decimals, is_decimal, is_rational, is_whole
from hazemap.privacy.budget import exact

ODD = ["1_0", "１０", "٣", "1e１", "0x1", "nan", "inf", "1__0", "", " ", "1 0", "+-1", "1/2/3", "e5", ".", "½"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number_in_plain_digits_is_none_anywhere(text):
    assert not (is_whole(text) or is_decimal(text) or is_rational(text))
    with pytest.raises(InputError, match="must be a finite number"):
        exact(text)
    with pytest.raises(InputError, match="four numbers"):
        hazemap.Box.parse(f"1,2,3,{text}")
    with pytest.raises(ValueError, match="numbers"):
        decimals(text)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_what_python_writes_is_read(number):
    assert is_decimal(str(number)) and decimals(f"{number}, 1") == [float(number), 1.0] if abs(number) < 1e300 else True
    assert is_rational(str(exact("1/3"))) and is_rational("-0.5e-3") and is_whole("+7")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["release", "v.csv", "--epsilon", "1_0"], "finite number"),
        (["release", "v.csv", "--epsilon", "1", "--memory", "1_024"], "in the digits 0 to 9 alone"),
        (["stats", "v.csv", "--epsilon", "1", "--low", "１"], "in the digits 0 to 9 alone"),
        (["ask", "m.parquet", "--confidence", "0.9_5"], "in the digits 0 to 9 alone"),
        (["ledger", "cap", "v", "1_0"], "finite number"),
    ],
)
def test_options_take_plain_digits_alone(command, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,lon,lat\n1,13,52\n")
    assert main([*command, "--value", "x"] if command[0] == "stats" else command) == 2
    said = capsys.readouterr()
    assert says in said.out + said.err
