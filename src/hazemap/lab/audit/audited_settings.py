"""Audited settings: a method under a rule and a trust model, at a price."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hazemap.errors import InputError
from hazemap.lab.audit.confidence_bounds import Claim
from hazemap.lab.audit.synthetic_people import BOX
from hazemap.lab.audit.table_formats import CSV, FORMS, WITH_POINTS
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.spatial.bounding_box import Box

CURATOR, SECURE_SUM, LOCAL = "curator", "secure sum", "local"
TWO_SERVERS, ONE_REPORT = "two servers", "one report"
REPORTS, RECIPES = "local reports", "recipes"
"""Secure sums of randomised reports: of maps, and of devices that answer a recipe."""

SHUFFLE = "shuffled"
"""A shuffler and an analyser, by the real protocol in parts."""

REPORT, STUDY, SUM = "a report", "a study", "an opened sum"
"""What is seen of devices that answer a recipe, in the place of a method."""

PARTS = "sums of parts"
"""What is asked through a shuffler, in the place of a method."""

STATISTICS = "stats"
"""Stands for `hazemap stats`: stats, or stats:VARIANT."""

DECLARED: dict[str, Any] = {"low": 0, "high": 10, "cells": "h3:7", "max_cells_per_person": 1}
VARIANTS: dict[str, dict[str, Any]] = {
    "": {**DECLARED, "variance": True},
    "values-only": {**DECLARED, "variance": True, "model": "values-only"},
    "quantiles": {**DECLARED, "quantiles": (0.5, 0.9), "bins": 32},
    "bounds": {"bounds": "private", "cells": "h3:7", "max_cells_per_person": 1, "quantiles": (0.5,), "bins": 8},
    "select": {**DECLARED, "cells": "h3:8", "select": True},
    "slots": {**DECLARED, "cells": "h3:6", "slots": "hour-of-day", "time": "time", "max_cells_per_person": 3},
    "records": {**DECLARED, "max_records_per_cell": 3, "variance": True},
}
"""Statistics by what is asked for beside the mean, as keywords of `hazemap.stats`."""

ALL_STATISTICS = tuple(f"{STATISTICS}:{name}".rstrip(":") for name in VARIANTS)

MAPS: dict[str, dict[str, Any]] = {
    "map:slots": {"slots": "hour-of-day", "time": "time"},
    "map:marks": {"mark": "weight=1", "outside": "drop"},
    "map:marks-in-slots": {"mark": "weight=1", "outside": "drop", "slots": "clock:7:00,16:00", "time": "time"},
}
"""Maps with more than numbers of people, in the place of a method, as keywords of `hazemap.release`."""

DISTRICTS = "districts"
"""Stands for a file of districts that is written beside the table, and named in its place."""

TRUSTS = (CURATOR, SECURE_SUM, TWO_SERVERS, ONE_REPORT, LOCAL, REPORTS, RECIPES, SHUFFLE)


@dataclass(frozen=True)
class AuditedSetting:
    """One row of an audit, in the words of `hazemap release`.

    >>> print(AuditedSetting("flat:5", "rows:3"))
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
    form: str = CSV
    delta: str | None = None
    dropping: str | None = None
    local: str | None = None

    def __post_init__(self) -> None:
        if self.trust not in TRUSTS:
            raise InputError(f"a trust model is one of: {', '.join(TRUSTS)}; found {self.trust!r}")
        if self.form not in FORMS:
            raise InputError(f"a table is one of: {', '.join(FORMS)}; found {self.form!r}")
        if self.method.startswith("map:") and self.method not in MAPS:
            raise InputError(f"maps of more than people are {', '.join(MAPS)}; found {self.method!r}")
        if self.of_values and self.method.partition(":")[2] not in VARIANTS:
            raise InputError(f"statistics are {', '.join(f'stats:{name}' for name in VARIANTS if name)}, or stats")

    @property
    def budget(self) -> Budget:
        """What a release may cost."""
        if self.epsilon is None:
            return ZCDP(self.rho or "0")
        return PureDP(self.epsilon) if self.delta is None else ApproxDP(self.epsilon, self.delta)

    @property
    def claim(self) -> Claim:
        """What is judged: of reports ε and δ as they are stated."""
        if self.trust in (REPORTS, RECIPES) and self.delta is not None:
            return Claim("ε", float(Fraction(self.epsilon or "0")), float(Fraction(self.delta)))
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
    def algorithm(self) -> Any:
        """The method itself, over cells in the box."""
        from hazemap.specs.method_from_name import method_from_name
        from hazemap.specs.parsing import bounding, budget, cells

        box = None if self.box is None else Box.parse(self.box)
        money = budget(self.epsilon, self.delta, self.rho)
        return method_from_name(self.method, cells(self.cells), box, bounding(self.bounding), money)

    def options(self, folder: Path) -> dict[str, Any]:
        """As keywords of `hazemap.release` or `hazemap.stats`; `folder` holds the districts' file."""
        shared = {
            "person": "user" if self.people_have_ids else None,
            "lon": None if self.form in WITH_POINTS else "lon",
            "lat": None if self.form in WITH_POINTS else "lat",
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "box": self.box,
        }
        if self.of_values:
            return {**shared, "value": "weight", **VARIANTS[self.method.partition(":")[2]]}
        cells = self.cells.replace(DISTRICTS, f"{DISTRICTS}@12:{folder / DISTRICTS}.geojson")
        value = "weight" if self.weighted else None
        chosen = {"cells": cells, "method": self.method, "bounding": self.bounding, "outside": self.outside}
        if self.method in MAPS:
            chosen = {**chosen, **MAPS[self.method]}
            del chosen["method"]
        return {**shared, "value": value, **chosen}

    def __str__(self) -> str:
        price = f"ε = {self.epsilon}" if self.epsilon is not None else f"ρ = {self.rho}"
        more = [
            f"ε₀ = {self.local}" if self.local is not None else "",
            price + (f" and δ = {self.delta}" if self.delta is not None else ""),
            f"outside: {self.outside}" if self.outside != "people" else "",
            self.cells if not self.of_values and not self.cells.startswith("quadtree") else "",
            {BOX: "", None: "box found"}.get(self.box, f"box {self.box}") if self.cells != DISTRICTS else "",
            self.form if self.form != CSV else "",
            f"{self.dropping} of people drop out" if self.dropping is not None else "",
        ]
        rule = [] if self.trust in (RECIPES, SHUFFLE) else [self.bounding]
        return ", ".join([self.method, *rule, self.trust, *filter(None, more)])


def most_rows(bounding: str) -> int:
    """How many rows of a person a rule may keep: what a worst case has to pass."""
    name, _, number = bounding.partition(":")
    return int(number) if name in ("rows", "cells") else 1
