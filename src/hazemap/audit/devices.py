"""Runs where people's devices answer: their answers travel as the codec's text."""

from pathlib import Path

import numpy as np

from hazemap import codec
from hazemap.audit.observing import Observation
from hazemap.audit.settings import SECURE_SUM, Setting
from hazemap.domains import Box
from hazemap.rounds import Trust
from hazemap.session import Exchange, Unrecorded, run


def answered(setting: Setting, source: Path, people: int) -> tuple[str, list[float]]:
    """The transcript of a run among the people of a file, and the map's numbers.

    Nobody drops out and nobody cheats, so no more noise is added than is paid for; all stand in one shard. Under
    local privacy `people` report, one by one.
    """
    from hazemap.specs.method_names import among_devices, way
    from hazemap.specs.parsing import bounding, cells
    from hazemap.tables import open_table
    from hazemap.trust import Cohort, LocalReports, SimulatedSecureSum

    box = None if setting.box is None else Box.parse(setting.box)
    algorithm = way(setting.method, cells(setting.cells), box, bounding(setting.bounding))
    table = open_table(str(source), person="user", lon="lon", lat="lat")
    trust: Trust
    if setting.trust == SECURE_SUM:
        from fractions import Fraction

        trust = SimulatedSecureSum(table, Cohort(people, people, Fraction(0), Fraction(0)))
        algorithm = among_devices(algorithm, 1 << 16)
    else:
        trust = LocalReports(table, people)
    done = run(algorithm, trust, setting.budget, Unrecorded())
    return codec.dumps(done.transcript), np.asarray(done.value.values).tolist()


def observed(raw: tuple[str, list[float]]) -> Observation:
    """The same, as the public sees it."""
    transcript = tuple(Exchange(question, answer) for question, answer in codec.loads(raw[0]))
    return Observation(size=len(raw[0]), columns={"count": np.array(raw[1])}, transcript=transcript)
