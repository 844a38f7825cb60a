"""Assembles the release that a specification asks for from the answers of its run."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hazemap import codec
from hazemap.algorithms import READABLE, PublicLocationStatistics, PublishedStatistics
from hazemap.algorithms.first_look import LOOK
from hazemap.algorithms.plug_ins import plug_in_type
from hazemap.algorithms.private_bounding_box import MethodOfBox, PrivateBoundingBox
from hazemap.algorithms.two_stage_statistics import CellMethod, PrivateBoxStatistics
from hazemap.cellmap import CellMap
from hazemap.codec.allowed_types import written_name
from hazemap.errors import CodecError, HazemapError, InputError
from hazemap.estimate.marked_counts import MarkedCounts, MarkedSlots
from hazemap.estimate.slot_maps import SlotMaps
from hazemap.privacy.budget import PrivacyAmount
from hazemap.privacy.privacy_unit import Unit
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import Randomness, StatementFacts
from hazemap.queries.algorithm_session import Result, Transcript
from hazemap.releases import MarkedRelease, MarkedTimedRelease, Release, Statistics, TimedRelease
from hazemap.specs.parsing import DistrictFiles, HexagonList, cells_of_values
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.values_only_spec import PublicLocationSpec

KINDS: dict[str, type[ReleaseSpec] | type[StatisticsSpec]] = {"map": ReleaseSpec, "statistics": StatisticsSpec}


LARGE = 1 << 16
"""Questions about more numbers than this are not written and read again before they are asked."""


def type_names(thing: object) -> set[str]:
    """The names in texts of all dataclasses that a thing is made of.

    >>> from hazemap.privacy.budget import PureDP
    >>> type_names((PureDP(1), 2))
    {'PureDP'}
    """
    if isinstance(thing, tuple):
        return set().union(*(type_names(item) for item in thing[:LARGE]))
    if not is_dataclass(thing) or isinstance(thing, type):
        return set()
    inner = (type_names(getattr(thing, each.name)) for each in fields(thing))
    return {written_name(type(thing))}.union(*inner)


def released(
    found: CellMap | MarkedCounts | MarkedSlots | SlotMaps,
    stated: Statement,
    algorithm: object,
    transcript: Transcript,
) -> Release:
    """The release of a map; of marked counts, with their marks; of maps of slots, with all of them; or with both."""
    if isinstance(found, MarkedSlots):
        return MarkedTimedRelease(found.total.map, stated, algorithm, transcript, found.total, found)
    if isinstance(found, SlotMaps):
        return TimedRelease(found.total, stated, algorithm, transcript, found)
    if isinstance(found, MarkedCounts):
        return MarkedRelease(found.map, stated, algorithm, transcript, found)
    return Release(found, stated, algorithm, transcript)


@dataclass(frozen=True)
class ReleaseAssembly:
    """A specification, who asks, who pays for whose privacy, and when: all that a file says beside the answers."""

    spec: ReleaseSpec | StatisticsSpec
    algorithm: (
        MethodOfBox
        | PrivateBoundingBox
        | (CellMethod | PrivateBoxStatistics | PublicLocationStatistics | PublishedStatistics)
    )
    dataset: str
    unit: Unit
    created: str
    version: str
    randomness: Randomness = Randomness.SYSTEM

    def statement(self, done: Result[Any] | None = None, paid: PrivacyAmount | None = None) -> Statement:
        """The privacy statement; without a result, all of it that is known before the first question and payment."""
        spec, circumstances = self.spec, StatementFacts(self.unit, self.randomness)
        if isinstance(spec, ReleaseSpec):
            stated = spec.statement(self.dataset, circumstances)
        elif isinstance(self.algorithm, PublicLocationStatistics | PublishedStatistics):
            stated = PublicLocationSpec.of(spec).statement(self.dataset, self.algorithm, circumstances)
        else:
            stated = spec.statement(self.dataset, done, circumstances)
        return replace(stated, created=self.created, version=self.version, paid=paid)

    def looked(self, paid: PrivacyAmount | None) -> Statement:
        """The privacy statement of a run that ended after its look: its answers are all that was learned, at its own
        price.
        """
        return replace(self.statement(None, paid), budget=self.spec.budget.part(LOOK))

    def made(self, done: Result[Any], paid: PrivacyAmount | None) -> Release | Statistics:
        """The release; `paid` is what the data set's people have paid in all, including it."""
        spec, stated = self.spec, self.statement(done, paid)
        if isinstance(spec, ReleaseSpec):
            return released(done.value, stated, self.algorithm, done.transcript)
        return Statistics(done.value, spec.value, spec.quantiles, stated, self.algorithm, done.transcript)

    def refuse_what_cannot_be_read_back(self, *questions: object) -> None:
        """Raise `InputError` for a part that a file could hold but not be opened with, before anything is paid."""
        names = {written_name(each) for each in (*codec.CLOSED_LIST, *READABLE)}
        for thing in (self.algorithm, *questions):
            try:
                if strangers := {name for name in type_names(thing) - names if not plug_in_type(name)}:
                    raise CodecError(f"no {', '.join(sorted(strangers))} can be read")
                if (getattr(thing, "size", 0) or 0) > LARGE:
                    continue  # of the same types as a small one, and seconds of work
                text = codec.dumps(thing)
                if codec.dumps(codec.loads(text, READABLE, plug_ins=plug_in_type)) != text:
                    raise CodecError("it is something else when it is read back")
            except HazemapError as error:
                raise InputError(
                    f"a release of this {type(thing).__name__} could be written but never opened again ({error}), so "
                    "it is not made, and nothing was paid"
                ) from error
        stated = self.statement()
        if (
            Statement.from_json(stated.to_json()) != stated
            or ReleaseAssembly.from_json(self.to_json()).spec != self.spec
        ):
            raise InputError("the statement of this release could not be read back, so nothing was paid")

    def to_json(self) -> dict[str, Any]:
        """The form in which a journal keeps it."""
        kind = "map" if isinstance(self.spec, ReleaseSpec) else "statistics"
        return {
            "kind": kind,
            "spec": self.spec.to_json(),
            "algorithm": codec.to_json(self.algorithm),
            "dataset": self.dataset,
            "unit": self.unit.to_json(),
            "created": self.created,
            "version": self.version,
            "randomness": self.randomness.value,
        }

    @property
    def absolute(self) -> "ReleaseAssembly":
        """The same with the whole paths of its files, so that it means the same in any folder."""
        spec = self.spec
        changed: dict[str, Any] = {} if spec.output is None else {"output": str(Path(spec.output).absolute())}
        if spec.table.address is not None:
            changed["table"] = replace(spec.table, source=str(spec.table.address.absolute))
        if isinstance(spec, StatisticsSpec) and isinstance(spec.cells, DistrictFiles | HexagonList):
            cells = spec.cells.absolute
            if cells_of_values(cells.text) == cells:  # not where a folder's name has a sign in it that divides names
                changed["cells"] = cells
        return replace(self, spec=replace(spec, **changed))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ReleaseAssembly":
        """The inverse of `to_json`."""
        algorithm = codec.from_json(data["algorithm"], READABLE, plug_ins=plug_in_type)
        known = None if isinstance(algorithm, PublicLocationStatistics | PublishedStatistics) else algorithm
        spec = KINDS[data["kind"]].from_json(data["spec"], known)
        unit = Unit.from_json(data["unit"])
        made = str(data["created"]), str(data["version"]), Randomness(data["randomness"])
        return cls(spec, algorithm, str(data["dataset"]), unit, *made)
