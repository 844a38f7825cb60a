"""`hazemap audit`: measure what releases reveal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError, InputError

if TYPE_CHECKING:
    from hazemap.lab.audit.report import AuditReport
    from hazemap.lab.audit.trial_types import AuditTrial

ALL = "all"


def audit(
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="Method as for release, or all. May be repeated."),
    ] = None,
    bounding: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Bounding rule, or all. Default: 'one row'. May be repeated."),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRUST",
            help="curator, 'secure sum', 'two servers', 'one report', local, 'local reports', recipes, shuffled "
            "or all.",
        ),
    ] = None,
    epsilon: Annotated[str | None, typer.Option("-e", "--epsilon", metavar="ε", help="Price in ε. Default: 1.")] = None,
    rho: Annotated[str | None, typer.Option(metavar="ρ", help="Price in ρ (zCDP) instead of ε.")] = None,
    releases: Annotated[int, typer.Option(metavar="N", min=4, help="Number of releases of each of two tables.")] = 40,
    files: Annotated[bool, typer.Option("--files", help="Also try all kinds of lines in CSV files.")] = False,
    short: Annotated[
        bool,
        typer.Option("--short", help="Run a fixed set that takes five minutes: all methods, rules and kinds of lines."),
    ] = False,
    confidence: Annotated[float, typer.Option(metavar="P", help="Confidence with which a sound method passes.")] = 0.95,
    planted: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Audit a build with this planted fault, which must be found; or all."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Number of processes that make releases.")] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the report as a page: .md or .html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what releases reveal about one person, and compare it with the stated ε.

    It makes tables of people who do not exist, in pairs that differ in one person; releases them many times, from the
    bytes of a CSV file to the published file and the ledger; and proves a lower bound on ε from what came out. Exit
    code 1 if a bound is above what is stated, if a planted fault is not found, or if nothing could be released.
    """
    from hazemap.lab.audit.report import html, markdown, shown, told, verdict

    trials = _trials(method, bounding, trust, epsilon, rho, releases, files, short or bool(planted and not method))
    if output and output.suffix not in (".md", ".html"):
        raise InputError(f"an audit report must be a .md or .html file; found {output.name!r}")
    from hazemap.lab.audit.report import audit as audited

    with progress() as say:
        reports = [audited(trials, confidence, plant, jobs, say) for plant in _plants(planted)]
    if output:
        page = html if output.suffix == ".html" else markdown
        output.write_text("\n".join(map(page, reports)), encoding="utf-8")
    for report in reports:
        lines = [f"{each.evidence} ({each.about}): {told(each)}" for each in report.broken]
        largest = max((each.bound for each in report.findings if each.bound is not None), default=0.0)
        title = f"planted {report.plant}: " if report.plant else ""
        lines += [f"released nothing, so nothing is known of it: {each}" for each in report.silent]
        if not as_json:
            deliver({}, False, title + verdict(report), f"largest lower bound: {shown(largest)}", *lines)
    if as_json:
        deliver({"audits": [report.to_json() for report in reports]}, True)
    _end(reports)


def _end(reports: "list[AuditReport]") -> None:
    """Exit code 1 where a sound build is broken, or a broken one sound, or where nothing was released."""
    if any(report.nothing for report in reports):
        raise HazemapError("nothing could be audited: every run was refused or failed, and nothing was released")
    missed = [report.plant for report in reports if report.plant and not report.broken]
    if missed:
        raise HazemapError(f"not found: {', '.join(map(str, missed))}; more releases may find it")
    if any(report.broken and not report.plant for report in reports):
        raise HazemapError("the privacy statement does not hold; see the list above")


def _plants(planted: list[str] | None) -> list[str | None]:
    from hazemap.lab.audit.planted_faults import PLANTS, known

    if not planted:
        return [None]
    return list(PLANTS) if ALL in planted else [known(name) for name in planted]


def _trials(
    methods: list[str] | None,
    rules: list[str] | None,
    trusts: list[str] | None,
    epsilon: str | None,
    rho: str | None,
    releases: int,
    files: bool,
    short: bool,
) -> "list[AuditTrial]":
    from hazemap.lab.audit import planned_trials as plan
    from hazemap.lab.audit.audited_settings import ALL_STATISTICS, CURATOR, MAPS, TRUSTS

    if epsilon is not None and rho is not None:
        raise InputError("give either ε or ρ, not both")
    if short:
        return plan.short()
    chosen = (*plan.METHODS, *MAPS, *ALL_STATISTICS) if methods and ALL in methods else tuple(methods or ["auto"])
    bounding = plan.RULES if rules and ALL in rules else tuple(rules or ["one row"])
    trust = TRUSTS if trusts and ALL in trusts else tuple(trusts or [CURATOR])
    price = epsilon if epsilon is not None or rho is not None else "1"
    trials = plan.thorough(chosen, bounding, trust, price, rho, releases)
    return [*trials, *plan.of_numbers(4), *plan.of_files()] if files else trials
