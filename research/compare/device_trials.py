"""Settings in which people's devices answer: error against what a device has to send."""

import resource
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.trial_settings import Row, scorer, timed
from hazemap.privacy.budget import PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.algorithm_session import Transcript
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson
from research.compare.location_visits import Visits


@dataclass(frozen=True)
class DeviceSetting:
    """A fresh sample of `people` in every round, in secure sums of `shard`, by their exact law
    (`SimulatedSecureAggregation`).

    `lost` is the part of a shard that may be missing, which noise allows for; each device falls silent with chance
    `dropping`. An adaptive method has the parameters for samples of people.
    """

    places: ClassVar[tuple[type, ...]] = (GroundTruthMap, Visits)
    methods: ClassVar[tuple[type, ...]] = (Method,)

    people: int = 100_000
    shard: int = 10_000
    lost: Fraction = Fraction(0)
    dropping: Fraction = Fraction(0)

    @property
    def rule(self) -> Bounding:
        """A row is a person."""
        return RowIsPerson()

    @property
    def cohort(self) -> Cohort:
        """Nobody works with the server."""
        return Cohort(self.people, self.shard, dropout=self.lost, corrupt=Fraction(0), mode=Mode.SEMI_HONEST)

    def algorithm(self, place: GroundTruthMap | Visits, method: Method, epsilon: str) -> Any:
        """As campaigns run it."""
        found = method.algorithm(place.tree, self.rule, epsilon)
        if isinstance(found, Adaptive):
            return Adaptive.for_devices(found.tree, found.bounding, found.most_numbers)
        return found

    def measured(self, place: GroundTruthMap | Visits, method: Method, epsilon: str, repetition: int) -> Row:  # noqa: ARG002 - noise differs
        """The errors of a campaign, and what a device sends that is asked in every round."""
        known = _of_rows(place)
        trust = SimulatedSecureAggregation(known.table, self.cohort, dropping=self.dropping)
        result, row = timed(self.algorithm(place, method, epsilon), trust, epsilon)
        shown, unbiased = painted(result.value, place.tree)
        row |= sent(result.transcript, PureDP(epsilon), self.cohort)
        row |= {
            "answers": sum(turnout.people for turnout in trust.turnouts),
            "shards_lost": sum(turnout.lost for turnout in trust.turnouts),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,  # of the process so far
        }
        return row | scorer(known).all(shown, unbiased)


@dataclass(frozen=True)
class DeviceSample:
    """So many people tell where they are, without any privacy, and a grid of one level is drawn of them."""

    places: ClassVar[tuple[type, ...]] = (GroundTruthMap, Visits)
    methods: ClassVar[tuple[type, ...]] = (Method,)

    people: int = 100_000

    @property
    def rule(self) -> Bounding:
        """A row is a person."""
        return RowIsPerson()

    def algorithm(self, place: GroundTruthMap | Visits, method: Method, epsilon: str) -> Any:
        """The method tells the level."""
        found = method.algorithm(place.tree, self.rule, epsilon)
        if not hasattr(found, "level"):
            raise InputError(f"a grid without privacy has one level, flat:LEVEL, and is not made by {method.spelled}")
        return found

    def measured(self, place: GroundTruthMap | Visits, method: Method, epsilon: str, repetition: int) -> Row:
        """Errors of the sample itself, seen at the level."""
        known, level = _of_rows(place), int(self.algorithm(place, method, epsilon).level)
        block = known.side >> level
        coarse = known.sample(self.people, str(repetition).encode()).coarser(level).counts / block**2
        picture = np.repeat(np.repeat(coarse, block, axis=0), block, axis=1)
        return {"cells": 4**level, "numbers": 2, "rounds": 1} | scorer(known).all(picture, picture)


def sent(transcript: Transcript, budget: PureDP, cohort: Cohort) -> Row:
    """What a person sends who is asked in every round: numbers, and bytes of masked vectors as the wire packs them."""
    numbers, octets = 0, 0
    for question, _ in transcript:
        encoder = question.encoder  # type: ignore[union-attr]  # devices answer queries alone
        noise = DistributedNoise(
            encoder.sensitivity.l1 / budget.part(question.share).epsilon, cohort.honest(cohort.shards[0])
        )
        bits = noise.bits(cohort.shards[0], encoder.sensitivity.l1, encoder.size)
        numbers, octets = numbers + encoder.size, octets + -(-encoder.size * bits // 8)
    return {"numbers": numbers, "bytes": octets, "rounds": len(transcript)}


def _of_rows(place: GroundTruthMap | Visits) -> GroundTruthMap:
    if not isinstance(place, GroundTruthMap):
        raise InputError(f"the people of {place.name} have several rows each; devices are compared with one row each")
    return place
