"""What is audited: a method under a rule and a trust model, at a price."""

from dataclasses import dataclass
from typing import Any

from hazemap.audit.confidence import Claim
from hazemap.audit.places import BOX
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, Budget, PureDP

CURATOR, SECURE_SUM, LOCAL = "curator", "secure sum", "local"
STATISTICS = "stats"
"""Stands for `hazemap stats`: stats, or stats:values-only."""

TRUSTS = (CURATOR, SECURE_SUM, LOCAL)


@dataclass(frozen=True)
class Setting:
    """One row of an audit, in the words of `hazemap release`.

    >>> print(Setting("flat:5", "rows:3"))
    flat:5, rows:3, curator, ε = 1
    """

    method: str
    bounding: str = "one row"
    trust: str = CURATOR
    epsilon: str | None = "1"
    rho: str | None = None
    cells: str = "quadtree:5"
    box: str | None = BOX
    outside: str = "people"

    def __post_init__(self) -> None:
        if self.trust not in TRUSTS:
            raise InputError(f"a trust model is one of: {', '.join(TRUSTS)}; found {self.trust!r}")

    @property
    def budget(self) -> Budget:
        """What a release may cost."""
        return PureDP(self.epsilon) if self.epsilon is not None else ZCDP(self.rho or "0")

    @property
    def claim(self) -> Claim:
        """What is judged."""
        return Claim.of(self.budget)

    @property
    def people_have_ids(self) -> bool:
        """Whether the id column is named: not where each row is a person."""
        return self.bounding != "rows are people"

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.bounding == "one vote"

    @property
    def of_values(self) -> bool:
        """Whether statistics of a value are published instead of a map."""
        return self.method.startswith(STATISTICS)

    @property
    def options_of_values(self) -> dict[str, Any]:
        """As keywords of `hazemap.stats`: the mean of `weight` in hexagons, and its variance."""
        return {
            "person": "user",
            "lon": "lon",
            "lat": "lat",
            "epsilon": self.epsilon,
            "rho": self.rho,
            "box": self.box,
            "value": "weight",
            "low": 0,
            "high": 10,
            "cells": "h3:7",
            "most_cells": 1,
            "variance": True,
            "model": self.method.partition(":")[2] or "full",
        }

    @property
    def options(self) -> dict[str, Any]:
        """As keywords of `hazemap.release`."""
        return {
            "person": "user" if self.people_have_ids else None,
            "lon": "lon",
            "lat": "lat",
            "value": "weight" if self.weighted else None,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "box": self.box,
            "cells": self.cells,
            "method": self.method,
            "bounding": self.bounding,
            "outside": self.outside,
        }

    def __str__(self) -> str:
        price = f"ε = {self.epsilon}" if self.epsilon is not None else f"ρ = {self.rho}"
        outside = f", outside: {self.outside}" if self.outside != "people" else ""
        more = outside + (", box found" if self.box is None else "")
        return f"{self.method}, {self.bounding}, {self.trust}, {price}{more}"


def most_rows(bounding: str) -> int:
    """How many rows of a person a rule may keep: what a worst case has to pass."""
    name, _, number = bounding.partition(":")
    return int(number) if name in ("rows", "cells") else 1
