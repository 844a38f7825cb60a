"""Numbers as people write them in options, orders and addresses: one grammar for all, of ASCII digits.

Python's own readers take more (`1_0` is 10 to them, and so are digits of every script), so what a person sees and what
is charged could differ.
"""

import re

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FRACTION = re.compile(r"[+-]?[0-9]+/[0-9]+")


def is_whole(text: str) -> bool:
    """Whether a text is a whole number.

    >>> is_whole("-12"), is_whole("1_0"), is_whole("１２")
    (True, False, False)
    """
    return _WHOLE.fullmatch(text) is not None


def is_decimal(text: str) -> bool:
    """Whether a text is a decimal number, perhaps with an exponent: `0.5`, `.5`, `5e-1`."""
    return _DECIMAL.fullmatch(text) is not None


def is_rational(text: str) -> bool:
    """Whether a text is a decimal number, or a fraction of two whole ones: `1/3`."""
    return is_decimal(text) or _FRACTION.fullmatch(text) is not None


def decimals(text: str) -> list[float]:
    """The decimal numbers between the commas of a text, blanks around them left out; `ValueError` for any other text.

    >>> decimals("13.2, 52")
    [13.2, 52.0]
    """
    parts = [part.strip(" ") for part in text.split(",")]
    if not all(map(is_decimal, parts)):
        raise ValueError("not all of it is numbers")
    return [float(part) for part in parts]


def noun(counted: str) -> str:
    """What is counted (`hazemap.privacy.statement_facts`) without the rule, for sentences that give no number.

    >>> noun("people"), noun("rows counted, at most 3 each")
    ('people', 'rows')
    """
    return counted.partition(" counted, ")[0]


def per(counted: str, area: str) -> str:
    """The density of what is counted.

    >>> per("people", "km²"), per("rows counted, at most 3 each", "km²")
    ('people per km²', 'rows counted per km², at most 3 each')
    """
    noun, comma, bound = counted.partition(", ")
    return f"{noun} per {area}{comma}{bound}"
