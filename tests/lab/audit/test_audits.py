"""Audits of this build, which has to be sound, and of builds with a planted fault, which have to be found.

A sound build is called broken with probability 1e-6 at most, which is what the audits are asked for. Faults of
charges, cells and cohorts, of campaigns and of recipes, are found with certainty; so is noise used again, as eight
stretches do not fit a pool of four beside each other. Where it is by chance, what is measured lies far above what
would be missed, in standard errors: 19 for noise of half the width, 20 for low sensitivity, 10 for merged ids (20
simulated audits), 6 for a doubled local ε and more for the other two reports, 5 for a shuffler that keeps the order.
Noise in 16-bit numbers has none at all where a sum is odd. Of the sniffed dialect the error is only counted: found in
9 of 9 audits with a sixth of these canaries. Noise that mirrors itself, comes back or is left out, and rows chosen by a
digest, have p-values of 10⁻¹¹ or less each time; noise half as wide where people are lies 2 standard errors beyond what
would be missed, and 40 runs were found in 5 of 5 audits.
"""

import pytest

from hazemap.lab.audit import planned_trials as plan
from hazemap.lab.audit.audited_settings import ALL_STATISTICS, MAPS, AuditedSetting
from hazemap.lab.audit.canary_trials import KINDS, CanaryCrowd, CanaryTrial, CsvLineTrial
from hazemap.lab.audit.planted_faults import PLANTS
from hazemap.lab.audit.report import audit
from hazemap.lab.audit.single_query_trials import ExactTrial, RowChoiceTrial
from hazemap.lab.audit.synthetic_people import Square

SURE = 1 - 1e-6
"""The confidence of every audit here: a sound build is called broken once in a million audits at most."""


def kind(name):
    return next(each for each in KINDS if each.name == name)


PLAIN, ROWS, AUTO = AuditedSetting("flat:5"), AuditedSetting("flat:5", "rows:3"), AuditedSetting("auto")
TRIALS = {
    "half-width-noise": lambda: plan.of_setting(ROWS, 6)[:1],
    "low-sensitivity": lambda: plan.of_setting(ROWS, 16)[:1],
    "skipped-charge": lambda: plan.of_setting(PLAIN, 4)[:1],
    "unpaid-cells": lambda: plan.of_setting(AUTO, 3)[:1],
    "float16-noise": lambda: plan.of_numbers(4)[:1],
    "sniffed-dialect": lambda: [
        CsvLineTrial(Square(5), PLAIN, kind("a quoted note"), "in the middle", late=True, runs=2),
        CsvLineTrial(Square(5), PLAIN, kind("two apostrophes"), "first"),
        CanaryTrial(CanaryCrowd(Square(5), kind("a quote that is not closed, in the id"), 1), PLAIN, 40),
    ],
    "merged-ids": lambda: [CanaryTrial(CanaryCrowd(Square(5), kind("an id with a zero before it"), 1), PLAIN, 40)],
    "shared-cohort": lambda: plan.of_setting(AUTO, 4)[:1],
    "unpaid-threshold": lambda: plan.of_setting(AUTO, 3)[:1],
    "reused-noise": lambda: plan.of_setting(PLAIN, 4)[:1],
    "doubled-local-epsilon": lambda: plan.of_recipes("2", 100)[:1],
    "skipped-none-bin": lambda: plan.of_recipes("2", 30)[:1],
    "true-bit-sent": lambda: plan.of_recipes("2", 30)[:1],
    "missing-noise-shares": lambda: plan.of_shuffles("0.1", 12),
    "kept-order": lambda: plan.of_shuffles("0.3", 250),
    "sealed-to-the-shuffler": lambda: plan.of_shuffles("0.1", 12),
    "ignored-minimum-cohort": lambda: plan.of_recipes("2", 2)[2:],
    "mirrored-noise": lambda: plan.of_setting(PLAIN, 4)[:1],
    "exact-outside": lambda: plan.of_rows(AuditedSetting("flat:5", epsilon="0.1"), 12)[1:2],
    "exact-marks": lambda: plan.of_setting(AuditedSetting("map:marks", epsilon="0.1"), 10)[:1],
    "repeated-slot-noise": lambda: plan.of_setting(AuditedSetting("map:slots", epsilon="0.1"), 8)[:1],
    "quiet-crowds": lambda: plan.of_setting(PLAIN, 40)[:1],
    "rounded-sums": lambda: [ExactTrial(Square(5), PLAIN)],
    "digest-key": lambda: [RowChoiceTrial(Square(5), PLAIN, 4)],
    "row-beyond-cap": lambda: [ExactTrial(Square(5), ROWS)],
    "clock-seed": lambda: plan.of_setting(PLAIN, 6)[:1],
}


@pytest.mark.slow
@pytest.mark.parametrize("plant", TRIALS)
def test_a_planted_fault_is_found(plant):
    assert audit(TRIALS[plant](), SURE, plant).broken


def test_every_planted_fault_is_tried():
    assert list(TRIALS.keys() - PLANTS.keys()) == list(PLANTS.keys() - TRIALS.keys()) == []


@pytest.mark.slow
def test_maps_of_marks_and_slots_and_rows_under_every_rule_are_sound():
    """Without noise, too: a number of the exact trials is wrong with probability 1e-20."""
    trials = [trial for rule in plan.RULES for trial in plan.of_rows(AuditedSetting("flat:5", rule), 4)]
    for method in (*plan.METHODS, *MAPS, *ALL_STATISTICS):
        trials += plan.of_rows(AuditedSetting(method), 4)[:1]
    for method in MAPS:
        trials += plan.of_setting(AuditedSetting(method, epsilon="0.1"), 6)
    report = audit(trials, SURE, processes=2)
    assert not report.broken and not report.silent


@pytest.mark.slow
def test_reports_studies_and_opened_sums_of_recipes_tell_no_more_than_they_state():
    """And sums of too few are refused."""
    report = audit(plan.of_recipes("2", 15), SURE)
    assert not report.broken
    [alone] = [each.bound for each in report.findings if each.bound is not None and each.about.startswith("a report")]
    assert alone < 2
    reports = audit(plan.thorough(["flat:3"], ["one row"], ["local reports"], "1", None, 6), SURE)
    assert reports.published == 24 and not reports.broken
    assert sum(each.evidence == "sums of too few are refused" for each in report.findings) == 2


@pytest.mark.slow
def test_a_shuffle_tells_its_parties_no_more_than_it_states():
    report = audit(plan.of_shuffles("0.1", 30), SURE)
    assert report.published == 60 and not report.broken
    assert len(report.findings) >= 7, "three views, often and always, and whether batches open"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nothing_is_found_in_five_minutes_where_nothing_is_planted():
    report = audit(plan.short(), SURE, processes=2)
    assert not report.broken and not report.silent
    # of ten trials with 12,000 numbers each, the best one: eight standard errors above this
    assert max(finding.bound for finding in report.findings if finding.evidence == "the law of the noise") > 0.8
