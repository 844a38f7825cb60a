"""The privacy statement: what a release promises to the people in it, and on which assumptions.

A release carries it for people (`line`, `text`) and for machines (`to_json`). Whoever reads one back believes
nothing that does not follow: a statement that claims a smaller ε than its budget implies is refused.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from hazemap.errors import CodecError, InputError
from hazemap.privacy.budget import (
    DELTA,
    ZCDP,
    ApproxDP,
    Budget,
    PrivacyAmount,
    PureDP,
    implied_epsilon,
    log_delta,
    much,
)
from hazemap.privacy.statement_facts import UNSAID, Randomness, StatementFacts
from hazemap.tables.contribution_bounding import (
    AtMostCells,
    AtMostRows,
    Bounding,
    OneReport,
    OneVote,
    Outside,
    OwnMeans,
    RowIsPerson,
)

A_PERSON = "a person: all rows of one id"
A_ROW = "a row"
"""The units of a table. A device's statement names its own."""

DELTAS = (DELTA, Fraction(1, 10**9))
"""For which δ a statement in ρ says the ε it implies."""

_OUTSIDE = {
    Outside.PEOPLE: "people with no row in any cell are counted outside; rows outside of all others are dropped",
    Outside.COUNT: "rows outside every cell are weighed and counted like those of any other cell",
}

_VERSION = 3
_DIGITS = 150  # above and below a fraction's bar: squares of such numbers still fit a float
_RATIONAL = re.compile(f"[0-9]{{1,{_DIGITS}}}(/[0-9]{{1,{_DIGITS}}})?")


@dataclass(frozen=True)
class Statement:
    """What is promised to whom. Every field is public.

    * `unit`: who is protected (`A_PERSON`, `A_ROW`, …); `neighbours`: which two tables look alike.
    * `trust`: who adds the noise; it reads after "by": "curator", "two servers". `assumptions`: what has to
      be believed about them.
    * `noise`: its law, "discrete Laplace".
    * `public`: what was declared, or chosen without looking; `charged`: what was learned at a price.
    * `created`: the day in UTC, ISO 8601 (beside a file's own time, a second would say how long the run took);
      `version`: hazemap's.
    * for machines: the `circumstances`, typed, and what was `learned` (names of `disclosure.Learned`).
    * `paid`: what the data set's people had paid in all with the charge for this release, as the ledger added it up in
      that charge's own transaction; None where no ledger was charged.

    Raises `InputError` for a statement that contradicts itself.

    >>> statement = Statement(
    ...     "nyc", A_PERSON, "one person added or removed", PureDP(1), AtMostRows(1), "curator",
    ...     ("the curator sees the table",), "discrete Laplace", ("box", "method"), ("counts",),
    ...     "adaptive", "2026-01-02", "0.1.0",
    ... )
    >>> statement.line()[:63]
    'Differentially private per person: ε = 1 (pure), one row a pers'
    >>> Statement.from_json(statement.to_json()) == statement
    True
    """

    dataset: str
    unit: str
    neighbours: str
    budget: Budget
    bounding: Bounding | OneReport
    trust: str
    assumptions: tuple[str, ...]
    noise: str
    public: tuple[str, ...]
    charged: tuple[str, ...]
    method: str
    created: str
    version: str
    circumstances: StatementFacts = UNSAID
    learned: tuple[str, ...] = ()
    paid: PrivacyAmount | None = None

    def __post_init__(self) -> None:
        if isinstance(self.bounding, RowIsPerson) and not self.unit.startswith(A_ROW):
            raise InputError(
                f"a statement cannot promise to protect {self.unit!r} where {self.bounding}: "
                f"its unit is {A_ROW!r}; bound the rows of each person to protect people"
            )
        try:
            dated = date.fromisoformat(self.created).isoformat() == self.created
        except ValueError:
            dated = False
        if not dated:
            raise InputError(f"a statement is dated by its day in UTC, like 2026-01-02, not {self.created!r}")

    @property
    def implied(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Each (ε, δ) that a budget in ρ implies; none where the budget itself names its ε."""
        if not isinstance(self.budget, ZCDP):
            return ()
        return tuple((implied_epsilon(self.budget.rho, delta), delta) for delta in DELTAS)

    def line(self) -> str:
        """One sentence, for under a picture."""
        person = re.sub(r"^an? ", "", self.unit.partition(":")[0])
        if self.circumstances.randomness is Randomness.TEST_STREAM:
            return f"A test that protects nobody: its noise repeats itself ({self._short}); hazemap {self.version}."
        return (
            f"Differentially private per {person}: {self._short}{self._in_all}, {self.bounding}, "
            f"{self.noise.removesuffix(' noise')} noise by {self._by}; hazemap {self.version}."
        )

    def text(self) -> str:
        """The whole statement, a line for each of its parts."""
        return "\n".join(
            f"{name if number == 0 else '':<12}{item}"
            for name, items in self.parts()
            for number, item in enumerate(items)
        )

    def parts(self) -> list[tuple[str, list[str]]]:
        """The parts of the statement by their names, each with its lines."""
        sensitivity = self.bounding.sensitivity
        l1, l2_squared = sensitivity.l1, sensitivity.l2_squared
        bound = [f"{self.bounding} (sensitivity: L1 = {l1}, L2² = {l2_squared} votes)"]
        if self.bounding.outside.asked:
            bound.append(_OUTSIDE[self.bounding.outside])
        parts: list[tuple[str, list[str]]] = [
            ("Data set", [self.dataset]),
            ("Protected", [self.unit, *filter(None, [self.circumstances.told_apart])]),
            ("Neighbours", [self.neighbours]),
            ("Budget", [self._long, *(f"implies {_pair(*pair)}" for pair in self.implied), *self._paid_in_words]),
            ("Bounding", bound),
            ("Noise", [f"{self.noise}, by {self._by}"]),
            ("Assumed", list(self.assumptions)),
            ("Public", list(self.public)),
            ("Charged", list(self.charged)),
            ("Method", [self.method]),
            ("Made", [f"{self.created}, by hazemap {self.version}"]),
        ]
        return [(name, items or ["nothing"]) for name, items in parts]

    @property
    def _in_all(self) -> str:
        """Behind the price: what was paid in all."""
        return f" of {self.paid} paid in all" if self.paid else ""

    @property
    def _paid_in_words(self) -> list[str]:
        if self.paid is None:
            return []
        meant = much(self.paid)
        return [f"in all the data set has paid {self.paid}, this release included", *([meant] if meant else [])]

    @property
    def _by(self) -> str:
        return self.trust if " " in self.trust else f"a {self.trust}"

    @property
    def _short(self) -> str:
        if isinstance(self.budget, PureDP):
            return f"{self.budget} (pure)"
        if isinstance(self.budget, ApproxDP):
            return str(self.budget)
        epsilon, delta = self.implied[0]
        return f"{self.budget} (zero-concentrated; {_pair(epsilon, delta)})"

    @property
    def _long(self) -> str:
        if isinstance(self.budget, PureDP):
            return f"{self.budget}: pure differential privacy"
        if isinstance(self.budget, ApproxDP) and isinstance(self.bounding, OneReport):
            return f"{self.budget}: approximate differential privacy, the sum of what each round may cost"
        if isinstance(self.budget, ApproxDP):
            return f"{self.budget}: approximate differential privacy, spent as {ZCDP(self.budget.rho)}"
        return f"{self.budget}: zero-concentrated differential privacy"

    def to_json(self) -> dict[str, object]:
        """A plain dict for `json.dumps`; rationals are text, so that nothing is rounded."""
        plain: dict[str, object] = {"statement": _VERSION}
        for field in fields(self):
            value = getattr(self, field.name)
            plain[field.name] = list(value) if isinstance(value, tuple) else value
        plain["circumstances"] = self.circumstances.to_json()
        plain["budget"] = budget_to_json(self.budget)
        plain["paid"] = self.paid and amount_to_json(self.paid)
        plain["bounding"] = bounding_to_json(self.bounding)
        plain["implies"] = [{"epsilon": str(epsilon), "delta": str(delta)} for epsilon, delta in self.implied]
        return plain

    @staticmethod
    def from_json(data: object) -> "Statement":
        """What `to_json` wrote; `CodecError` for anything else."""
        if not isinstance(data, Mapping) or "statement" not in data:
            raise CodecError("this JSON is not a privacy statement: it has no field 'statement'")
        version = data["statement"]
        if type(version) is not int or version != _VERSION:
            raise CodecError(
                f"a privacy statement of version {version!r:.20}; this hazemap reads version {_VERSION}: "
                "read it with the hazemap that wrote it"
            )
        types = {field.name: field.type for field in fields(Statement)}
        _only(data, {"statement", "implies", *types}, "a privacy statement")
        budget = budget_from_json(data["budget"])
        _believe(data["implies"], budget)
        values: dict[str, object] = {"budget": budget, "bounding": bounding_from_json(data["bounding"])}
        values["circumstances"] = StatementFacts.from_json(data["circumstances"])
        values["paid"] = None if data["paid"] is None else amount_from_json(data["paid"])
        for name in types.keys() - values.keys():
            values[name] = _texts(data[name], name) if types[name] == tuple[str, ...] else _text(data[name], name)
        try:
            return Statement(**values)  # type: ignore[arg-type]  # each was read as its field's type
        except InputError as error:
            raise CodecError(f"this privacy statement contradicts itself: {error}") from error


def budget_to_json(budget: Budget) -> dict[str, str]:
    """A budget as its kind and its rationals; `InputError` for one of absurdly many digits.

    >>> budget_to_json(PureDP(0.1))
    {'kind': 'PureDP', 'epsilon': '1/10'}
    """
    rationals = {name: _plain(getattr(budget, name)) for name in _BUDGETS[type(budget).__name__].names}
    return {"kind": type(budget).__name__, **rationals}


def budget_from_json(data: object) -> Budget:
    """What `budget_to_json` wrote; `CodecError` for anything else."""
    kind, found = _kind(data, "a budget", _BUDGETS)
    _only(found, {"kind", *_BUDGETS[kind].names}, kind)
    try:
        budget: Budget = _BUDGETS[kind].type(*(_rational(found[name], name) for name in _BUDGETS[kind].names))
    except InputError as error:
        raise CodecError(f"this JSON holds an impossible budget: {error}") from error
    return budget


def amount_to_json(amount: PrivacyAmount) -> dict[str, str]:
    """So much privacy, as its measure and its rational.

    >>> amount_to_json(PrivacyAmount("ε", Fraction(13, 10)))
    {'measure': 'ε', 'value': '13/10'}
    """
    return {"measure": amount.measure, "value": str(amount.value)}


def amount_from_json(data: object) -> PrivacyAmount:
    """What `amount_to_json` wrote; `CodecError` for anything else."""
    if not isinstance(data, Mapping):
        _refuse("paid", "an object, or null")
    _only(data, {"measure", "value"}, "what was paid in all")
    if data["measure"] == "ε":
        return PrivacyAmount("ε", _rational(data["value"], "value"))
    if data["measure"] != "ρ":
        _refuse("measure", "'ε' or 'ρ'")
    return PrivacyAmount("ρ", _rational(data["value"], "value"))


def bounding_to_json(bounding: Bounding | OneReport) -> dict[str, object]:
    """A bounding rule as its kind and its numbers.

    >>> bounding_to_json(AtMostRows(3))
    {'kind': 'AtMostRows', 'most': 3, 'nowhere': False}
    """
    kind = type(bounding).__name__
    numbers = {name: getattr(bounding, name) for name in _RULES[kind].names}
    return {"kind": kind, **numbers, "nowhere": bounding.outside.written}


def bounding_from_json(data: object) -> Bounding | OneReport:
    """What `bounding_to_json` wrote; `CodecError` for anything else."""
    kind, found = _kind(data, "a bounding rule", _RULES)
    _only(found, {"kind", "nowhere", *_RULES[kind].names}, kind)
    try:
        numbers = [_integer(found[name], name) for name in _RULES[kind].names]
        bounding: Bounding | OneReport = _RULES[kind].type(*numbers, Outside.read(found["nowhere"]))
    except InputError as error:
        raise CodecError(f"this JSON holds an impossible bounding rule: {error}") from error
    return bounding


def _pair(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε = {float(epsilon):.4g} at δ = {float(delta):.3g}"


def _believe(claims: object, budget: Budget) -> None:
    if not isinstance(claims, list):
        _refuse("implies", "a list")
    if claims and not isinstance(budget, ZCDP):
        raise CodecError("this privacy statement implies an ε beside the one its budget names")
    for claim in claims:
        if not isinstance(claim, Mapping):
            _refuse("implies", "a list of objects")
        _only(claim, {"epsilon", "delta"}, "'implies'")
        epsilon, delta = _rational(claim["epsilon"], "epsilon"), _rational(claim["delta"], "delta")
        if not (0 < delta < 1 and log_delta(float(budget.rho), float(epsilon)) <= math.log(delta)):
            raise CodecError(f"this privacy statement claims {_pair(epsilon, delta)}: {budget} does not imply it")


def _only(data: Mapping[str, object], wanted: set[str], what: str) -> None:
    missing, unknown = sorted(wanted - data.keys()), sorted(str(key) for key in data.keys() - wanted)
    if missing or unknown:
        raise CodecError(
            f"{what} has the fields {', '.join(sorted(wanted))}; "
            f"missing here: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown)[:200] or 'none'}"
        )


class _Kind(NamedTuple):
    """A type, and the names of its fields that are numbers."""

    type: Any
    names: tuple[str, ...]


def _kinds(*types: Any) -> dict[str, _Kind]:
    """Types by their names."""
    names = ((each, (field.name for field in fields(each))) for each in types)
    return {each.__name__: _Kind(each, tuple(name for name in own if name != "outside")) for each, own in names}


_BUDGETS = _kinds(PureDP, ZCDP, ApproxDP)
_RULES = _kinds(AtMostRows, AtMostCells, OneVote, RowIsPerson, OwnMeans, OneReport)


def _kind(data: object, what: str, kinds: Mapping[str, _Kind]) -> tuple[str, Mapping[str, object]]:
    if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
        raise CodecError(f"{what} is an object with a text 'kind'")
    if data["kind"] not in kinds:
        raise CodecError(f"{what} is one of {', '.join(kinds)}, not {data['kind']!r:.40}")
    return data["kind"], data


def _plain(number: Fraction) -> str:
    if max(number.numerator, number.denominator) >= 10**_DIGITS:
        raise InputError(f"a budget has at most {_DIGITS} digits above and below its fraction's bar; round it")
    return str(number)


def _text(value: object, name: str) -> str:
    return value if isinstance(value, str) else _refuse(name, "text")


def _texts(value: object, name: str) -> tuple[str, ...]:
    return tuple(_text(item, name) for item in (value if isinstance(value, list) else _refuse(name, "a list of text")))


def _integer(value: object, name: str) -> int:
    return value if type(value) is int else _refuse(name, "an integer")


def _rational(value: object, name: str) -> Fraction:
    if not isinstance(value, str) or not _RATIONAL.fullmatch(value):
        _refuse(name, "a rational as text, like '1/10'")
    try:
        return Fraction(value)
    except ZeroDivisionError:
        _refuse(name, "a rational with a denominator above 0")


def _refuse(name: str, wanted: str) -> NoReturn:
    raise CodecError(f"the field {name!r} must be {wanted}")
