"""Whom a campaign or a study trusts, as options of the command line say it."""

from fractions import Fraction
from typing import NamedTuple

from hazemap.errors import InputError
from hazemap.federated.trust.report_carriers import (
    LOCAL,
    SECURE_SUM,
    TRUSTS,
    USUAL_LEVELS,
    ByOneReport,
    ByShuffler,
    ByTwoServers,
    ReportCarrier,
)
from hazemap.privacy.budget import Budget, PureDP


class TrustOptions(NamedTuple):
    """What was given."""

    trust: str
    leader: str | None = None
    helper: str | None = None
    shuffler: str | None = None
    levels: int | None = None
    shuffler_key: str | None = None

    def carrier(self, least: int, local: Fraction | None = None) -> ReportCarrier | None:
        """Who carries the reports, at `least` so many at a time; None for secure sums.

        A shuffler carries vectors in parts, or with a `local` epsilon reports of that ε₀ at most.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").carrier(100).leader
        'https://one.example/'
        """
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
            return ByOneReport(_slashed(self.leader), _slashed(self.helper), least, self.levels or USUAL_LEVELS)
        return ByShuffler(_slashed(self.shuffler), least, self.shuffler_key or "", local) if mixed else None

    def of_study(self, least: int | None, survivors: int) -> ByTwoServers | None:
        """Who carries reports to recipes, at `least` so many at a time, or `survivors`; None for secure sums.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").of_study(None, 90).minimum
        90
        """
        if self.trust in TRUSTS and self.trust not in (SECURE_SUM, ByTwoServers.trust):
            raise InputError(
                f"a study asks by --trust secure-sum or two-servers, not {self.trust}: a report to a recipe answers "
                "that one alone, and nobody sees it before it is summed"
            )
        if self.trust == SECURE_SUM and least is not None:
            raise InputError("--least is for --trust two-servers: a secure sum is opened as --dropout says")
        found = self.carrier(least or survivors)
        return found if isinstance(found, ByTwoServers) else None

    def local_epsilon(self, given: Fraction | None, budget: Budget) -> Fraction | None:
        """The most ε₀ of a report. In `local` the budget is what the reports hide by themselves.

        >>> from hazemap.privacy.budget import PureDP
        >>> TrustOptions("local").local_epsilon(None, PureDP("0.5"))
        Fraction(1, 1)
        """
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
