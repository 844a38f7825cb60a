"""The ledger beside a plain model of it: random charges, caps and releases must end in the same lists."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hazemap.errors import CapExceeded, InputError, LedgerError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.bounding import AtMostRows


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
        created="2026-01-02T03:04:05Z",
        version="0.1.0",
    )


names = st.sampled_from(["nyc", "oslo"])
numbers = st.fractions(min_value=Fraction(1, 50), max_value=3, max_denominator=60)
prices: st.SearchStrategy[Budget] = st.one_of(
    numbers.map(PureDP), numbers.map(ZCDP), st.sampled_from([ApproxDP(1, 1e-6), ApproxDP(3, 1e-3)])
)


class AgainstAPlainModel(RuleBasedStateMachine):
    """The ledger does what two dictionaries would."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite")
        self.caps: dict[str, Budget | None] = {}
        self.paid: list[tuple[str, Budget]] = []
        self.done: set[int] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def paid_by(self, name: str) -> list[Budget]:
        return [price for whose, price in self.paid if whose == name]

    def all_pure(self, name: str) -> bool:
        return all(isinstance(price, PureDP) for price in self.paid_by(name))

    @rule(name=names, price=prices)
    def charge(self, name: str, price: Budget) -> None:
        cap, after = self.caps.get(name), [*self.paid_by(name), price]
        if cap is None:
            allowed = True
        elif isinstance(cap, PureDP):
            allowed = isinstance(price, PureDP) and sum(each.epsilon for each in after) <= cap.epsilon
        else:
            allowed = sum(each.rho for each in after) <= cap.rho
        if allowed:
            assert self.ledger.charge(name, price, "a map").id == len(self.paid) + 1
            self.paid.append((name, price))
            self.caps.setdefault(name, None)
        else:
            with pytest.raises(CapExceeded):
                self.ledger.charge(name, price, "a map")

    @rule(name=names, cap=prices)
    def cap(self, name: str, cap: Budget) -> None:
        if isinstance(cap, PureDP) and not self.all_pure(name):
            with pytest.raises(InputError):
                self.ledger.cap(name, cap)
        else:
            self.ledger.cap(name, cap)
            self.caps[name] = cap

    @rule(number=st.integers(1, 5))
    def release(self, number: int) -> None:
        if number > len(self.paid) or number in self.done:
            with pytest.raises(LedgerError):
                self.ledger.released(number, statement("nyc", PureDP(1)), None)
        else:
            name, price = self.paid[number - 1]
            self.ledger.released(number, statement(name, price), f"{number}.parquet")
            self.done.add(number)

    @invariant()
    def the_lists_agree(self) -> None:
        statuses = self.ledger.datasets()
        assert {status.name: status.cap for status in statuses} == self.caps
        for status in statuses:
            paid = self.paid_by(status.name)
            assert status.charges == len(paid)
            in_epsilon = isinstance(status.cap, PureDP) or (status.cap is None and self.all_pure(status.name))
            total = sum(price.epsilon if in_epsilon else price.rho for price in paid)
            assert (status.spent.measure, status.spent.value) == ("ε" if in_epsilon else "ρ", total)
            if status.cap is None:
                assert status.remaining is None
            else:
                whole = status.cap.epsilon if in_epsilon else status.cap.rho
                assert status.remaining.value == max(whole - total, 0)
        records = self.ledger.history()
        assert [(record.charge.dataset, record.charge.price) for record in records] == self.paid
        assert {record.charge.id for record in records if record.released} == self.done


TestAgainstAPlainModel = pytest.mark.slow(AgainstAPlainModel.TestCase)
TestAgainstAPlainModel.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
