"""A task as one of its two aggregators knows it (the agreement, and its own secrets), and checks of every request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeVar

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.dap.basic_types import JOB_ID, DapRole
from hazemap.federated.protocols.dap.batches import bucket_at
from hazemap.federated.protocols.dap.blank_reports import BlankReports
from hazemap.federated.protocols.dap.collection_messages import AggregateShareAad, CollectionJobReq
from hazemap.federated.protocols.dap.prefix_question import read_question
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.federated.protocols.dap.task import MOST_REPORTS, BatchMode, DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    InputShareAad,
    InputShareAad09,
    PlaintextInputShare,
    PlaintextInputShare09,
    ReportMetadata,
    ReportMetadata09,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    Extension,
    HpkeConfig,
    Poplar1Configuration,
    UnsupportedExtensions,
    check_extensions,
)
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.mechanisms import Noise
from hazemap.vdaf.vdaf import Vdaf

CLOCK_SKEW: Final = 300
"""Seconds by which a report's clock may be ahead of an aggregator's."""

VERIFICATION_KEY_ID: Final = 0
"""A task has one verification key for all its time."""

DrawNoise = Callable[[Noise | BlankReports, int], Ints]
"""Noise of this law for so many numbers, drawn anew at each call."""


@dataclass(frozen=True)
class AggregatorTask:
    """What one aggregator needs to know of a task.

    A task that names noise has an aggregator that draws it, and may let a batch be collected at several levels: with
    differential privacy alone may the rules be relaxed (draft, "Relaxing Report Processing Rules"). A task of DAP-09 is
    one of DAP-18 whose reports were sealed by the older draft's rules.
    """

    task: DapTask
    role: DapRole
    vdaf: Vdaf = field(repr=False)
    verify_key: bytes = field(repr=False)
    collector: HpkeConfig
    draw_noise: DrawNoise | None = field(default=None, repr=False)
    report_expiry: int | None = None
    """seconds after which a report is no longer taken, and forgotten"""
    open_reports: int | None = None
    """reports that a leader keeps of a task that is declared open, whoever sends them"""

    def __post_init__(self) -> None:
        if self.role not in {DapRole.LEADER, DapRole.HELPER}:
            raise InputError("an aggregator is a leader or a helper")
        if (self.draw_noise is None) is self.task.noisy:
            raise InputError("an aggregator draws noise for a task that names it, and for no other")
        if (self.task.admission is None) != (self.open_reports is not None):
            raise InputError("a task either names who gives out credentials, or is declared open to so many reports")
        if self.open_reports is not None and not 1 <= self.open_reports <= MOST_REPORTS:
            raise InputError(f"a task is open to 1 to {MOST_REPORTS:,} reports, not {self.open_reports:,}")
        if self.collections > 1 and not self.by_time:
            raise InputError("batches that are collected at several levels are intervals of time")
        if len(self.verify_key) != self.vdaf.VERIFY_KEY_SIZE:
            raise InputError(f"the verification key has {self.vdaf.VERIFY_KEY_SIZE} bytes, not {len(self.verify_key)}")
        if self.collector.suite is None:
            raise InputError("the collector's key is for algorithms that are not known here: give the task another key")
        if self.report_expiry is not None and self.report_expiry < self.task.time_precision:
            raise InputError("reports expire after one time precision of the task or later")

    @property
    def collections(self) -> int:
        """How often one batch may be collected."""
        terms = self.task.walk or self.task.privacy
        return 1 if terms is None else terms.levels

    @property
    def least(self) -> int:
        """The reports that a batch must have."""
        return self.task.min_batch_size

    @property
    def by_time(self) -> bool:
        """Whether batches are intervals of time; otherwise the leader chooses them."""
        return self.task.batch_mode is BatchMode.TIME_INTERVAL

    def time(self, now: int) -> int:
        """A moment, in seconds after the epoch, in time precisions."""
        return now // self.task.time_precision

    def latest(self, now: int) -> int:
        """The last time that a report may have, by the clocks that are allowed."""
        return self.time(now + CLOCK_SKEW)

    def earliest(self, now: int) -> int:
        """The first time that a report may have before it has expired."""
        return 0 if self.report_expiry is None else max(0, self.time(now - self.report_expiry))

    def bucket(self, time: int, batch_id: bytes | None) -> bytes:
        """The bucket of a report."""
        return bucket_at(time) if batch_id is None else batch_id

    def level(self, agg_param: bytes) -> int:
        """What a report may be verified once for: Poplar1's level (VDAF, section 8.2.2); else there is but one."""
        return int.from_bytes(agg_param[:2], "big") if isinstance(self.task.measured, Poplar1Configuration) else 0

    def verified_with(self, agg_param: bytes) -> bytes:
        """What reports are verified with for a collection job's parameter, which was checked."""
        return agg_param if self.task.walk is None else read_question(agg_param).parameter

    def read_input_share(self, plain: bytes) -> PlaintextInputShare | PlaintextInputShare09:
        """What was sealed for this aggregator, by the rules of the task's version."""
        return (PlaintextInputShare if self._new else PlaintextInputShare09).from_bytes(plain)

    def input_share_aad(self, metadata: ReportMetadata, public_share: bytes) -> bytes:
        """What an input share is bound to."""
        if self._new:
            return InputShareAad(self.task.id, self.task.configuration, metadata, public_share).to_bytes()
        older = ReportMetadata09(metadata.report_id, metadata.time * self.task.time_precision)
        return InputShareAad09(self.task.id, older, public_share).to_bytes()

    def aggregate_share_aad(self, request: CollectionJobReq) -> bytes:
        """What an aggregate share is bound to."""
        return AggregateShareAad(self.task.id, self.task.configuration, request).to_bytes()

    def problem(self, kind: ProblemType, detail: str, unsupported: tuple[int, ...] = ()) -> DapProblem:
        """A refusal that names the task."""
        return DapProblem(kind, detail, self.task.id, unsupported)

    def check_parameter(self, agg_param: bytes, before: Sequence[bytes] = ()) -> None:
        """Refuse an aggregation parameter that the VDAF does not allow after those before (section 4.3)."""
        try:
            valid = self.vdaf.is_valid(agg_param, before)
        except (CodecError, Refused):
            valid = False
        if not valid:
            raise self.problem(
                ProblemType.INVALID_AGGREGATION_PARAMETER,
                "the VDAF of this task does not allow this aggregation parameter here",
            )

    @property
    def _new(self) -> bool:
        return self.task.version.times_in_precisions


M = TypeVar("M", bound=DapMessage)


def parsed(task: AggregatorTask, kind: type[M], body: bytes) -> M:
    """The message, or the problem `invalidMessage`."""
    try:
        return kind.from_bytes(body)
    except CodecError as error:
        raise task.problem(ProblemType.INVALID_MESSAGE, str(error)) from None


def check_no_extensions(task: AggregatorTask, extensions: tuple[Extension, ...]) -> None:
    """Refuse the extensions of a collection job: none are known, and none may be ignored (section 4.6.2)."""
    try:
        check_extensions(extensions, ())
    except UnsupportedExtensions as error:
        raise task.problem(ProblemType.UNSUPPORTED_EXTENSION, str(error), error.types) from None
    except CodecError as error:
        raise task.problem(ProblemType.INVALID_EXTENSION, str(error)) from None


def resource_id(task: AggregatorTask, body: bytes) -> bytes:
    """Of the task, who serves it, and the bytes of the request: 16 bytes, of which nobody finds two requests."""
    return sha256(b"hazemap resource" + task.task.id + bytes([task.role]) + body).digest()[:JOB_ID]
