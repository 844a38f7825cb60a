"""What a device allows: the policy it ships with, as far as its owner's own rules allow it too.

A person's rules can tighten a shipped policy and never widen it: `allowed(shipped, own)` allows no more than `shipped`,
whatever `own` is, and tighter rules of their own allow no more than looser ones (`recipes.policy_order`).
"""

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction

from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.recipes.policy import (
    DIGITS,
    LARGEST_COHORT,
    LARGEST_EPSILON,
    AnalysisBudget,
    DeviceLimit,
    ShippedPolicy,
)
from hazemap.federated.recipes.query_class import StreamFieldName

GRAIN = 10**12


def allowed(shipped: ShippedPolicy, own: Policy) -> ShippedPolicy:
    """What both allow. O(lines · patterns).

    * a budget of an analysis is at most what the person lets one campaign cost, and all together are within the period
      that they set for campaigns and recipes alike, whatever it is called;
    * a field, an analysis, a purpose or a carrier that they deny is gone: with it go the analyses that it leaves
      without a field, or without a carrier;
    * a cohort is as large as the larger of both minima, an event kept as long as the shorter of both times.

    >>> from hazemap.federated.recipes.policy_document import example
    >>> mine = allowed(example(), Policy(no_fields=("profile.*",), local=Fraction(4)))
    >>> [str(each.field) for each in mine.fields], mine.fields[0].local_epsilon
    (['keyboard.ngram', 'keyboard.perplexity'], Fraction(4, 1))
    """
    return replace(
        shipped,
        limits=(
            *shipped.limits,
            DeviceLimit(own.days, _at_most(own.period, LARGEST_EPSILON), Fraction(1), own.reports),
        ),
        streams=tuple(replace(each, keep=min(each.keep, own.keep)) for each in shipped.streams),
        fields=tuple(
            replace(each, local_epsilon=_at_most(own.local, each.local_epsilon))
            for each in shipped.fields
            if not _denied(each.field, own)
        ),
        analyses=tuple(_analyses(shipped, own)),
    )


def _analyses(shipped: ShippedPolicy, own: Policy) -> Iterable[AnalysisBudget]:
    for each in shipped.analyses:
        read = tuple(field for field in each.queries.fields if not _denied(field, own))
        carriers = tuple(carrier for carrier in each.carriers if carrier.value in own.carriers)
        welcome = own.welcomes(each.name, each.purpose) and own.people <= LARGEST_COHORT
        if read and carriers and welcome:
            yield replace(
                each,
                epsilon=_at_most(own.campaign, each.epsilon),
                queries=replace(each.queries, fields=read),
                minimum_cohort=max(each.minimum_cohort, own.people),
                carriers=carriers,
                cohort_fields=tuple(one for one in each.cohort_fields if not _denied(one.field, own)),
            )


def _at_most(own: Fraction, most: Fraction) -> Fraction:
    """The smaller of both, rounded down where a person wrote more digits than a policy has."""
    short = own if max(own.numerator, own.denominator) < 10**DIGITS else Fraction(int(own * GRAIN), GRAIN)
    return most if own >= most else short


def _denied(field: StreamFieldName, own: Policy) -> bool:
    return any(fnmatchcase(str(field), pattern) for pattern in own.no_fields)
