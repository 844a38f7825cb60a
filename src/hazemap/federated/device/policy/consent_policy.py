"""What a device agrees to, whatever a server asks: a person's own rules, in a file they can read.

A server that asks for more is refused. The reason, in plain words, goes to the server and into the log.

A person's rules can tighten a shipped policy and never widen it: `allowed(shipped, own)` allows no more than `shipped`,
whatever `own` is, and tighter rules of their own allow no more than looser ones. Reports that other servers carry are
judged here too (`carried_refusal`): how many people, which servers, by which keys.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError, Refused
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.recipes.policy import (
    DIGITS,
    LARGEST_COHORT,
    LARGEST_EPSILON,
    MOST_DAYS,
    MOST_REPORTS,
    AnalysisBudget,
    Carrier,
    DeviceLimit,
    ShippedPolicy,
)
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.trust.device_tasks import Task, check
from hazemap.federated.trust.report_carriers import ByOneReport, ByShuffler, CarriedTask, addresses
from hazemap.files.text_files import MOST, read_text, toml_table
from hazemap.privacy.budget import ZCDP, Budget, PureDP, exact
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding, OneVote, RowIsPerson

RULES: Mapping[type, str] = {
    AtMostRows: "rows",
    AtMostCells: "cells",
    OneVote: "one vote",
    RowIsPerson: "rows are people",
}
MODES: Mapping[Mode, str] = {Mode.SEMI_HONEST: "semi-honest", Mode.MALICIOUS: "malicious"}
LONGEST_NAME, LONGEST_PURPOSE = 200, 2_000


@dataclass(frozen=True)
class Policy:
    r"""A person's rules. ε's are exact rationals; `finest` is in metres; patterns are written as for file names.

    >>> Policy().campaign, Policy.parse("[budget]\ncampaign = 0.5").campaign
    (Fraction(1, 1), Fraction(1, 2))
    """

    campaign: Fraction = Fraction(1)
    period: Fraction = Fraction(2)
    days: int = 30
    least: Fraction = Fraction(1, 1_000)
    rounds: int = 1_000
    people: int = 100
    survivors: int = 50
    corrupt: Fraction = Fraction(1, 10)
    modes: tuple[str, ...] = (MODES[Mode.MALICIOUS],)
    longest: int = 1 << 20
    finest: float = 5.0
    rules: tuple[str, ...] = ("rows", "cells", "one vote")
    marks: bool = True
    times: bool = True
    campaigns: tuple[str, ...] = ("*",)
    no_campaigns: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ("*",)
    no_purposes: tuple[str, ...] = ()
    keep: int = 365
    local: Fraction = Fraction(8)
    reports: int = 1_000
    no_fields: tuple[str, ...] = ()
    carriers: tuple[str, ...] = tuple(each.value for each in Carrier)
    delta: Fraction = Fraction(1, 100_000)
    aggregators: tuple[str, ...] = ()
    shufflers: tuple[str, ...] = ()
    upload: int = 1 << 22

    def __post_init__(self) -> None:
        for name in ("campaign", "period", "local", "least"):
            what = {"local": "the most ε₀ of a report", "least": "the least ε of a round"}.get(
                name, f"the most ε of a {name}"
            )
            value = exact(getattr(self, name), what)
            if value < 0:
                raise InputError(f"{what} is 0 or more, not {value}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "delta", exact(self.delta, "the most delta of a period"))
        if not 0 <= self.delta < 1:
            raise InputError(f"the most delta of a period is 0 to below 1, not {self.delta}")
        object.__setattr__(self, "corrupt", exact(self.corrupt, "the part of a shard that works with the server"))
        if not 0 <= self.corrupt < 1:
            raise InputError(f"the part of a shard that works with the server is 0 to below 1, not {self.corrupt}")
        for name in ("days", "rounds", "people", "survivors", "longest", "keep", "upload"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise InputError(f"{name} is a whole number of at least 1, not {getattr(self, name)!r}")
        for name, most in (
            *(("days", MOST_DAYS), ("keep", MOST_DAYS)),
            *(("reports", MOST_REPORTS), ("rounds", MOST_REPORTS)),
        ):
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) <= most:
                raise InputError(f"{name} is a whole number, at most {most:,}; found {getattr(self, name)!r:.40}")
        if not isinstance(self.finest, int | float) or not self.finest >= 0:
            raise InputError(f"the finest cell has a side in metres of 0 or more, not {self.finest!r}")
        if unclear := next((name for name in ("marks", "times") if not isinstance(getattr(self, name), bool)), None):
            raise InputError(f"{unclear} is true or false, not {getattr(self, unclear)!r}")
        for name, known in (
            ("modes", MODES.values()),
            ("rules", RULES.values()),
            ("carriers", [each.value for each in Carrier]),
        ):
            if strange := set(getattr(self, name)) - set(known):
                raise InputError(f"{name} are some of {', '.join(known)}; found {', '.join(sorted(strange))}")

    @classmethod
    def read(cls, path: Path) -> "Policy":
        """The rules in a file."""
        return cls.parse(read_text(path, "the policy", advice="`hazemap device policy` prints one"))

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """The rules in a text (TOML); what it leaves out is as it is by default."""
        found = toml_table(text, "the policy", MOST)
        values: dict[str, Any] = {}
        for section, content in found.items():
            names = {key: field for key, field, _ in _PAGE.get(section, ())}
            if not isinstance(content, dict) or (strange := set(content) - set(names)):
                wrong = f"{section}.{sorted(strange)[0]}" if isinstance(content, dict) else section
                raise InputError(
                    f"a policy says nothing about {wrong!r}: `hazemap device policy` prints all it can say"
                )
            values |= {names[key]: _value(f"{section}.{key}", names[key], value) for key, value in content.items()}
        return cls(**values)

    def to_toml(self) -> str:
        """As `parse` reads it, with a comment for every rule."""
        lines = ["# What this device agrees to. A server that asks for more is refused, and told why."]
        for section, rules in _PAGE.items():
            lines += ["", f"[{section}]"]
            for key, field, comment in rules:
                lines += [f"# {comment}", f"{key} = {_written(getattr(self, field))}"]
        return "\n".join(lines) + "\n"

    def refusal(self, task: Task, terms: SessionParameters) -> str | None:
        """Why a device does not answer this task in a session of these terms; None where it does.

        What was spent is the account's to judge; so is everything that a recipe costs (`recipe_answer`).
        """
        cells = task.recipe is None
        try:
            if reason := self._order(task):
                return reason
            self.floors(task).check(terms)
            if cells and (reason := self._question(task)):
                return reason
            check(task, terms)
        except Refused as error:
            return str(error)
        return None

    def order_refusal(self, task: Task) -> str | None:
        """Why a task is not answered, whoever carries the answer; None where it is.

        What a recipe asks and costs is `recipe_answer`'s to judge.
        """
        try:
            if task.question.size > self.longest:
                return f"an answer would have {task.question.size:,} numbers, but at most {self.longest:,} are allowed"
            return self._order(task) or (self._question(task) if task.recipe is None else None)
        except Refused as error:
            return str(error)

    def _order(self, task: Task) -> str | None:
        price = self._price(task) if task.recipe is None else None
        return self._who(task) or price or self._assumption(task)

    def floors(self, task: Task | None = None) -> MinimumParameters:
        """What the protocol's client insists on. It sends its vector without noise only if the task randomises it."""
        modes = frozenset(mode for mode, name in MODES.items() if name in self.modes)
        return MinimumParameters(
            clients=max(self.people, self.survivors),
            survivors=self.survivors,
            corrupt=self.corrupt,
            longest=self.longest,
            modes=modes,
            randomised=task is not None and task.randomiser is not None,
        )

    def _who(self, task: Task) -> str | None:
        if len(task.campaign) > LONGEST_NAME or len(task.purpose) > LONGEST_PURPOSE:
            return f"a campaign's name has at most {LONGEST_NAME} letters, its purpose {LONGEST_PURPOSE}"
        if not (task.campaign + task.purpose).isprintable():
            return "the campaign's name or purpose holds characters that cannot be printed"
        for name, what, welcome in self._welcomes(task.campaign, task.purpose):
            if not welcome:
                return f"this device does not answer the {what} {name!r}"
        return None

    def welcomes(self, name: str, purpose: str) -> bool:
        """Whether a campaign, or an analysis, of this name and for this purpose is answered at all."""
        return all(welcome for *_, welcome in self._welcomes(name, purpose))

    def _welcomes(self, name: str, purpose: str) -> Iterator[tuple[str, str, bool]]:
        yield name, "campaign", _fits(name, self.campaigns) and not _fits(name, self.no_campaigns)
        yield purpose, "purpose", _fits(purpose, self.purposes) and not _fits(purpose, self.no_purposes)

    def _price(self, task: Task) -> str | None:
        if isinstance(task.budget, ZCDP):
            return "a campaign says its price in epsilon, or in epsilon and delta; this one says it in rho"
        if task.price.rho > task.budget.rho:
            return f"this round costs {task.price}, more than its whole campaign ({task.budget})"
        if reason := self.too_cheap(task.price):
            return reason
        whole = task.price if isinstance(task.price, PureDP) else task.budget
        if whole.epsilon > self.campaign:
            return f"this round costs {whole}, but one campaign may cost {float(self.campaign):.6g} in all"
        if task.randomiser is not None and task.randomiser.replacement > self.local:
            return (
                f"each report by itself would cost ε₀ = {float(task.randomiser.replacement):.6g}, but on this device it"
                f" may cost {float(self.local):.6g}"
            )
        return None

    def too_cheap(self, price: Budget) -> str | None:
        """Why a round of this price is not answered: rounds that cost nearly nothing would fill the device's disk."""
        enough = price.epsilon >= self.least if isinstance(price, PureDP) else 2 * price.rho >= self.least**2
        if enough:
            return None
        return f"this round costs {price}, but on this device a round costs ε = {float(self.least):.6g} or more"

    def _assumption(self, task: Task) -> str | None:
        if task.cohort.corrupt < self.corrupt:
            return (
                f"the campaign assumes that at most {float(100 * task.cohort.corrupt):.3g} % of the others work with"
                f" the server, but this device assumes {float(100 * self.corrupt):.3g} %"
            )
        return None

    def _question(self, task: Task) -> str | None:
        question = describe_query(task)
        for rule in question.rules:
            if _name(rule) not in self.rules:
                return f"the rule {str(rule)!r} is not one of: {', '.join(self.rules)}"
        if not question.side >= self.finest:
            return f"the smallest cell is {question.side:.3g} m wide, but cells must be at least {self.finest:g} m wide"
        if question.marked and not self.marks:
            return "this device does not reveal its marks"
        if question.slots is not None and not self.times:
            return "this device does not reveal when its rows were"
        return None


_PAGE: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "budget": (
        ("campaign", "campaign", "The most ε that one campaign, or one analysis in its period, may cost in all."),
        ("period", "period", "The most ε that all campaigns and recipes together may cost in this many days:"),
        ("days", "days", "the length of that time."),
        (
            "least",
            "least",
            "The least ε of one round or report: cheaper ones only fill a disk.",
        ),
        ("rounds", "rounds", "The most rounds and reports that are answered in that time."),
        ("delta", "delta", "The most δ that all campaigns together may cost in it, where people randomise reports."),
    ),
    "cohort": (
        ("people", "people", "The least people that are asked together in one secure sum."),
        ("survivors", "survivors", "The least answers that a sum is opened with."),
        ("corrupt", "corrupt", "The part of the others that may work with the server: campaigns must assume as much."),
        (
            "modes",
            "modes",
            "Protocols: 'malicious' (the server may break it); 'semi-honest' only if you trust it not to.",
        ),
    ),
    "question": (
        ("longest", "longest", "The most numbers in one answer."),
        ("finest", "finest", "The side of the smallest cell, in metres."),
        ("rules", "rules", "What one person may contribute: 'rows', 'cells', 'one vote' or 'rows are people'."),
        ("marks", "marks", "Whether rows with a mark may be counted apart from those without."),
        ("times", "times", "Whether rows may be counted by when they were, as in maps of every hour."),
    ),
    "campaigns": (
        ("allowed", "campaigns", "Campaigns by name; * stands for any letters."),
        ("denied", "no_campaigns", "Campaigns that are refused although they are allowed."),
        ("purposes", "purposes", "Purposes, as the campaign words them."),
        ("denied_purposes", "no_purposes", "Purposes that are refused although they are allowed."),
    ),
    "servers": (
        (
            "aggregators",
            "aggregators",
            "Two of these may carry reports in halves: addresses, each perhaps with #SHA-256 of its public key.",
        ),
        ("shufflers", "shufflers", "One of these may shuffle reports: addresses, written in the same way."),
        ("upload", "upload", "The most bytes that one report may be for a shuffler."),
    ),
    "rows": (("keep", "keep", "Days after which a row, or an event, is deleted for good."),),
    "recipes": (
        ("local", "local", "The most ε₀ of one report, against whoever sees the report alone."),
        ("reports", "reports", "The most reports to recipes in the days of the budget."),
        ("denied_fields", "no_fields", "Fields that no recipe may read, such as 'profile.age' or 'profile.*'."),
        ("carriers", "carriers", "What may stand between a report and the sum that is told."),
    ),
}
"""Every section of the file: its keys, the field each sets, and the comment above it."""


def _name(rule: Bounding) -> str:
    return RULES[type(rule)]


def _fits(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _value(key: str, field: str, value: Any) -> Any:
    kind = {each.name: each.type for each in fields(Policy)}[field]
    if kind == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{key} is a list of texts, not {value!r}")
        return tuple(value)
    if kind is bool and isinstance(value, bool):
        return value
    if isinstance(value, bool | list | dict):
        raise InputError(f"{key} is a number, not {value!r}")
    return value


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_quoted(item) for item in value) + "]"
    if isinstance(value, Fraction):
        decimal = f"{float(value):g}"
        return decimal if Fraction(decimal) == value else _quoted(str(value))
    return f"{value}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def caution_about_small_sums(people: int) -> str | None:
    """What whoever orders a sum over so few people is told; None where the usual policy allows it."""
    usual = Policy().people
    if people >= usual:
        return None
    return (
        f"devices refuse a secure sum over fewer than {usual} people unless their policy allows it, and "
        f"this campaign asks for one over {people}: what it costs is charged whether they answer or not"
    )


GRAIN = 10**12


def restrict_policy(shipped: ShippedPolicy, own: Policy) -> ShippedPolicy:
    """What both allow. O(lines · patterns).

    * a budget of an analysis is at most what the person lets one campaign cost, and all together are within the period
      that they set for campaigns and recipes alike, whatever it is called;
    * a field, an analysis, a purpose or a carrier that they deny is gone: with it go the analyses that it leaves
      without a field, or without a carrier;
    * a cohort is as large as the larger of both minima, an event kept as long as the shorter of both times.

    >>> from hazemap.federated.recipes.policy_document import example
    >>> mine = restrict_policy(example(), Policy(no_fields=("profile.*",), local=Fraction(4)))
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


_PIN = re.compile(r"(?P<url>[^#]+)(?:#(?P<key>[0-9a-f]{64}))?")


def pinned_keys(policy: Policy, carried: CarriedTask) -> dict[str, str]:
    """The servers that may carry such a report, each with the SHA-256 of its key, or nothing.

    >>> from hazemap.federated.device.policy.consent_policy import Policy
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
    known, setting = pinned_keys(policy, carried), "aggregators" if two else "shufflers"
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
