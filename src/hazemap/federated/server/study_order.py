"""An order of a study as somebody writes it, on a command line or in a form: texts and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.server.campaign_order import of_names
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.server.trust_options import TrustOptions
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.field_types import check_fields
from hazemap.privacy.budget import exact


@dataclass(frozen=True)
class StudyOrder:
    """Whose budget pays, how much, who is asked and trusted: the options of `hazemap study begin`.

    >>> StudyOrder("spring", "next_word", "0.5", 2000).study().cohort.shards
    (1000, 1000)
    """

    name: str
    analysis: str
    epsilon: str
    people: int
    delta: str = "1e-6"
    reports: int = 10
    shard: int | None = None
    dropout: str = "0.2"
    corrupt: str = "0.1"
    stage: float = 120.0
    quiet: float | None = None
    wait: float = 3600.0
    trust: str = "secure-sum"
    leader: str | None = None
    helper: str | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for least, name in ((2, "people"), (1, "reports"), (2, "shard"), (1, "least")):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {least:,} or more, not {value:,}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "StudyOrder":
        """Of the names of a form; `InputError` for a name that there is none of, and for one that is missing."""
        needed = {"name": "its own", "analysis": "whose budget pays", "epsilon": "of all rounds", "people": "a round"}
        return cls(**of_names(cls, data, needed))

    def study(self) -> StudySpec:
        """The study that is ordered; `InputError` says what of it cannot be."""
        cohort = Cohort(
            self.people,
            min(self.people, self.shard or 1000),
            exact(self.dropout, "--dropout"),
            exact(self.corrupt, "--corrupt"),
        )
        whom = TrustOptions(self.trust, self.leader, self.helper)
        return StudySpec(
            self.name,
            self.analysis,
            exact(self.epsilon, "--epsilon"),
            exact(self.delta, "--delta"),
            self.reports,
            cohort,
            Deadlines.all(self.stage, self.quiet),
            self.wait,
            carrier=whom.of_study(self.least, cohort.people - floor(cohort.people * cohort.dropout)),
        )
