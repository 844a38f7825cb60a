"""How two aggregators take turns until a report is verified (draft-irtf-cfrg-vdaf-20, section 5.7.1).

    leader                         helper
      leader_init ── initialize ──► helper_init           one round:  ◄── finish ──
                  ◄── continue ───                        two rounds: ◄── continue ── ── finish ──►
      leader_continued ── finish ─► helper_continued

Each function takes many reports of one job, so that a VDAF may verify them together; what one report does wrong
rejects that report alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self, TypeVar

from hazemap.vdaf.compiled_loops import Words
from hazemap.vdaf.errors import CodecError
from hazemap.vdaf.tls_encoding import TlsReader, TlsWriter, code
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare, Vdaf

LEADER, HELPER = 0, 1


class MessageType(IntEnum):
    """Which parts a message has.

    >>> MessageType.FINISH.value
    2
    """

    INITIALIZE = 0
    """a verifier share"""
    CONTINUE = 1
    """a verifier message, and a share of the next round"""
    FINISH = 2
    """the last verifier message"""


_TYPE = code(MessageType, 1)


@dataclass(frozen=True)
class PingPongMessage:
    """What one aggregator says to the other about one report.

    >>> PingPongMessage(MessageType.CONTINUE, b"012345", b"6789").to_bytes().hex()
    '01000000063031323334350000000436373839'
    """

    type: MessageType
    verifier_message: bytes = b""
    verifier_share: bytes = b""

    def to_bytes(self) -> bytes:
        """uint8 type, then each part after its length."""
        writer = TlsWriter().number(self.type, 1)
        if self.type is not MessageType.INITIALIZE:
            writer.opaque(self.verifier_message, 4)
        if self.type is not MessageType.FINISH:
            writer.opaque(self.verifier_share, 4)
        return writer.done()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote; CodecError for anything else."""
        reader = TlsReader(data)
        kind = _TYPE.read(reader)
        message = b"" if kind is MessageType.INITIALIZE else reader.opaque(4)
        share = b"" if kind is MessageType.FINISH else reader.opaque(4)
        reader.end()
        return cls(kind, message, share)


@dataclass(frozen=True)
class Continued:
    """This side has something to say, and then waits for the other."""

    state: Any
    round: int
    outbound: bytes

    def to_bytes(self, vdaf: Vdaf, agg_param: bytes) -> bytes:
        """For a store of this aggregator's own: SECRET."""
        state = vdaf.encode_state(agg_param, self.state)
        return TlsWriter().number(self.round, 1).opaque(self.outbound, 4).opaque(state, 4).done()

    @classmethod
    def from_bytes(cls, vdaf: Vdaf, agg_param: bytes, data: bytes) -> Self:
        """What `to_bytes` wrote; CodecError for anything else."""
        reader = TlsReader(data)
        round_, outbound, state = reader.number(1), reader.opaque(4), reader.opaque(4)
        reader.end()
        if round_ >= vdaf.ROUNDS:
            raise CodecError(f"a verification of {vdaf.ROUNDS} rounds has no round {round_}")
        return cls(vdaf.decode_state(agg_param, state), round_, outbound)


@dataclass(frozen=True, eq=False)
class FinishedWithOutbound:
    """This side has its output share, and something to say so that the other has too."""

    out_share: Words
    outbound: bytes


@dataclass(frozen=True, eq=False)
class Finished:
    """Both sides have their output shares."""

    out_share: Words


@dataclass(frozen=True)
class Rejected:
    """The report is invalid, or what was said of it is."""

    error: InvalidReport


State = Continued | FinishedWithOutbound | Finished | Rejected
T = TypeVar("T")


def leader_init(
    vdaf: Vdaf, verify_key: bytes, ctx: bytes, agg_param: bytes, reports: Sequence[ReportShare]
) -> list[Continued | Rejected]:
    """The leader begins with each report; what it says goes to the helper's `helper_init`."""
    begun = vdaf.verify_init_all(verify_key, ctx, LEADER, agg_param, reports)
    return [
        Rejected(each)
        if isinstance(each, InvalidReport)
        else Continued(each.state, 0, PingPongMessage(MessageType.INITIALIZE, b"", each.verifier_share).to_bytes())
        for each in begun
    ]


def helper_init(
    vdaf: Vdaf,
    verify_key: bytes,
    ctx: bytes,
    agg_param: bytes,
    reports: Sequence[ReportShare],
    inbound: Sequence[bytes],
) -> list[State]:
    """The helper answers what the leader began with."""
    messages = [_message(data, MessageType.INITIALIZE) for data in inbound]

    def begin(wanted: list[tuple[ReportShare, PingPongMessage]]) -> list[State]:
        begun = vdaf.verify_init_all(verify_key, ctx, HELPER, agg_param, [report for report, _ in wanted])
        both = [
            each if isinstance(each, InvalidReport) else ((message.verifier_share, each.verifier_share), each.state)
            for each, (_, message) in zip(begun, wanted, strict=True)
        ]
        return _each_valid(both, lambda valid: _transition(vdaf, ctx, agg_param, valid, 0))

    pairs = [
        message if isinstance(message, InvalidReport) else (report, message)
        for report, message in zip(reports, messages, strict=True)
    ]
    return _each_valid(pairs, begin)


def leader_continued(
    vdaf: Vdaf, ctx: bytes, agg_param: bytes, states: Sequence[Continued], inbound: Sequence[bytes]
) -> list[State]:
    """The leader takes what the helper answered."""
    return _continued(LEADER, vdaf, ctx, agg_param, states, inbound)


def helper_continued(
    vdaf: Vdaf, ctx: bytes, agg_param: bytes, states: Sequence[Continued], inbound: Sequence[bytes]
) -> list[State]:
    """The helper takes what the leader said next."""
    return _continued(HELPER, vdaf, ctx, agg_param, states, inbound)


def _continued(
    role: int, vdaf: Vdaf, ctx: bytes, agg_param: bytes, states: Sequence[Continued], inbound: Sequence[bytes]
) -> list[State]:
    rounds = {state.round for state in states}
    if len(rounds) > 1:
        raise ValueError("the reports of a job are verified in step")
    if not states:
        return []
    (now,) = rounds
    last = now + 1 == vdaf.ROUNDS
    messages = [_message(data, MessageType.FINISH if last else MessageType.CONTINUE) for data in inbound]

    def go_on(wanted: list[tuple[Continued, PingPongMessage]]) -> list[State]:
        outs = vdaf.verify_next_all(
            ctx, [state.state for state, _ in wanted], [message.verifier_message for _, message in wanted]
        )
        if last:
            return [Rejected(out) if isinstance(out, InvalidReport) else Finished(_words(out)) for out in outs]
        both: list[tuple[tuple[bytes, bytes], Any] | InvalidReport] = []
        for out, (_, message) in zip(outs, wanted, strict=True):
            if isinstance(out, InvalidReport):
                both.append(out)
                continue
            own = _continuation(out)
            shares = (message.verifier_share, own.verifier_share)
            both.append((shares[::-1] if role == LEADER else shares, own.state))
        return _each_valid(both, lambda valid: _transition(vdaf, ctx, agg_param, valid, now + 1))

    pairs = [
        message if isinstance(message, InvalidReport) else (state, message)
        for state, message in zip(states, messages, strict=True)
    ]
    return _each_valid(pairs, go_on)


def _transition(
    vdaf: Vdaf, ctx: bytes, agg_param: bytes, reports: list[tuple[tuple[bytes, bytes], Any]], now: int
) -> list[State]:
    """Both shares of a round become its message, and this side goes on with it."""
    said = vdaf.verifier_shares_to_messages(ctx, agg_param, [shares for shares, _ in reports])
    both = [
        message if isinstance(message, InvalidReport) else (message, state)
        for message, (_, state) in zip(said, reports, strict=True)
    ]

    def go_on(wanted: list[tuple[bytes, Any]]) -> list[State]:
        outs = vdaf.verify_next_all(ctx, [state for _, state in wanted], [message for message, _ in wanted])
        return [_after(vdaf, out, message, now) for out, (message, _) in zip(outs, wanted, strict=True)]

    return _each_valid(both, go_on)


def _after(vdaf: Vdaf, out: Continuation | Words | InvalidReport, message: bytes, now: int) -> State:
    if isinstance(out, InvalidReport):
        return Rejected(out)
    if now + 1 == vdaf.ROUNDS:
        return FinishedWithOutbound(_words(out), PingPongMessage(MessageType.FINISH, message).to_bytes())
    own = _continuation(out)
    outbound = PingPongMessage(MessageType.CONTINUE, message, own.verifier_share)
    return Continued(own.state, now + 1, outbound.to_bytes())


def _each_valid(items: Iterable[T | InvalidReport], work: Callable[[list[T]], list[State]]) -> list[State]:
    """What `work` makes of the valid ones, all at once, and a rejection in the place of each that is not."""
    every = list(items)
    done = iter(work([item for item in every if not isinstance(item, InvalidReport)]))
    return [Rejected(item) if isinstance(item, InvalidReport) else next(done) for item in every]


def _message(data: bytes, wanted: MessageType) -> PingPongMessage | InvalidReport:
    try:
        message = PingPongMessage.from_bytes(data)
    except CodecError as error:
        return InvalidReport(f"the other aggregator's message about a report cannot be read: {error}")
    if message.type is not wanted:
        return InvalidReport(f"the other aggregator says {message.type.name.lower()}, which is not its turn to say")
    return message


def _words(out: Continuation | Words) -> Words:
    if isinstance(out, Continuation):
        raise TypeError("a VDAF goes on after its last round")
    return out


def _continuation(out: Continuation | Words) -> Continuation:
    if not isinstance(out, Continuation):
        raise TypeError("a VDAF ends before its last round")
    return out
