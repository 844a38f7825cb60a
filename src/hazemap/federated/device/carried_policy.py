"""What a policy says of reports that other servers carry: how many people, which servers, by which keys."""

import re
from math import sqrt

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.trust.carried_tasks import CarriedTask
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, addresses

_PIN = re.compile(r"(?P<url>[^#]+)(?:#(?P<key>[0-9a-f]{64}))?")


def pins(policy: Policy, carried: CarriedTask) -> dict[str, str]:
    """The servers that may carry such a report, each with the SHA-256 of its key, or nothing.

    >>> from hazemap.federated.device.consent_policy import Policy
    >>> _read(("https://one.example/", "https://two.example/#" + 64 * "0"))["https://two.example/"][:4]
    '0000'
    """
    return _read(policy.shufflers if isinstance(carried.carrier, ByShuffler) else policy.aggregators)


def carried_refusal(policy: Policy, carried: CarriedTask) -> str | None:
    """Why a device does not report to these servers, or not on these terms; None where it does."""
    task, carrier = carried.task, carried.carrier
    if reason := policy.order_refusal(task):
        return reason
    if task.cohort.people < policy.people:
        return f"only {task.cohort.people:,} people are asked together, but {policy.people:,} must be"
    if carrier.minimum < policy.survivors:
        return f"sums of {carrier.minimum:,} reports would be opened, but {policy.survivors:,} must be in them"
    two = not isinstance(carrier, ByShuffler)
    if two and Carrier.TWO_SERVERS.value not in policy.carriers:
        return "this device does not report to two servers"
    known, setting = pins(policy, carried), "aggregators" if two else "shufflers"
    for url in addresses(carrier):
        if url not in known:
            return (
                f"this device reports only to servers that its policy names, and {url} is none of them: add it to "
                f"{setting} in [servers] if you trust that its operator works with nobody else here"
            )
    return _too_fine(policy, carried)


def _too_fine(policy: Policy, carried: CarriedTask) -> str | None:
    """One report answers questions about the finest cells of its tree."""
    encoder = carried.task.question.encoder
    if not isinstance(carried.carrier, ByOneReport):
        return None
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves) or carried.task.question.share != 1:
        return "one report answers counts of cells, at the price of the whole campaign"
    tree = encoder.cells.tree
    cells = tree.root
    for _ in range(tree.depth):
        cells = tree.children(cells)[[0, -1]]
    side = sqrt(float(tree.area(cells).min()))
    if side < policy.finest:
        return f"the smallest cell is {side:.3g} m wide, but cells must be at least {policy.finest:g} m wide"
    return None


def _read(entries: tuple[str, ...]) -> dict[str, str]:
    found = (_PIN.fullmatch(each) for each in entries)
    return {each["url"]: each["key"] or "" for each in found if each is not None}
