"""What was paid, and whether all that is published follows from answers that were paid for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction

import numpy as np

from hazemap.errors import HazemapError
from hazemap.lab.audit.audited_settings import AuditedSetting
from hazemap.lab.audit.evidence.noise_residuals import Residual
from hazemap.lab.audit.findings import Fact, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import DATASET, RunOutcome
from hazemap.lab.audit.synthetic_people import File
from hazemap.privacy.budget import ZCDP, ApproxDP
from hazemap.queries.noisy_queries import Prices
from hazemap.releases import Release, Statistics
from hazemap.trust.curator import Curator

REPLAYED = 6
"""Releases of an order that are made again from their answers."""


def of_ledger(outcome: RunOutcome) -> Iterator[Test]:
    """Every file has a charge of the stated price, in the name of the data set; and the statement says that price."""
    setting, about = outcome.order.setting, str(outcome.order.setting)
    files = [seen for seen in outcome.observations if not seen.error]
    wanted = setting.budget
    measure, value = ("ρ", wanted.rho) if isinstance(wanted, ZCDP) else ("ε", wanted.epsilon)
    prices = {measure: value}
    if isinstance(wanted, ApproxDP):
        prices = {"εδ": value, "ρ": wanted.rho}  # at once, or in the two parts of its ρ
    paid = [
        charge
        for charge in outcome.charges
        if charge.dataset == DATASET and charge.measure in prices and charge.value >= prices[charge.measure]
    ]
    runs = len(outcome.observations)
    yield Fact(
        "no file without its charge", about, len(paid) < len(files), runs, f"{len(files)} files, {len(paid)} charges"
    )
    noted = sum(charge.released for charge in paid)
    yield Fact("every charge of a file is noted", about, noted < len(files), runs, f"{len(files)} files, {noted} noted")
    said = [seen.release.statement.budget for seen in files if seen.release]
    yield Fact("the statement says the price", about, any(each != wanted for each in said), runs)
    if outcome.order.cap is not None:
        room = int(Fraction(outcome.order.cap) // value)
        yield Fact(
            "a cap is kept", about, len(files) > room, runs, f"{len(files)} files, and a cap for {room} releases"
        )


@dataclass
class Replays:
    """Whether questions and numbers follow from the answers in the file, by the code of the judge and without rows."""

    setting: AuditedSetting
    made: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, seen: Observation) -> None:
        """Make one release again."""
        if seen.release is None:
            return
        self.made += 1
        try:
            again = seen.release.replay(prices(self.setting))
        except HazemapError as error:
            self.failed.append(f"{type(error).__name__}: {error}"[:200])
            return
        if not _same(again, seen.release):
            self.failed.append("its numbers are not those that its answers give")

    def tests(self) -> Iterator[Test]:
        """One fact."""
        note = self.failed[0] if self.failed else ""
        yield Fact("all follows from answers", str(self.setting), bool(self.failed), self.made, note)


def prices(setting: AuditedSetting) -> Prices:
    """What a curator's answers cost: public."""
    return Curator(File(()).table).prices(setting.budget)


def _same(ours: Release | Statistics, theirs: Release | Statistics) -> bool:
    """Whether all numbers are equal, but for the last digits."""
    one, other = (each.map if isinstance(each, Release) else each.measurements for each in (ours, theirs))
    names = [name.name for name in fields(one) if isinstance(getattr(one, name.name), np.ndarray | float)]
    return type(one) is type(other) and all(
        np.shape(getattr(one, name)) == np.shape(getattr(other, name))
        and np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, equal_nan=True)
        for name in names
    )


@dataclass
class ObservedShares:
    """What the person who is added was asked in a run, as parts of the budget: everybody's questions add up for them.

    Whatever cohorts a transcript names, in these tables the same person answers; so their shares add too. A question
    costs them in proportion to the part of its sensitivity that they move.
    """

    about: str
    most: float = 0.0
    runs: int = 0

    def add(self, run: list[Residual]) -> None:
        """One run."""
        self.runs += 1
        self.most = max(self.most, sum(each.share * float(np.abs(each.shift).sum()) / each.sensitivity for each in run))

    def tests(self) -> Iterator[Test]:
        """One fact."""
        broken = self.most > 1 + 1e-9
        yield Fact(
            "nobody is asked for more than the budget", self.about, broken, self.runs, f"{self.most:.4f} of the budget"
        )
