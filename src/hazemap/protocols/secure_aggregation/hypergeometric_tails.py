"""How likely it is to draw too many of a kind: tails of the hypergeometric law, rounded outward.

Floats, for these numbers describe how safe parameters are and never decide a draw. A logarithm of a factorial of up
to 10⁶ is off by less than 10⁻⁸, nine of them make a term, and every tail is raised by a millionth of itself.
"""

from math import exp, inf, lgamma, log1p

_OUTWARD = log1p(1e-6)


def at_least(population: int, marked: int, drawn: int, least: int) -> float:
    """P(X >= least) where `drawn` of `population` are drawn without replacement and X of them are among the `marked`.

    Never too small, and 1 up to the mean, where it is at least 1/2. O(√drawn) terms in practice.

    >>> round(at_least(52, 4, 13, 2), 4)  # two aces or more in a hand of bridge
    0.2573
    """
    most = min(marked, drawn)
    if least <= max(0, drawn + marked - population) or least * population <= marked * drawn:
        return 1.0
    if least > most:
        return 0.0
    rest = population - marked
    term = total = exp(_choose(marked, least) + _choose(rest, drawn - least) - _choose(population, drawn) + _OUTWARD)
    for x in range(least, most):
        term *= (marked - x) / (x + 1) * ((drawn - x) / (rest - drawn + x + 1))
        total += term
        if term < total * 1e-17:  # beyond the mean terms fall ever faster: what is left is lost in the rounding
            break
    return min(total, 1.0)


def log_all_gone(population: int, gone: int, places: int) -> float:
    """How likely all of `places` given members are among the `gone` of `population`: ln of (gone)ₖ / (population)ₖ."""
    if places > gone:
        return -inf
    return (
        lgamma(gone + 1)
        - lgamma(gone - places + 1)
        - lgamma(population + 1)
        + lgamma(population - places + 1)
        + _OUTWARD
    )


def log_choose(n: int, k: int) -> float:
    """How many ways there are to choose k of n: the logarithm, rounded up."""
    return _choose(n, k) + _OUTWARD


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
