"""An order of a campaign as somebody writes it, on a command line or in a form: texts and numbers, beside a map's."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeVar

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.server.trust_options import TrustOptions
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.field_types import check_fields
from hazemap.privacy.budget import exact
from hazemap.specs.release_spec import ReleaseSpec

Choice = TypeVar("Choice", bound=Enum)

MAP = (
    *("epsilon", "delta", "dataset", "box", "cells", "method", "prior", "prior_is_public", "bounding", "mark"),
    *("slots", "time_zone", "since", "until", "goal"),
)
"""What of a specification is said of a campaign's map; beside it stands a `CampaignOrder`."""


@dataclass(frozen=True)
class CampaignOrder:
    """Who is asked for a map, why, how long they have, and who is trusted: the options of `hazemap campaign start`.

    >>> order = CampaignOrder("commuters", "where people live", 2000)
    >>> order.campaign(order.map_of({"epsilon": "1", "box": "13,52,14,53"})).cohort.shards
    (1000, 1000)
    """

    name: str
    purpose: str
    people: int
    numbers: int = 20_000
    shard: int | None = None
    dropout: str = "0.2"
    corrupt: str = "0.1"
    sampling: str | None = None
    mode: str = "malicious"
    local_epsilon: str | None = None
    trust: str = "secure-sum"
    leader: str | None = None
    helper: str | None = None
    shuffler: str | None = None
    shuffler_key: str | None = None
    least: int | None = None
    levels: int | None = None
    stage: float = 120.0
    upload: float | None = None
    quiet: float | None = None
    wait: float = 3600.0

    def __post_init__(self) -> None:
        check_fields(self)
        for least, name in ((2, "people"), (500, "numbers"), (2, "shard"), (1, "least"), (1, "levels")):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {least:,} or more, not {value:,}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CampaignOrder":
        """Of the names of a form; `InputError` for a name that there is none of, and for one that is missing."""
        needed = {"name": "its own, used once", "purpose": "every person sees it", "people": "a round"}
        return cls(**of_names(cls, data, needed))

    def map_of(self, given: Mapping[str, Any]) -> ReleaseSpec:
        """The specification of its map: the names of `MAP`. Without another data set, its own name pays."""
        if unknown := sorted(set(given) - set(MAP)):
            raise InputError(f"the map of a campaign says nothing of {', '.join(map(repr, unknown))[:200]}")
        return ReleaseSpec.from_json({"dataset": self.name, "outside": "drop", **given})

    def campaign(self, spec: ReleaseSpec) -> Campaign:
        """The campaign that is ordered; `InputError` says what of it cannot be.

        The same people are asked in all rounds where maps of slots are cut out of one, otherwise others by default.
        """
        sampling = self.sampling or ("one" if spec.timeslots.timed else "fresh")
        cohort = Cohort(
            self.people,
            min(self.people, self.shard or 1000),
            dropout=exact(self.dropout, "--dropout"),
            corrupt=exact(self.corrupt, "--corrupt"),
            sampling=_chosen("--sampling", Sampling, sampling, "one (the same people in all rounds) or fresh (others)"),
            mode=_chosen("--mode", Mode, self.mode, "semi-honest or malicious"),
        )
        local = None if self.local_epsilon is None else exact(self.local_epsilon, "--local-epsilon")
        whom = TrustOptions(self.trust, self.leader, self.helper, self.shuffler, self.levels, self.shuffler_key)
        return Campaign.of(
            spec,
            most_numbers=self.numbers,
            name=self.name,
            purpose=self.purpose,
            cohort=cohort,
            deadlines=replace(Deadlines.all(self.stage, self.quiet), masked=self.upload or self.stage),
            wait=self.wait,
            local_epsilon=whom.local_epsilon(local, spec.budget),
            carrier=whom.carrier(self.least or cohort.survivors(self.people), local),
        )


def of_names(kind: type, data: Mapping[str, Any], needed: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an order in a form. `InputError` for others, and where one is missing that is `needed`, and why."""
    known = {field.name: field.type for field in fields(kind)}
    if unknown := sorted(set(data) - set(known)):
        raise InputError(f"an order says nothing of {', '.join(map(repr, unknown))[:200]}")
    for name, why in needed.items():
        if name not in data:
            raise InputError(f"an order needs {name} ({why})")
    return {name: _seconds(value) if "float" in str(known[name]) else value for name, value in data.items()}


def _seconds(value: Any) -> Any:
    """A number of seconds; a whole one counts, too."""
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError("seconds are a finite number")
    return value


def _chosen(option: str, kind: type[Choice], text: str, choices: str) -> Choice:
    """The member of an enumeration that an option names."""
    found = {each.name.lower().replace("_", "-"): each for each in kind}.get(text)
    if found is None:
        raise InputError(f"{option} is {choices}; found {text!r:.40}")
    return found
