"""Lengths and parts as people say them."""


def metres(length: float) -> str:
    """A length as people say it."""
    return f"{length / 1000:.3g} km" if length >= 1000 else f"{length:.3g} m"


def percent(part: float) -> str:
    """A part of 1 as people say it.

    >>> percent(0.0023), percent(0.251), percent(0.9951), percent(15.97)
    ('0.23 %', '25 %', '100 %', '1,597 %')
    """
    return f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:,.0f} %"
