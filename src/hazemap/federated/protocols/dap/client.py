"""A client's part: one measurement becomes one report (draft-ietf-ppm-dap-18, section 4.4.2; 09, section 4.3.2)."""

from dataclasses import dataclass
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import DAP_09, REPORT_ID, DapRole, HpkeCiphertext
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, credited
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    DapReport,
    InputShareAad,
    InputShareAad09,
    PlaintextInputShare,
    PlaintextInputShare09,
    Report09,
    ReportMetadata,
    ReportMetadata09,
)
from hazemap.federated.protocols.dap.vdaf_configuration import Extension, HpkeConfig, check_extensions
from hazemap.vdaf.vdaf import Vdaf


@dataclass(frozen=True)
class ReportExtensions:
    """What a report says beside its measurement: to both aggregators in the clear, or to one of them, sealed.

    >>> ReportExtensions(helper=(Extension(9, b"a token"),)).types
    (9,)
    """

    public: tuple[Extension, ...] = ()
    leader: tuple[Extension, ...] = ()
    helper: tuple[Extension, ...] = ()

    def __post_init__(self) -> None:
        for private in (self.leader, self.helper):
            seen = {each.type for each in (*self.public, *private)}
            check_extensions(self.public, seen)
            check_extensions(private, seen)
            if len(seen) != len(self.public) + len(private):
                raise InputError("an extension is public or private, and not both")

    @property
    def types(self) -> tuple[int, ...]:
        """All types, ascending."""
        return tuple(sorted({each.type for each in (*self.public, *self.leader, *self.helper)}))


NOTHING_MORE = ReportExtensions()


@dataclass(frozen=True)
class DapClient:
    """Makes reports of one task for two aggregators, whose public keys it has fetched.

    Its reports are as long as each other, whatever they measure. It draws nothing: a report takes `randomness_bytes`
    of fresh, uniform randomness, which is used for nothing else.
    """

    task: DapTask
    vdaf: Vdaf
    leader: HpkeConfig
    helper: HpkeConfig

    @property
    def randomness_bytes(self) -> int:
        """Report id ‖ randomness of the VDAF ‖ an ephemeral key for the leader ‖ one for the helper."""
        return REPORT_ID + self.vdaf.RAND_SIZE + _ephemeral(self.leader) + _ephemeral(self.helper)

    def report(
        self,
        measurement: Any,
        seconds: int,
        randomness: bytes,
        extensions: ReportExtensions = NOTHING_MORE,
        credential: HeldCredential | None = None,
    ) -> DapReport | Report09:
        """A report of `measurement`, made `seconds` after the epoch; InputError for what cannot be measured.

        `credential` is the device's for this task, and for no other report ever; a task that is open wants none.
        """
        if (credential is None) != (self.task.admission is None):
            raise InputError("a report carries a credential where its task names an issuer, and nowhere else")
        if len(randomness) != self.randomness_bytes:
            raise InputError(f"a report needs {self.randomness_bytes} random bytes, not {len(randomness)}")
        at, pieces = 0, []
        for size in (REPORT_ID, self.vdaf.RAND_SIZE, _ephemeral(self.leader), _ephemeral(self.helper)):
            pieces.append(randomness[at : at + size])
            at += size
        report_id, rand, *ephemeral = pieces
        time = self.task.time_at(seconds)
        if self.task.interval is not None and seconds // self.task.time_precision not in self.task.interval:
            raise InputError("the task takes no reports now: its time has not come, or is over")
        public_share, shares = self.vdaf.shard(self.task.context, measurement, report_id, rand)
        if self.task.version == DAP_09:
            return self._report_09(ReportMetadata09(report_id, time), public_share, shares, ephemeral, extensions)
        plain = [
            PlaintextInputShare(private, share).to_bytes()
            for private, share in zip((extensions.leader, extensions.helper), shares, strict=True)
        ]
        public = extensions.public
        if credential is not None:
            leader, helper = plain
            spent = credential.spent(credited(report_id, time, public_share), (leader, helper))
            public = tuple(sorted((*public, spent.extension), key=lambda each: each.type))
        metadata = ReportMetadata(report_id, time, public)
        aad = InputShareAad(self.task.id, self.task.configuration, metadata, public_share).to_bytes()
        return DapReport(metadata, public_share, *self._sealed(aad, plain, ephemeral))

    def _report_09(
        self,
        metadata: ReportMetadata09,
        public_share: bytes,
        shares: list[bytes],
        ephemeral: list[bytes],
        extensions: ReportExtensions,
    ) -> Report09:
        if extensions.public:
            raise InputError("a report of DAP-09 has no public extensions")
        aad = InputShareAad09(self.task.id, metadata, public_share).to_bytes()
        plain = [
            PlaintextInputShare09(private, share).to_bytes()
            for private, share in zip((extensions.leader, extensions.helper), shares, strict=True)
        ]
        return Report09(metadata, public_share, *self._sealed(aad, plain, ephemeral))

    def _sealed(self, aad: bytes, plain: list[bytes], ephemeral: list[bytes]) -> tuple[HpkeCiphertext, HpkeCiphertext]:
        leader, helper = (
            config.seal(self.task.version.input_share_info(role), aad, each, randomness)
            for config, role, each, randomness in zip(
                (self.leader, self.helper), (DapRole.LEADER, DapRole.HELPER), plain, ephemeral, strict=True
            )
        )
        return leader, helper


def _ephemeral(config: HpkeConfig) -> int:
    if (suite := config.suite) is None:
        raise InputError(f"the HPKE configuration {config.id} cannot be used here: take `preferred` of the list")
    return suite.kem.private_key_bytes
