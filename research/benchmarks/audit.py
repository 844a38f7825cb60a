"""Lower bounds on what releases give away, by method, rule and trust model; planted faults; false alarms.

usage: audit.py settings RUNS [EPSILON]   every method, rule and trust model, RUNS releases on either side
       audit.py planted REPEATS           each planted fault, so often from the beginning
       audit.py honest REPEATS            the same trials on the build as it is
       audit.py short REPEATS             the short audit of the build as it is
       audit.py page                      writes docs/results/audit.md from results/audit.json

Everything but `page` adds to results/audit.json.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from hazemap.lab.audit import planned_trials as plan
from hazemap.lab.audit.audited_settings import (
    ALL_STATISTICS,
    CURATOR,
    LOCAL,
    ONE_REPORT,
    PARTS,
    REPORTS,
    SECURE_SUM,
    SHUFFLE,
    STATISTICS,
    TWO_SERVERS,
    AuditedSetting,
)
from hazemap.lab.audit.canary_trials import KINDS, CanaryCrowd, CanaryTrial, CsvLineTrial
from hazemap.lab.audit.findings import judge
from hazemap.lab.audit.planted_faults import PLANTS
from hazemap.lab.audit.report import audit
from hazemap.lab.audit.subprocess_runs import SubprocessRuns
from hazemap.lab.audit.synthetic_people import Square

RESULTS = Path(__file__).parent / "results" / "audit.json"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "audit.md"
CONFIDENCE = 0.95
OLD = "2026-11-22 13:40, before tails were looked at to their last numbers and people's moves were measured"
EVIDENCE = ("the law of the noise", "guessing who is there", "telling neighbours apart", "one question alone")

OF_REPORTS = ("auto", "fitted-level", "flat:3", "singular:3", "total")
"""Methods that ask one level at a time: those that can be answered from reports that each person randomised."""


def kind(name: str):
    return next(each for each in KINDS if each.name == name)


def targets() -> dict[str, list]:
    """For each planted fault trials that are made for it, and for others as well: as few releases as will do."""
    plain, rows, auto = AuditedSetting("flat:5"), AuditedSetting("flat:5", "rows:3"), AuditedSetting("auto")
    law, adaptive = plan.of_setting(rows, 4)[:1], plan.of_setting(auto, 6)[:1]
    return {
        "half-width-noise": law,
        "low-sensitivity": plan.of_setting(rows, 8)[:1],
        "skipped-charge": plan.of_setting(plain, 4)[:1],
        "unpaid-cells": plan.of_setting(auto, 3)[:1],
        "float16-noise": plan.of_numbers(2)[:1],
        "sniffed-dialect": [
            CsvLineTrial(Square(5), plain, kind("a quoted note"), "in the middle", late=True, runs=2),
            CsvLineTrial(Square(5), plain, kind("two apostrophes"), "first"),
            CanaryTrial(CanaryCrowd(Square(5), kind("a quote that is not closed, in the id"), 1), plain, 6),
        ],
        "merged-ids": [CanaryTrial(CanaryCrowd(Square(5), kind("an id with a zero before it"), 1), plain, 8)],
        "shared-cohort": adaptive,
        "unpaid-threshold": plan.of_setting(auto, 3)[:1],
        "reused-noise": law,
    }


AT_FOUR = ("auto", "adaptive", "flat:5", "hb:4", "privlet:4", "prefix", "sketch", "top:10", STATISTICS)
"""Methods that are tried at ε = 4, too."""


def settings(epsilon: str) -> list[AuditedSetting]:
    found = [AuditedSetting(method, epsilon=epsilon) for method in plan.METHODS]
    found += [AuditedSetting(method, trust=SECURE_SUM, epsilon=epsilon) for method in plan.SUMS_ONLY]
    found += [AuditedSetting(method, epsilon=epsilon) for method in ALL_STATISTICS]
    found += [replace(setting, epsilon=epsilon) for setting in plan.elsewhere()]
    found += [AuditedSetting(method, rule, epsilon=epsilon) for rule in plan.RULES[1:] for method in plan.METHODS]
    found += [AuditedSetting(method, epsilon="4") for method in AT_FOUR]
    found += [AuditedSetting("auto", rule, epsilon=epsilon, outside="drop") for rule in plan.RULES[:1]]
    found += [AuditedSetting("auto", rule, epsilon=epsilon, box=None, cells="quadtree") for rule in plan.RULES[:1]]
    found += [
        AuditedSetting(method, rule, epsilon=None, rho="0.5") for method in ("auto", "flat:5") for rule in plan.RULES
    ]
    found += [AuditedSetting(method, trust=LOCAL, epsilon=epsilon, cells="quadtree:3") for method in OF_REPORTS]
    servers = [(trust, method) for trust in (TWO_SERVERS, ONE_REPORT) for method in plan.ANSWERED[trust]]
    found += [AuditedSetting(method, trust=trust, epsilon=epsilon) for trust, method in servers]
    found.append(AuditedSetting(PARTS, trust=SHUFFLE, epsilon=epsilon))
    found += [
        AuditedSetting(method, trust=REPORTS, epsilon=epsilon, cells="quadtree:3", delta="1e-6")
        for method in OF_REPORTS
    ]
    return found


TIMES = {LOCAL: 3, SHUFFLE: 60, REPORTS: 20}
"""So many times the releases of others, where one tells little and is made soon."""


def trials_of(setting: AuditedSetting, runs: int) -> list:
    """What is tried with a setting: of those that publish a number for each place, canaries too."""
    if setting.trust == SHUFFLE:
        return plan.of_shuffles(str(setting.epsilon), TIMES[SHUFFLE] * runs)
    trials = plan.of_setting(setting, TIMES.get(setting.trust, 1) * runs)
    if setting.method == "flat:5" and setting.trust == CURATOR:
        return [trial for at, trial in enumerate(trials) if at != 1]
    return trials[:1]


def measured(runs: int, epsilon: str) -> list[dict]:
    every = settings(epsilon)
    named = set(map(str, every))
    kept = {each["setting"]: each for each in stored().get("settings", []) if each["setting"] in named}
    with SubprocessRuns(None, 1) as laboratory:
        for number, setting in enumerate(every):
            if "measured" in kept.get(str(setting), {}) and kept[str(setting)]["runs"] >= runs:
                continue
            begun = time.monotonic()
            tests = []
            for trial in trials_of(setting, runs):
                seen = list(laboratory.run(trial.orders()))
                tests += trial.tests(seen, list(laboratory.run(trial.again(seen))))
            findings = judge(tests, 1 - (1 - CONFIDENCE) / len(every))
            row = {
                "setting": str(setting),
                "method": setting.method,
                "bounding": setting.bounding,
                "trust": setting.trust,
                "measure": setting.claim.measure,
                "stated": setting.claim.value,
                "runs": runs,
                "measured": now(),
                "looked at": len(findings),
                "broken": [f"{each.evidence}: {each.about}: {each.note}" for each in findings if each.broken],
                "seconds": round(time.monotonic() - begun, 1),
            }
            for evidence in EVIDENCE:
                bounds = [each.bound for each in findings if each.evidence == evidence and each.bound is not None]
                row[evidence] = round(max(bounds), 3) if bounds else None
            kept[str(setting)] = row
            store("settings", list(kept.values()))
            print(f"{number + 1}/{len(every)}", row["setting"], row["the law of the noise"], row["broken"], flush=True)
    return list(kept.values())


def planted(repeats: int, sound: bool) -> None:
    name = "honest" if sound else "planted"
    kept = stored().get(name, {})
    for plant, trials in targets().items():
        for _ in range(repeats):
            report = audit(trials, 0.999, None if sound else plant)
            row = kept.setdefault(plant, {"repeats": 0, "broken": 0, "releases": report.releases, "by": []})
            row["repeats"] += 1
            row["measured"] = now()
            row["broken"] += bool(report.broken)
            row["by"] = sorted({*row["by"], *(each.evidence for each in report.broken)})
            bounds = [each.bound for each in report.broken if each.bound is not None]
            row["bound"] = round(max([row.get("bound", 0.0), *bounds]), 2)
            row["seconds"] = round(report.seconds, 1)
            store(name, kept)
            print(name, plant, row, flush=True)


def short(repeats: int) -> None:
    kept = stored().get("short", [])
    for _ in range(repeats):
        report = audit(plan.short(), CONFIDENCE, processes=2)
        kept.append({"measured": now(), **report.to_json(), "findings": [each.to_json() for each in report.broken]})
        store("short", kept)
        print(kept[-1], flush=True)


def now() -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime())


def measured_at(rows: list[dict]) -> str:
    """When, in words; what has no date was measured before pages told it."""
    known = [row["measured"] for row in rows if "measured" in row]
    old = [f"{len(rows) - len(known)} by {OLD}"] if len(known) < len(rows) else []
    new = [f"{len(known)} from {min(known)} to {max(known)}"] if known else []
    return f"Measured (UTC): {'; '.join(old + new)}."


def stored() -> dict:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def store(name: str, value) -> None:
    RESULTS.write_text(json.dumps({**stored(), name: value}, indent=1, ensure_ascii=False) + "\n")


def number(value) -> str:
    return "—" if value is None else f"{value:.2f}"


def page() -> str:
    found = stored()
    rows = found.get("settings", [])
    lines = [
        "# What audits found",
        "",
        "Lower bounds on ε (or ρ) that releases were proved to give away of one person, from pairs of tables made to",
        "be the worst case ([how](../how-to/audit.md)). Where all is well they lie below what is stated, the nearer",
        "the more numbers a method asks. All bounds of this table hold together with",
        f"{100 * CONFIDENCE:g} % confidence. Made by `research/benchmarks/audit.py`.",
        "",
        f"{len(rows)} settings, {sum(row['looked at'] for row in rows):,} things looked at; "
        f"{sum(bool(row['broken']) for row in rows)} settings with anything broken.",
        "",
        measured_at(rows),
        "",
        "## Every method, rule and trust model",
        "",
        "The largest bound of all evidence, from six releases on either side (450 reports where people randomise",
        "alone, 360 batches of a shuffler, 120 sums of randomised reports). Columns are bounding rules; cells are",
        "squares unless something else is said. Where a method asks few numbers, or chooses and grows, so few releases",
        "prove little: **0.00 says that nothing was proved**, neither for the method nor against it. Choices and grown",
        "trees are asked by themselves in the short audit.",
        "",
    ]
    rules = plan.RULES
    for measure, stated in sorted({(row["measure"], row["stated"]) for row in rows}):
        for trust in (CURATOR, SECURE_SUM, TWO_SERVERS, ONE_REPORT, SHUFFLE, REPORTS, LOCAL):
            of = [r for r in rows if (r["measure"], r["stated"], r["trust"]) == (measure, stated, trust)]
            if not of:
                continue
            columns = [rule for rule in rules if any(row["bounding"] == rule for row in of)]
            lines += [f"### {trust.capitalize()}, {measure} = {stated:g}", ""]
            lines += [f"| method | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
            names = dict.fromkeys(label(row) for row in of)
            for name in names:
                cells = []
                for rule in columns:
                    own = [row for row in of if label(row) == name and row["bounding"] == rule]
                    best = [max(filter(None, (row[each] for each in EVIDENCE)), default=0.0) for row in own]
                    cells.append(number(best[0]) + (" **broken**" if own[0]["broken"] else "") if own else "")
                lines.append(f"| {name} | {' | '.join(cells)} |")
            lines.append("")
    lines += shorts(found) + faults(found)
    return "\n".join(lines)


def label(row: dict) -> str:
    parts = row["setting"].split(", ")
    return ", ".join([row["method"], *parts[4:]])


def shorts(found: dict) -> list[str]:
    """The short audits of a sound build."""
    runs = found.get("short", [])
    if not runs:
        return []
    lines = [
        "## The short audit",
        "",
        "Every method, rule, trust model and kind of line in a CSV file, on a sound build:",
        "",
        measured_at(runs),
        "",
    ]
    for run in runs:
        words = "; ".join(f"{each['evidence']} ({each['about']})" for each in run["findings"]) or "nothing is broken"
        lines.append(
            f"* {run['looked at']:,} things looked at in {run['releases']:,} runs, {run['seconds']:,.0f} seconds "
            f"on two busy cores: {words}"
        )
    return [*lines, ""]


def faults(found: dict) -> list[str]:
    lines = [
        "## Planted faults",
        "",
        "Each audit began anew, with the releases in the table and a confidence of 99.9 %; *sound* is the same audit",
        "of the build as it is.",
        "",
        f"Faults: {measured_at(list(found.get('planted', {}).values()))}",
        "",
        f"Sound builds: {measured_at(list(found.get('honest', {}).values()))}",
        "",
        "| fault | what it does | releases | found | sound builds called broken | by |",
        "|---|---|---|---|---|---|",
    ]
    for name, what in PLANTS.items():
        row, honest = found.get("planted", {}).get(name), found.get("honest", {}).get(name)
        if row:
            sound = f"{honest['broken']} of {honest['repeats']}" if honest else "not measured"
            lines.append(
                f"| `{name}` | {what} | {row['releases']} | {row['broken']} of {row['repeats']} | {sound} | "
                f"{'; '.join(row['by'])} |"
            )
    return [*lines, ""]


def main(what: str, *rest: str) -> None:
    if what == "settings":
        measured(int(rest[0]), rest[1] if len(rest) > 1 else "1")
    elif what in ("planted", "honest"):
        planted(int(rest[0]), what == "honest")
    elif what == "short":
        short(int(rest[0]))
    PAGE.write_text(page())


if __name__ == "__main__":
    main(*sys.argv[1:])
