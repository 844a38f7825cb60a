"""Why a round was not opened, in words: how many broke the protocol, declined, fell silent, and how many were left."""

from collections import Counter
from collections.abc import Sequence

from hazemap.federated.server.secure_sum_plan import SecureSumPlan, ShardOutcome

PAID = ". What the campaign has paid stays paid: "
"""Between why it failed and what to do about it."""

MOST_REASONS = 3
"""Reasons of culprits that are shown; the status has them all."""

MOST_LETTERS = 200
"""Of a reason that a device gave: what a device writes is its own."""


def failure(ended: Sequence[tuple[SecureSumPlan, ShardOutcome]], round_: int) -> str:
    """What to tell the operator of a round of which no shard was opened, by the last attempt at each shard.

    Each number is of people; nobody is named.
    """
    asked = sum(outcome.summary.clients for _, outcome in ended)
    needed = sum(plan.terms.survivors for plan, _ in ended)
    culprits = [why for _, outcome in ended for why in outcome.summary.culprits.values()]
    declined = sum(count for _, outcome in ended for count in outcome.summary.refusals.values())
    silent = sum(len(outcome.summary.silent) for _, outcome in ended)
    left = asked - sum(len({*outcome.summary.out, *outcome.summary.silent}) for _, outcome in ended)
    attempts = max(plan.attempt for plan, _ in ended)
    causes = [
        f"{len(culprits):,} broke the protocol ({'; '.join(sorted(set(culprits))[:MOST_REASONS])})" if culprits else "",
        f"{declined:,} declined ({_commonest(ended)})" if declined else "",
        f"{silent:,} did not answer in time" if silent else "",
    ]
    why = ", ".join(filter(None, causes)) or "nobody broke the protocol, declined or fell silent"
    reasons = "; ".join(sorted({outcome.summary.reason for _, outcome in ended if outcome.summary.reason}))
    return (
        f"round {round_}: none of {len(ended):,} shards could be opened, at attempt {attempts}. Of {asked:,} people "
        f"asked {why}; {left:,} were left, and {needed:,} had to be. {reasons}{PAID}`hazemap campaign resume` asks "
        "this round again, and `hazemap campaign release-partial` publishes what earlier rounds answered"
    )


def _commonest(ended: Sequence[tuple[SecureSumPlan, ShardOutcome]]) -> str:
    """The reason that most of those who declined gave."""
    reasons = Counter[str]()
    for _, outcome in ended:
        reasons.update(outcome.summary.refusals)
    reason = reasons.most_common(1)[0][0][:MOST_LETTERS]
    return f"most often: {''.join(filter(str.isprintable, reason))}"
