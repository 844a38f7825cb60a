"""The ledger beside a plain model of it: random charges of any unit, caps and releases end in the same lists."""

import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hazemap.errors import CapExceeded, InputError, LedgerError, OtherUnit
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import DEVICE, ROW, Model, Unit
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.contribution_bounding import AtMostRows

PEOPLE = Unit.person("user", "text")


def statement(dataset: str, budget: Budget) -> Statement:
    return Statement(
        dataset=dataset,
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=budget,
        bounding=AtMostRows(1),
        trust="curator",
        assumptions=("the curator sees the table",),
        noise="discrete Laplace",
        public=("the box",),
        charged=("the counts",),
        method="flat grid",
        created="2026-01-02",
        version="0.1.0",
    )


names = st.sampled_from(["nyc", "oslo"])
numbers = st.fractions(min_value=Fraction(1, 50), max_value=3, max_denominator=60)
prices: st.SearchStrategy[Budget] = st.one_of(
    numbers.map(PureDP), numbers.map(ZCDP), st.sampled_from([ApproxDP(1, 1e-6), ApproxDP(3, 1e-3)])
)
USERS, VALUES = PEOPLE, Unit.person("user", "text", model="values-only")
UNITS = [*[USERS] * 6, *[VALUES] * 4, Unit.person("trip", "text"), ROW, DEVICE]
models: st.SearchStrategy[Model] = st.sampled_from(["full", "values-only"])


def lost(price: Budget, paid_under: Model, model: Model) -> tuple[Fraction | None, Fraction] | None:
    """What a charge costs under a model, in ε (if it is pure) and in ρ; `None` where it says nothing of that model.

    Written down apart from the code: ε and ρ of two steps, to the table without a person and back.
    """
    if paid_under == "values-only" and model == "full":
        return None
    steps = 2 if paid_under != model else 1
    return (steps * price.epsilon if isinstance(price, PureDP) else None), steps**2 * price.rho


class AgainstAPlainModel(RuleBasedStateMachine):
    """The ledger does what a few lists would."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite")
        self.caps: dict[tuple[str, Model], Budget | None] = {}
        self.whom: dict[str, tuple[str, str | None]] = {}
        self.paid: list[tuple[str, Budget, Unit]] = []
        self.changed: list[tuple[str, Model, Budget | None, Budget]] = []
        self.done: set[int] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def losses(self, name: str, model: Model) -> list[tuple[Fraction | None, Fraction]]:
        every = [lost(price, unit.model, model) for whose, price, unit in self.paid if whose == name]
        return [each for each in every if each is not None]

    def fits(self, name: str, model: Model, more: list[tuple[Fraction | None, Fraction]]) -> bool:
        cap, after = self.caps.get((name, model)), self.losses(name, model) + more
        if cap is None or not more:
            return True
        if isinstance(cap, PureDP):
            return all(each[0] is not None for each in after) and sum(each[0] or 0 for each in after) <= cap.epsilon
        return sum(each[1] for each in after) <= cap.rho

    @rule(name=names, price=prices, unit=st.sampled_from(UNITS))
    def charge(self, name: str, price: Budget, unit: Unit) -> None:
        whom, has_values = (unit.kind, unit.id_column), (name, "values-only") in self.caps
        if self.whom.get(name, whom) != whom or (has_values and unit.kind != "person"):
            expected: type[Exception] | None = OtherUnit
        else:
            uncovered = unit.model == "values-only" and self.caps.get((name, "full")) is not None
            if uncovered and self.caps.get((name, "values-only")) is None:
                expected = CapExceeded
            else:
                losses = {model: lost(price, unit.model, model) for model in ("full", "values-only")}
                fit = all(self.fits(name, model, [each] if each else []) for model, each in losses.items())
                expected = None if fit else CapExceeded
        if expected is None:
            assert self.ledger.charge(name, price, "a map", unit).id == len(self.paid) + 1
            self.paid.append((name, price, unit))
            self.caps.setdefault((name, unit.model), None)
            self.whom[name] = whom
        else:
            for refused in (self.ledger.charge, lambda *asked: self.ledger.account(*asked[::2], unit).check(asked[1])):
                with pytest.raises(expected):
                    refused(name, price, "a map", *([unit] if refused == self.ledger.charge else []))

    @rule(name=names, cap=prices, model=models)
    def cap(self, name: str, cap: Budget, model: Model) -> None:
        impure = isinstance(cap, PureDP) and any(each[0] is None for each in self.losses(name, model))
        nobodys = model == "values-only" and self.whom.get(name, ("person", ""))[0] != "person"
        if impure or nobodys:
            with pytest.raises(InputError):
                self.ledger.cap(name, cap, model=model)
        else:
            self.ledger.cap(name, cap, model=model)
            self.changed.append((name, model, self.caps.get((name, model)), cap))
            self.caps[name, model] = cap

    @rule(number=st.integers(1, 5))
    def release(self, number: int) -> None:
        if number > len(self.paid) or number in self.done:
            with pytest.raises(LedgerError):
                self.ledger.released(number, statement("nyc", PureDP(1)), None)
        else:
            name, price, _ = self.paid[number - 1]
            self.ledger.released(number, statement(name, price), f"{number}.parquet")
            self.done.add(number)

    @invariant()
    def the_lists_agree(self) -> None:
        statuses = self.ledger.datasets()
        assert {(status.name, status.model): status.cap for status in statuses} == self.caps
        for status in statuses:
            losses = self.losses(status.name, status.model)
            whom = status.protects and (status.protects.kind, status.protects.id_column)
            assert whom == self.whom.get(status.name)
            assert status.charges == sum((status.name, status.model) == (name, of.model) for name, _, of in self.paid)
            pure = all(each[0] is not None for each in losses)
            in_epsilon = isinstance(status.cap, PureDP) or (status.cap is None and pure)
            total = sum(((each[0] or 0) if in_epsilon else each[1] for each in losses), Fraction(0))
            assert (status.spent.measure, status.spent.value) == ("ε" if in_epsilon else "ρ", total)
            if status.cap is None:
                assert status.remaining is None
            else:
                whole = status.cap.epsilon if in_epsilon else status.cap.rho
                assert status.remaining.value == max(whole - total, 0)
        records = self.ledger.history()
        assert [(record.charge.dataset, record.charge.price, record.charge.unit) for record in records] == self.paid
        assert {record.charge.id for record in records if record.released} == self.done
        changes = self.ledger.changes()
        assert [(change.dataset, change.model, change.old, change.new) for change in changes] == self.changed


TestAgainstAPlainModel = pytest.mark.slow(AgainstAPlainModel.TestCase)
TestAgainstAPlainModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class NoCapIsPassed(RuleBasedStateMachine):
    """Where caps are never lowered, no page is ever beyond its own, in any implied sense."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite")
        self.limits: dict[Model, Budget] = {"full": PureDP(2), "values-only": ZCDP(3)}
        for model, limit in self.limits.items():
            self.ledger.cap("nyc", limit, model=model)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(price=prices, unit=st.sampled_from([USERS, VALUES, ROW]))
    def charge(self, price: Budget, unit: Unit) -> None:
        with suppress(CapExceeded, OtherUnit):
            self.ledger.charge("nyc", price, "a map", unit)

    @invariant()
    def every_implied_loss_is_within_its_cap(self) -> None:
        paid = [(record.charge.price, record.charge.unit) for record in self.ledger.history()]
        assert all(unit.kind == "person" for _, unit in paid)
        full = [price.epsilon for price, unit in paid if unit.model == "full"]
        values = [4 * price.rho if unit.model == "full" else price.rho for price, unit in paid]
        assert sum(full) <= 2 and sum(values) <= 3


TestNoCapIsPassed = pytest.mark.slow(NoCapIsPassed.TestCase)
TestNoCapIsPassed.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
