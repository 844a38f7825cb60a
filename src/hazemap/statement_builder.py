"""Builds every privacy statement: from what an algorithm discloses to the words that people read.

For curators and for devices alike. The caller says who is protected and what was declared; what was learned, at a price
and how, is the algorithm's own disclosure and nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hazemap import __version__
from hazemap.errors import InputError
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import Bounding, OneReport


@dataclass(frozen=True)
class Promise:
    """Who is protected from what, by whom, under which assumptions: the part of a statement that a caller knows."""

    dataset: str
    unit: str
    neighbours: str
    budget: Budget
    bounding: Bounding | OneReport
    trust: str
    assumptions: tuple[str, ...]
    method: str


def stated(
    promise: Promise,
    disclosure: Disclosure,
    *,
    box: Box | None = None,
    public: Iterable[str] = (),
    details: Mapping[Learned, str] | None = None,
    circumstances: StatementFacts = UNSAID,
) -> Statement:
    """The statement of a release that is made now. `box` is one that was declared.

    `details` say more of something that was learned, once it is known (which bounds were found); they take the place of
    the usual words. `InputError` for a box that was both declared and found, and for details of what was not learned.
    """
    words = dict(details or {})
    if box is not None and Learned.BOX in disclosure.learned:
        raise InputError("a box is either declared or found, not both")
    if len(set(disclosure.learned)) < len(disclosure.learned) or words.keys() - set(disclosure.learned):
        raise InputError("a statement must list everything that was learned exactly once, and nothing else")
    declared = [f"the box {box}, as declared"] if box is not None else []
    said = circumstances.randomness
    return Statement(
        dataset=promise.dataset,
        unit=promise.unit,
        neighbours=promise.neighbours,
        budget=promise.budget,
        bounding=promise.bounding,
        trust=promise.trust,
        assumptions=promise.assumptions if said is None else (*promise.assumptions, said.assumption),
        noise="discrete Laplace" if isinstance(promise.budget, PureDP) else "discrete Gaussian",
        public=(*declared, *filter(None, public), *disclosure.public),
        charged=tuple(words.get(each, each.value) for each in disclosure.learned),
        method=promise.method,
        created=f"{datetime.now(UTC):%Y-%m-%d}",
        version=__version__,
        circumstances=circumstances,
        learned=tuple(each.name.lower() for each in disclosure.learned),
    )
