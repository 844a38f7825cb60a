"""Runs in which people's devices answer: their answers travel as the codec's text."""

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap import codec
from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.simulated_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.lab.audit.audited_settings import LOCAL, ONE_REPORT, REPORTS, SECURE_SUM, TWO_SERVERS, AuditedSetting
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.synthetic_people import File
from hazemap.queries.algorithm_session import Exchange, Unrecorded, replay, run
from hazemap.queries.noisy_queries import Trust
from hazemap.readers.open_table import open_table
from hazemap.specs.method_from_name import among_devices
from hazemap.tables.votes import VotesTable

DROPOUT = Fraction(1, 2)
"""So much of a shard may be missing, where people drop out at all; and half of it has to bring all of the noise."""


def answered(setting: AuditedSetting, source: str, people: int) -> tuple[str, list[float]]:
    """The transcript of a run among the people of a file, and the map's numbers.

    All stand in one shard; nobody cheats, and nobody drops out unless the setting says so. Under local privacy `people`
    report, one by one.
    """
    if setting.dropping is not None:
        table = _of_devices(source)
        trust: Trust = SimulatedSecureAggregation(table, _cohort(setting, people), dropping=Fraction(setting.dropping))
    else:
        reported = setting.trust == REPORTS
        opened = _of_devices(source) if reported else open_table(source, person="user", lon="lon", lat="lat")
        trust = _trust(setting, opened, people)
    done = run(_algorithm(setting), trust, setting.budget, Unrecorded())
    return codec.dumps(done.transcript), np.asarray(done.value.values).tolist()


def followed(setting: AuditedSetting, people: int, seen: Observation) -> bool:
    """Whether all questions and the map's numbers follow from the answers, without a table."""
    nobody = File(()).table
    trust = _trust(setting, nobody, people)
    try:
        made = replay(_algorithm(setting), trust.prices(setting.budget), setting.budget, seen.transcript)
    except HazemapError:
        return False
    ours, theirs = np.asarray(made.value.values), seen.columns["count"]
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, rtol=1e-9, atol=1e-9, equal_nan=True))


class _SeenByAServer(TwoServers):
    """What somebody sees who works with one of the two servers, and so knows its noise."""

    one_is_known = True


class _WalkSeenByAServer(OneReportTrust):
    """The same, where people report once."""

    one_is_known = True


def _trust(setting: AuditedSetting, table: VotesTable, people: int) -> Trust:
    """Who answers; of two servers only one keeps its noise to itself. Reports say all that the price buys."""
    if setting.trust in (TWO_SERVERS, ONE_REPORT):
        batch = ReportBatch(people, max(people - 1, 1))
        return _SeenByAServer(table, batch) if setting.trust == TWO_SERVERS else _WalkSeenByAServer(table, batch, 12)
    if setting.trust == LOCAL:
        return LocalReports(table, people)
    local = None if setting.trust == SECURE_SUM else Fraction(setting.local or "8")
    return SimulatedSecureAggregation(table, _cohort(setting, people), local_epsilon=local)


def _of_devices(source: str) -> MemoryTable:
    """A row a person, so that also those who are in no cell are people, and may drop out."""
    with Path(source).open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("lon", "lat")}
    return MemoryTable(np.arange(len(rows)), columns)


def _cohort(setting: AuditedSetting, people: int) -> Cohort:
    """In semi-honest mode where people drop out: the other would need more of them for so many to be missing."""
    if setting.dropping is None:
        return Cohort(people, people, Fraction(0), Fraction(0))
    return Cohort(people, people, DROPOUT, Fraction(0), mode=Mode.SEMI_HONEST)


def _algorithm(setting: AuditedSetting) -> Any:
    """The method, with the parameters for devices where they sum, and those for a walk where they report once."""
    if setting.trust == LOCAL:
        return setting.algorithm
    found = among_devices(setting.algorithm, 1 << 16)
    if setting.trust == ONE_REPORT and isinstance(found, Adaptive):
        return Adaptive.for_one_report(found.tree, found.bounding, 1 << 16)
    return found


def observed(raw: tuple[str, list[float]]) -> Observation:
    """The same, as the public sees it."""
    transcript = tuple(Exchange(question, answer) for question, answer in codec.loads(raw[0]))
    return Observation(size=len(raw[0]), columns={"count": np.array(raw[1])}, transcript=transcript)
