"""The collector asks for a batch and opens its result (draft-ietf-ppm-dap-18, sections 4.6.1, 4.6.4 and 4.6.5)."""

from dataclasses import dataclass, field

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.dap.basic_types import DapRole, HpkeCiphertext, TimeInterval
from hazemap.federated.protocols.dap.collection_messages import (
    AggregateShareAad,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
)
from hazemap.federated.protocols.dap.prefix_question import PrefixQuestion, decoded_shares
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig
from hazemap.privacy.two_server_noise import lifted
from hazemap.vdaf.hpke import HpkeKeyPair
from hazemap.vdaf.idpf import MODULUS_INNER
from hazemap.vdaf.vdaf import Vdaf


@dataclass(frozen=True)
class AggregateResult:
    """How many reports, of which times, and the sums: signed, where the aggregators have added noise."""

    count: int
    interval: TimeInterval
    sums: tuple[int, ...]


@dataclass(frozen=True)
class Collector:
    """Who may see the sums of a task: it holds the private key that both aggregate shares are sealed for."""

    task: DapTask
    vdaf: Vdaf = field(repr=False)
    config: HpkeConfig
    key: HpkeKeyPair

    def __post_init__(self) -> None:
        suite = self.config.suite
        if suite is None or suite.kem is not self.key.kem or self.config.public_key != self.key.public:
            raise InputError("the private key is not that of the collector's HPKE configuration")

    def request(self, interval: TimeInterval | None = None, agg_param: bytes = b"") -> CollectionJobReq:
        """What to ask the leader for: the reports of an interval, or, in a leader-selected task, the next batch."""
        if (interval is None) is (self.task.batch_mode is BatchMode.TIME_INTERVAL):
            raise InputError(
                "batches of this task are intervals of times" if interval is None else "the leader chooses"
            )
        query = BatchQuery.next_batch() if interval is None else BatchQuery.of_interval(interval.checked())
        return CollectionJobReq(query, agg_param)

    def result(self, request: CollectionJobReq, response: CollectionJobResp) -> AggregateResult:
        """The result of the leader's answer to this very request; `Refused` for shares that are of anything else."""
        if response.report_count < self.task.min_batch_size:
            raise Refused(
                f"the batch has {response.report_count} reports; the aggregators have agreed on "
                f"{self.task.min_batch_size} or more"
            )
        asked = request.query.interval()
        if asked is not None and not response.interval.checked().within(asked):
            raise Refused("the leader answers with reports of other times than were asked for")
        sealed = ((DapRole.LEADER, response.leader_share), (DapRole.HELPER, response.helper_share))
        opened = [self._opened(request, *each) for each in sealed]
        sums = self._sums(request.agg_param, opened) if self.task.walk is None else _answer(request.agg_param, opened)
        return AggregateResult(response.report_count, response.interval, tuple(sums))

    def _sums(self, agg_param: bytes, opened: list[bytes]) -> list[int]:
        sums = self.vdaf.unshard(agg_param, [self.vdaf.decode_agg_share(agg_param, each) for each in opened])
        if self.task.privacy is None:
            return sums
        found: list[int] = lifted(sums, self.vdaf.modulus(agg_param)).tolist()
        return found

    def _opened(self, request: CollectionJobReq, sender: DapRole, share: HpkeCiphertext) -> bytes:
        if share.config_id != self.config.id:
            raise Refused("an aggregate share is sealed for another key than the task's collector's")
        suite = self.config.suite
        assert suite is not None  # noqa: S101 - checked when this was made
        aad = AggregateShareAad(self.task.id, self.task.configuration, request).to_bytes()
        return suite.open(self.key, share.enc, self.task.version.aggregate_share_info(sender), aad, share.payload)


def _answer(question: bytes, opened: list[bytes]) -> list[int]:
    """The noisy sums that a question asked for."""
    size = PrefixQuestion.from_bytes(question).size
    one, other = (decoded_shares(each, size) for each in opened)
    sums: list[int] = lifted([(a + b) % MODULUS_INNER for a, b in zip(one, other, strict=True)], MODULUS_INNER).tolist()
    return sums
