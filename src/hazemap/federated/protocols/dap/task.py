"""A task: what all parties have agreed on, understood and bounded; and its bytes (draft-ietf-ppm-dap-18, section 4.2).

The bytes of the task configuration are bound into every share.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, TASK_ID, DapVersion, TimeInterval
from hazemap.federated.protocols.dap.blank_reports import BLANK_REPORTS, BlankReports
from hazemap.federated.protocols.dap.privacy_parameters import PRIVACY_PARAMETERS, WALK, PrivacyParameters, WalkTerms
from hazemap.federated.protocols.dap.report_credentials import ADMISSION, ReportAdmission
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.federated.protocols.dap.vdaf_configuration import (
    Extension,
    Extensions,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
    VdafConfiguration,
    check_extensions,
    read_configuration,
)
from hazemap.vdaf.tls_encoding import Form, TlsReader, TlsWriter, code, number, opaque

TASK_INTERVAL: Final = 1
"""The type of the task extension that says when reports may be made."""
_MOST_BYTES = 255 + 5 * 0xFFFF + 64


class BatchMode(IntEnum):
    """How reports are put into batches.

    >>> BatchMode.TIME_INTERVAL.value
    1
    """

    RESERVED = 0
    TIME_INTERVAL = 1
    LEADER_SELECTED = 2


@dataclass(frozen=True)
class TaskConfiguration(DapMessage, name="task-configuration", largest=_MOST_BYTES):
    """What everybody who takes part agrees on; `to_bytes` gives the very bytes that it was read from.

    What the fields mean, and whether they can be, is said by `DapTask`. The floor of `task_info` is a draft's.
    """

    task_info: Annotated[bytes, opaque(1)]
    leader_endpoint: Annotated[bytes, opaque(2, least=1)]
    helper_endpoint: Annotated[bytes, opaque(2, least=1)]
    time_precision: Annotated[int, number(8)]
    min_batch_size: Annotated[int, number(8)]
    batch_mode: Annotated[BatchMode, code(BatchMode, 1)]
    batch_config: Annotated[bytes, opaque(2)]
    vdaf_type: Annotated[int, number(4)]
    vdaf_configuration: Annotated[bytes, opaque(2)]
    extensions: Extensions = ()


def _write(writer: TlsWriter, configuration: bytes) -> TlsWriter:
    return writer.fixed(configuration, len(configuration))


def _read(reader: TlsReader) -> bytes:
    return TaskConfiguration.read(reader).to_bytes()


Configuration = Annotated[bytes, Form(_write, _read)]
"""A task configuration within another structure, kept as the bytes it came in."""


def read_interval(data: bytes) -> TimeInterval:
    """An interval that is the whole of some data; CodecError if it is none, is empty, or ends after time itself."""
    return TimeInterval.from_bytes(data).checked()


MOST_PRECISION: Final = 366 * 86_400
"""Seconds: no task rounds its times to more than a year."""
MOST_REPORTS: Final = 1 << 40
_LONGEST_ENDPOINT = 2000
_KNOWN = frozenset({TASK_INTERVAL, PRIVACY_PARAMETERS, WALK, ADMISSION, BLANK_REPORTS})
_ENDPOINT = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?",
    re.ASCII,
)


@dataclass(frozen=True)
class DapTask:
    """A measurement by two aggregators. Make one with `created`, or read one with `read`.

    `configuration` is the verbatim encoding, as it is bound into every share; all other fields are what it says. DAP-09
    has no configuration on the wire: there it is a record of our own.

    >>> from hazemap.federated.protocols.dap.vdaf_configuration import HistogramConfiguration
    >>> task = DapTask.created(bytes(32), b"a map", "https://one.example/", "https://two.example/", 3600, 100,
    ...     BatchMode.TIME_INTERVAL, HistogramConfiguration(1024, 32))
    >>> DapTask.read(task.id, task.configuration) == task, task.helper
    (True, 'https://two.example/')
    """

    id: bytes
    configuration: bytes
    info: bytes
    leader: str
    helper: str
    time_precision: int
    """seconds"""
    min_batch_size: int
    batch_mode: BatchMode
    measured: VdafConfiguration
    interval: TimeInterval | None = None
    """when reports may be made, in time precisions, in every version"""
    privacy: PrivacyParameters | None = None
    version: DapVersion = DAP_18
    walk: WalkTerms | None = None
    """what one report of a path may be asked, in a task of questions about it"""
    admission: ReportAdmission | None = None
    """who gives out the credentials of its reports; None for a task whose uploads are open"""
    blank: BlankReports | None = None
    """reports of nobody that each aggregator adds, in a task of randomised reports"""

    @classmethod
    def created(
        cls,
        task_id: bytes,
        info: bytes,
        leader: str,
        helper: str,
        time_precision: int,
        min_batch_size: int,
        batch_mode: BatchMode,
        measured: VdafConfiguration,
        *,
        interval: TimeInterval | None = None,
        privacy: PrivacyParameters | None = None,
        version: DapVersion = DAP_18,
        walk: WalkTerms | None = None,
        admission: ReportAdmission | None = None,
        blank: BlankReports | None = None,
    ) -> Self:
        """A new task, with its one encoding; InputError for what cannot be."""
        extensions = [Extension(TASK_INTERVAL, interval.to_bytes())] if interval is not None else []
        if privacy is not None:
            extensions.append(Extension(PRIVACY_PARAMETERS, privacy.to_bytes()))
        if walk is not None:
            extensions.append(Extension(WALK, walk.to_bytes()))
        if admission is not None:
            extensions.append(Extension(ADMISSION, admission.to_bytes()))
        if blank is not None:
            extensions.append(Extension(BLANK_REPORTS, blank.to_bytes()))
        if not (leader.isascii() and helper.isascii()):
            raise InputError("the address of an aggregator is ASCII: write other letters as IDNA and percent codes")
        configuration = TaskConfiguration(
            info,
            leader.encode("ascii"),
            helper.encode("ascii"),
            time_precision,
            min_batch_size,
            batch_mode,
            b"",
            measured.VDAF,
            measured.to_bytes(),
            tuple(extensions),
        )
        try:
            return cls.read(task_id, configuration.to_bytes(), version)
        except CodecError as error:
            raise InputError(str(error)) from error

    @classmethod
    def read(cls, task_id: bytes, configuration: bytes, version: DapVersion = DAP_18) -> Self:
        """The task of this configuration; CodecError for one that is damaged, unknown here, or cannot be."""
        found = TaskConfiguration.from_bytes(configuration)
        try:
            _check_numbers(task_id, found, version)
            leader, helper = (_endpoint(each) for each in (found.leader_endpoint, found.helper_endpoint))
            if leader == helper:
                raise InputError("leader and helper have the same address: one server would hold both shares")
            measured = read_configuration(found.vdaf_type, found.vdaf_configuration)
            _check_version(measured, version)
            extensions = check_extensions(found.extensions, _KNOWN)
            interval = privacy = walk = admission = blank = None
            if (data := extensions.get(TASK_INTERVAL)) is not None:
                interval = read_interval(data)
            if (data := extensions.get(PRIVACY_PARAMETERS)) is not None:
                privacy = PrivacyParameters.from_bytes(data)
                privacy.check(measured)
            if (data := extensions.get(WALK)) is not None:
                walk = WalkTerms.from_bytes(data)
                walk.check(measured)
                _check_walk(found, version, privacy)
            if (data := extensions.get(ADMISSION)) is not None:
                admission = ReportAdmission.from_bytes(data)
                admission.check(measured)
                if version == DAP_09:
                    raise InputError("reports of DAP-09 carry no credentials: its tasks are open")
            if (data := extensions.get(BLANK_REPORTS)) is not None:
                blank = BlankReports.from_bytes(data)
                blank.check(measured)
                if privacy is not None:
                    raise InputError("a task names the noise of its sums, or reports of nobody, and not both")
        except InputError as error:
            raise CodecError(f"this task cannot be: {error}") from error
        return cls(
            task_id,
            configuration,
            found.task_info,
            leader,
            helper,
            found.time_precision,
            found.min_batch_size,
            found.batch_mode,
            measured,
            interval,
            privacy,
            version,
            walk,
            admission,
            blank,
        )

    @property
    def noisy(self) -> bool:
        """Whether aggregators add anything to its sums."""
        return not (self.privacy is None and self.walk is None and self.blank is None)

    @property
    def context(self) -> bytes:
        """The application context that its VDAF is bound to."""
        return self.version.vdaf_context(self.id)

    def time_at(self, seconds: int) -> int:
        """The time of a report made `seconds` after the epoch, as its version writes it."""
        return self.version.report_time(seconds, self.time_precision)


def _check_numbers(task_id: bytes, found: TaskConfiguration, version: DapVersion) -> None:
    if len(task_id) != TASK_ID:
        raise InputError(f"a task id has {TASK_ID} bytes, not {len(task_id)}")
    if len(found.task_info) < version.least_task_info:
        raise InputError(f"{version.tag.decode()} wants at least {version.least_task_info} byte of task info")
    if not 1 <= found.time_precision <= MOST_PRECISION:
        raise InputError(f"the time precision is 1 to {MOST_PRECISION} s, not {found.time_precision}")
    if not 1 <= found.min_batch_size <= MOST_REPORTS:
        raise InputError(f"the minimum batch size is 1 to {MOST_REPORTS}, not {found.min_batch_size}")
    if found.batch_mode is BatchMode.RESERVED or found.batch_config:
        raise InputError("the batch mode is by time interval or leader-selected, and neither has a configuration")


def _check_walk(found: TaskConfiguration, version: DapVersion, privacy: PrivacyParameters | None) -> None:
    if privacy is not None:
        raise InputError("a task names the noise of its sums, or the budget of questions about a tree, and not both")
    if found.batch_mode is not BatchMode.TIME_INTERVAL or version != DAP_18:
        raise InputError("questions about one report's tree are asked of intervals of times, in DAP-18")


def _check_version(measured: VdafConfiguration, version: DapVersion) -> None:
    """VDAF 08, of DAP-09, has no weights and no prefixes that we speak, and counts the bits of a number."""
    if version != DAP_09:
        return
    if isinstance(measured, MultihotConfiguration | Poplar1Configuration):
        raise InputError(f"DAP-09 is spoken for uploads of Count, Sum, SumVec and Histogram, not of {measured.NAME}")
    if isinstance(measured, SumConfiguration | SumVecConfiguration):
        most = measured.max_measurement
        if most & (most + 1):
            raise InputError(f"in DAP-09 the largest number is 2^bits − 1, which {most} is not")


def _endpoint(encoded: bytes) -> str:
    """An aggregator's address, unchanged; InputError unless it is absolute HTTP(S), without query or credentials."""
    text = encoded.decode("latin-1")
    found = _ENDPOINT.fullmatch(text) if len(text) <= _LONGEST_ENDPOINT else None
    if found is None or not 1 <= int(found["port"] or 443) <= 0xFFFF:
        raise InputError("the address of an aggregator is such as https://leader.example/dap/, of printable ASCII")
    return text
