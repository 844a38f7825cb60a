"""When one policy allows no more than another: an order on policies, by which a person's rules are known to tighten."""

from hazemap.federated.recipes.policy import AnalysisBudget, DeviceLimit, FieldBudget, ShippedPolicy
from hazemap.federated.recipes.query_class import AnyQueryOverFields, ListedQueries, QueryClass, QueryTemplates

_Line = AnalysisBudget | FieldBudget | DeviceLimit


def allows_no_more(one: ShippedPolicy, other: ShippedPolicy) -> bool:
    """Whether whatever `one` allows, `other` allows as well: reflexive, transitive; O(lines²).

    >>> from dataclasses import replace
    >>> from hazemap.federated.recipes.policy_document import example
    >>> allows_no_more(replace(example(), analyses=()), example()), allows_no_more(example(), example())
    (True, True)
    """
    return (
        one.days >= other.days
        and one.accounting is other.accounting
        and all(any(_limit_within(mine, theirs) for mine in one.limits) for theirs in other.limits)
        and all(_field_within(each, other.field(each.field)) for each in one.fields)
        and all(_analysis_within(each, other.analysis(each.name)) for each in one.analyses)
        and all(
            (theirs := other.stream(each.name)) is not None
            and theirs.fields == each.fields
            and each.keep <= theirs.keep
            for each in one.streams
        )
    )


def _line_within(one: _Line, other: _Line) -> bool:
    return one.epsilon <= other.epsilon and one.delta <= other.delta and one.reports <= other.reports


def _limit_within(one: DeviceLimit, other: DeviceLimit) -> bool:
    return one.days >= other.days and one.only_epsilon == other.only_epsilon and _line_within(one, other)


def _field_within(one: FieldBudget, other: FieldBudget | None) -> bool:
    return other is not None and one.local_epsilon <= other.local_epsilon and _line_within(one, other)


def _analysis_within(one: AnalysisBudget, other: AnalysisBudget | None) -> bool:
    return (
        other is not None
        and one.purpose == other.purpose
        and one.minimum_cohort >= other.minimum_cohort
        and set(one.carriers) <= set(other.carriers)
        and set(one.cohort_fields) <= set(other.cohort_fields)
        and _line_within(one, other)
        and _queries_within(one.queries, other.queries)
    )


def _queries_within(one: QueryClass, other: QueryClass) -> bool:
    if not (set(one.fields) <= set(other.fields) and set(one.functions) <= set(other.functions)):
        return False
    match one, other:
        case _, AnyQueryOverFields():
            return True
        case ListedQueries(), ListedQueries():
            return set(one.queries) <= set(other.queries)
        case QueryTemplates(), QueryTemplates():
            return set(one.templates) <= set(other.templates)
        case _:
            return False
