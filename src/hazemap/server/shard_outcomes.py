"""What became of a shard, as the store keeps it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Summary:
    """What an operator may know of a shard: numbers and reasons, and nobody's answer.

    * `reason`: why it was not opened; empty where it was.
    * `safe`: nobody was asked for what opens it, so the same people may be asked the same again.
    * `dropped`: how many did not answer, by stage. `refusals`: how many devices declined, by reason.
    * `culprits`: devices that broke the protocol, and how. `out`: positions of those, and of who declined; `silent`:
      of who did not answer some stage.
    * `up`, `down`: bytes that devices sent and were sent (bodies of requests and replies), in all, and `most_up` and
      `most_down`, of the device with the most.

    >>> Summary.parse(Summary(clients=3, reason="too few", safe=True).text()).safe
    True
    """

    clients: int
    reason: str = ""
    safe: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
    culprits: Mapping[str, str] = field(default_factory=dict)
    out: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    up: int = 0
    down: int = 0
    most_up: int = 0
    most_down: int = 0

    def text(self) -> str:
        """JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> "Summary":
        """What `text` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(**{**data, "out": tuple(data["out"]), "silent": tuple(data["silent"])})


@dataclass(frozen=True, eq=False)
class ShardOutcome:
    """An opened sum over `people` survivors, or none."""

    summary: Summary
    people: int = 0
    sums: NDArray[np.int64] | None = None
