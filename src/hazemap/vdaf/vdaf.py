"""What every verifiable distributed aggregation function does (draft-irtf-cfrg-vdaf-20, section 5).

A client splits its measurement into one share for each aggregator. The aggregators verify together that the shares
belong to a valid measurement, and see nothing else of it; each adds up its shares; a collector adds up their sums.

Whatever travels is bytes here. Shares of results are arrays of field elements, uint64[length, words of an element]:
canonical numbers below the modulus, least significant word first, so that `numpy.ndarray.tobytes` is their encoding on
little-endian machines and on others after a swap. Nothing here draws randomness: it is an argument.

`VdafVersion` is what differs between the versions of Prio3 that are spoken: draft 20 (wire version 18), and draft 08.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hazemap.vdaf.compiled_loops import Words
from hazemap.vdaf.errors import InputError, Refused

T = TypeVar("T")


class InvalidReport(Refused):
    """What one report does wrong: it is not counted, and says nothing of any other report.

    `undecodable` tells bytes that are no share at all (`invalid_message` in DAP) from shares of an invalid measurement
    (`vdaf_verify_error`).
    """

    def __init__(self, message: str, *, undecodable: bool = False) -> None:
        super().__init__(message)
        self.undecodable = undecodable


class ReportShare(NamedTuple):
    """What one aggregator holds of a report."""

    nonce: bytes
    public_share: bytes
    input_share: bytes


class Continuation(NamedTuple):
    """Where one aggregator stands with a report, and what it tells the others."""

    state: Any
    """goes into `verify_next`, or through `encode_state` into a store"""
    verifier_share: bytes


class Vdaf(Protocol):
    """One function with its parameters. Classes that inherit from it get verification of many reports by a loop.

    `agg_param` is b"" where a function has none. Every method that reads what a client or another aggregator sent
    raises `InvalidReport`, for that report alone; `InputError` is for the caller's own mistakes, such as a key of the
    wrong length. `Refused` is for aggregation parameters and shares of whole batches that cannot be.
    """

    ID: int
    """of the algorithm, in its version"""
    SHARES: int
    """aggregators"""
    ROUNDS: int
    """messages that the aggregators exchange for a report"""
    NONCE_SIZE: int
    """bytes of what tells reports apart, drawn by the client; public"""
    RAND_SIZE: int
    """bytes of randomness that a client needs for a report; secret"""
    VERIFY_KEY_SIZE: int
    """bytes of the aggregators' common key, secret from clients"""

    @property
    @abstractmethod
    def share_sizes(self) -> tuple[int, ...]:
        """Bytes of a report's public share, and of the input share of each aggregator."""

    @abstractmethod
    def shard(self, ctx: bytes, measurement: Any, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        """The public share and one input share for each aggregator; `InputError` for what cannot be measured."""

    @abstractmethod
    def verify_init(
        self,
        verify_key: bytes,
        ctx: bytes,
        agg_id: int,
        agg_param: bytes,
        nonce: bytes,
        public_share: bytes,
        input_share: bytes,
    ) -> Continuation:
        """Begin to verify a report as aggregator `agg_id` (0 is the leader)."""

    @abstractmethod
    def verifier_shares_to_message(self, ctx: bytes, agg_param: bytes, shares: Sequence[bytes]) -> bytes:
        """What all aggregators said of a report in one round, in their order, as one message."""

    @abstractmethod
    def verify_next(self, ctx: bytes, state: Any, message: bytes) -> Continuation | Words:
        """Go on with the message of a round: to the next one, or to the output share after the last."""

    @abstractmethod
    def is_valid(self, agg_param: bytes, previous: Sequence[bytes]) -> bool:
        """Whether a report may be aggregated by this after what came before, the earliest first."""

    @abstractmethod
    def modulus(self, agg_param: bytes) -> int:
        """The number of elements of the field in which results are shared."""

    @abstractmethod
    def output_length(self, agg_param: bytes) -> int:
        """How many numbers a result has."""

    @abstractmethod
    def encode_state(self, agg_param: bytes, state: Any) -> bytes:
        """A state for a store of this aggregator's own."""

    @abstractmethod
    def decode_state(self, agg_param: bytes, data: bytes) -> Any:
        """What `encode_state` wrote; `CodecError` for anything else."""

    @abstractmethod
    def merge(self, agg_param: bytes, shares: Iterable[Words]) -> Words:
        """The sum of output shares, aggregate shares or none, as an aggregate share; one array of memory."""

    @abstractmethod
    def share_of(self, agg_param: bytes, numbers: Sequence[int]) -> Words:
        """Numbers (signed ones too) as field elements: what merges noise into an aggregate share."""

    @abstractmethod
    def encode_agg_share(self, agg_param: bytes, share: Words) -> bytes:
        """An aggregate share as it travels to the collector; an output share has the same encoding."""

    @abstractmethod
    def decode_agg_share(self, agg_param: bytes, data: bytes) -> Words:
        """What `encode_agg_share` wrote; `CodecError` for anything else."""

    @abstractmethod
    def unshard(self, agg_param: bytes, agg_shares: Sequence[Words]) -> list[int]:
        """The result of one aggregate share from each aggregator: numbers below the modulus.

        Noise may have carried some below 0: `two_server_noise.lifted` brings those back.
        """

    def verify_init_all(
        self, verify_key: bytes, ctx: bytes, agg_id: int, agg_param: bytes, reports: Sequence[ReportShare]
    ) -> list[Continuation | InvalidReport]:
        """`verify_init` of many reports: what each raises stands in its place."""
        return [_tried(self.verify_init, verify_key, ctx, agg_id, agg_param, *report) for report in reports]

    def verifier_shares_to_messages(
        self, ctx: bytes, agg_param: bytes, shares: Sequence[Sequence[bytes]]
    ) -> list[bytes | InvalidReport]:
        """`verifier_shares_to_message` of many reports: what each raises stands in its place."""
        return [_tried(self.verifier_shares_to_message, ctx, agg_param, each) for each in shares]

    def verify_next_all(
        self, ctx: bytes, states: Sequence[Any], messages: Sequence[bytes]
    ) -> list[Continuation | Words | InvalidReport]:
        """`verify_next` of many reports: what each raises stands in its place."""
        return [_tried(self.verify_next, ctx, state, message) for state, message in zip(states, messages, strict=True)]


def _tried(step: Callable[..., T], *arguments: Any) -> T | InvalidReport:
    """What a step makes of one report, or its `InvalidReport`."""
    try:
        return step(*arguments)
    except InvalidReport as error:
        return error


@dataclass(frozen=True)
class VdafVersion:
    """One version's facts.

    >>> VDAF_18.domain_separation_tag(4, 2, b"app").hex(), VDAF_08.domain_separation_tag(3, 2, b"").hex()
    ('1200000000040002617070', '0800000000030002')
    """

    number: int
    """the version byte of domain separation tags"""
    seed_size: int
    """bytes of a seed of the XOF, and of a verification key"""
    tag_length_size: int
    """bytes in which the XOF writes the length of a tag"""
    writes_seed_length: bool
    """whether the XOF writes the length of a seed before it"""
    binds_context: bool
    """whether tags end in the application's context"""
    seeds_of_a_helper: int
    """1: measurement share and proof share come from one seed; 2: from one each"""
    sends_values: bool
    """whether proofs hold a gadget polynomial's values (Lagrange), or its coefficients (monomial)"""
    reduces_by_query: bool
    """whether checks are joined by randomness of the aggregators' key, or by joint randomness"""
    ids: MappingProxyType[str, int]
    """numbers of the variants of Prio3"""

    def domain_separation_tag(self, algorithm: int, usage: int, ctx: bytes) -> bytes:
        """What keeps outputs of the XOF for different ends apart."""
        if ctx and not self.binds_context:
            raise InputError(f"version {self.number:02} of VDAFs is not bound to a context: give none")
        if len(ctx) > 65_535 - 8:
            raise InputError("a context has at most 65,527 bytes")
        return bytes([self.number, 0]) + algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx


VDAF_18: Final = VdafVersion(
    number=18,
    seed_size=32,
    tag_length_size=2,
    writes_seed_length=True,
    binds_context=True,
    seeds_of_a_helper=1,
    sends_values=True,
    reduces_by_query=True,
    ids=MappingProxyType({"Count": 1, "Sum": 2, "SumVec": 3, "Histogram": 4, "MultihotCountVec": 5, "L1BoundSum": 7}),
)
VDAF_08: Final = VdafVersion(
    number=8,
    seed_size=16,
    tag_length_size=1,
    writes_seed_length=False,
    binds_context=False,
    seeds_of_a_helper=2,
    sends_values=False,
    reduces_by_query=False,
    ids=MappingProxyType({"Count": 0, "Sum": 1, "SumVec": 2, "Histogram": 3, "MultihotCountVec": 0xFFFFFFFF}),
)
