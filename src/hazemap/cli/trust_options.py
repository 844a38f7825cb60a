"""Options by which a campaign says whom it trusts: `--trust` and what that needs."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.privacy.budget import Budget
    from hazemap.trust.report_carriers import ByTwoServers, ReportCarrier

TRUST = "Who is trusted"
LEVELS = 8
"""Levels of a tree that one report answers, unless said otherwise."""

TrustName = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="NAME",
        rich_help_panel=TRUST,
        help="secure-sum, local, two-servers, one-report or shuffled: who stands between reports and the map.",
    ),
]
StudyTrust = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="NAME",
        rich_help_panel=TRUST,
        help="secure-sum or two-servers: who stands between reports and their sums. Recipes name it as their carrier.",
    ),
]
Leader = Annotated[
    str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="Of two servers: the one that takes reports.")
]
Helper = Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="Of two servers: the other.")]
Shuffler = Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="The shuffler's address.")]
ShufflerKey = Annotated[
    str | None, typer.Option("--shuffler-key", metavar="HEX", rich_help_panel=TRUST, help="The key that it prints.")
]
LeastReports = Annotated[
    int | None,
    typer.Option(
        "--least",
        min=1,
        rich_help_panel=TRUST,
        help="The fewest reports that are opened, of servers or shuffled. By default all but those who may drop out.",
    ),
]
Levels = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=TRUST, help=f"Of one-report: how many levels a report answers. By default {LEVELS}."
    ),
]


class TrustOptions(NamedTuple):
    """What was given."""

    trust: str
    leader: str | None = None
    helper: str | None = None
    shuffler: str | None = None
    levels: int | None = None
    shuffler_key: str | None = None

    def carrier(self, least: int, local: Fraction | None = None) -> "ReportCarrier | None":
        """Who carries the reports, at `least` so many at a time; None for secure sums.

        A shuffler carries vectors in parts, or with a `local` epsilon reports of that ε₀ at most.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").carrier(100).leader
        'https://one.example/'
        """
        from hazemap.trust.report_carriers import TRUSTS, ByOneReport, ByShuffler, ByTwoServers

        if self.trust not in TRUSTS:
            raise InputError(f"--trust is one of {', '.join(TRUSTS)}; found {self.trust!r:.40}")
        two, one, mixed = (self.trust == each.trust for each in (ByTwoServers, ByOneReport, ByShuffler))
        needed = {"leader": two or one, "helper": two or one, "shuffler": mixed, "shuffler_key": mixed}
        for name, wanted in needed.items():
            if (getattr(self, name) is not None) != wanted:
                raise InputError(
                    f"--trust {self.trust} is {'given with' if wanted else 'given without'} --{name.replace('_', '-')}"
                )
        if self.levels is not None and not one:
            raise InputError("--levels is for --trust one-report: other reports answer one question each")
        if two:
            return ByTwoServers(_slashed(self.leader), _slashed(self.helper), least)
        if one:
            return ByOneReport(_slashed(self.leader), _slashed(self.helper), least, self.levels or LEVELS)
        return ByShuffler(_slashed(self.shuffler), least, self.shuffler_key or "", local) if mixed else None

    def of_study(self, least: int | None, survivors: int) -> "ByTwoServers | None":
        """Who carries reports to recipes, at `least` so many at a time, or `survivors`; None for secure sums.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").of_study(None, 90).minimum
        90
        """
        from hazemap.trust.report_carriers import SECURE_SUM, TRUSTS, ByTwoServers

        if self.trust in TRUSTS and self.trust not in (SECURE_SUM, ByTwoServers.trust):
            raise InputError(
                f"a study asks by --trust secure-sum or two-servers, not {self.trust}: a report to a recipe answers "
                "that one alone, and nobody sees it before it is summed"
            )
        if self.trust == SECURE_SUM and least is not None:
            raise InputError("--least is for --trust two-servers: a secure sum is opened as --dropout says")
        found = self.carrier(least or survivors)
        return found if isinstance(found, ByTwoServers) else None

    def local_epsilon(self, given: Fraction | None, budget: "Budget") -> Fraction | None:
        """The most ε₀ of a report. In `local` the budget is what the reports hide by themselves.

        >>> from hazemap.privacy.budget import PureDP
        >>> TrustOptions("local").local_epsilon(None, PureDP("0.5"))
        Fraction(1, 1)
        """
        from hazemap.privacy.budget import PureDP
        from hazemap.trust.report_carriers import LOCAL, ByShuffler

        if self.trust == ByShuffler.trust:
            return None
        if self.trust != LOCAL:
            return given
        if not isinstance(budget, PureDP):
            raise InputError("--trust local relies on nobody, so it spends ε alone: leave --delta out")
        return given or min(2 * budget.epsilon, Fraction(64))


def _slashed(url: str | None) -> str:
    url = url or ""
    return url if url.endswith("/") else f"{url}/"
