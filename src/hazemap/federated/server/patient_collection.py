"""A collection from a leader that may not be there for a while: it is killed, and started again."""

from collections.abc import Callable
from time import monotonic, sleep

from hazemap.errors import Unreachable
from hazemap.federated.aggregator.collector_client import LONGEST, CollectorClient
from hazemap.federated.protocols.dap.basic_types import Interval
from hazemap.federated.protocols.dap.collector import AggregateResult

PATIENCE = 600.0
"""Seconds that the two servers have for a batch, unless said otherwise."""


def collected(
    client: CollectorClient,
    interval: Interval,
    agg_param: bytes = b"",
    wait: float = PATIENCE,
    pause: Callable[[float], None] = sleep,
) -> AggregateResult:
    """The result of a batch within `wait` seconds; the same request again gives the same. Errors as of `collect`."""
    until, again = monotonic() + wait, 0.25
    while True:
        try:
            return client.collect(interval, agg_param, max(0.0, until - monotonic()))
        except Unreachable:
            if monotonic() + again > until:
                raise
            pause(again)
            again = min(2 * again, LONGEST)
