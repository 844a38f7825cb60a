"""What a paper claims of a figure, held against results: a table for its page, with a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from hazemap.lab.compare.result_tables import Table
from hazemap.lab.compare.results import Results


class Finding(NamedTuple):
    """What is found here, in words, and whether that agrees with the claim."""

    words: str
    agrees: bool


@dataclass(frozen=True)
class Claim:
    """What the paper says, with its numbers where they survive, and how it is checked."""

    paper: str
    check: Callable[[Results], Finding]


def claimed(name: str, *claims: Claim, why: str) -> Callable[[Results], Table | None]:
    """A verdict of a preset: every claim with what is found, and why where they differ.

    >>> one = Claim("it holds", lambda results: Finding("it does", True))
    >>> claimed("figure 1", one, why="so it is")(None).heading  # type: ignore[arg-type, union-attr]
    'figure 1: agrees'
    """

    def told(results: Results) -> Table | None:
        found = [claim.check(results) for claim in claims]
        rows = [
            (claim.paper, each.words, "agrees" if each.agrees else "does not agree")
            for claim, each in zip(claims, found, strict=True)
        ]
        heading = f"{name}: {verdict([each.agrees for each in found])}"
        return Table(heading, (("the paper says", "here", ""), *rows, ("why", " ".join(why.split()), "")))

    return told


def verdict(agree: list[bool]) -> str:
    """All, some or none.

    >>> verdict([True, False]), verdict([False])
    ('agrees in part', 'does not agree')
    """
    return "agrees" if all(agree) else "agrees in part" if any(agree) else "does not agree"


def score_of(results: Results, method: str, score: str = "mre", **where: object) -> float:
    """The mean of a score over the trials of a method."""
    return results.where(method=method, **where).mean(score).mean


def percent(number: float) -> str:
    """A part of one, in per cent.

    >>> percent(0.0123), percent(-1.5)
    ('1.2 %', '−150 %')
    """
    return f"{100 * number:.{1 if abs(number) < 0.1 else 0}f} %".replace("-", "−")
