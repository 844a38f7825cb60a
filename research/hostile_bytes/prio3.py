"""Reports, messages and shares of Prio3 that a hostile client, server or collector might send.

Inputs are valid ones spoilt as in `research.hostile_bytes.spoilt`. A spoilt report is refused by one server or the
other; a spoilt message between servers is refused; bytes of shares of results may be refused, or taken for the one
value that they encode. Histogram, one L1BoundSum and Sum go through machine code where `Prio3` does, the others through
plain Python.
"""

from functools import partial

from hazemap.vdaf.prio3 import Prio3, prio3_count, prio3_histogram, prio3_l1_bound_sum, prio3_sum
from hazemap.vdaf.prio3_plain import Prio3State
from hazemap.vdaf.vdaf import VDAF_08, Continuation
from research.hostile_bytes.spoilt import Check, must

NONCE = bytes(range(16))
KINDS = {
    "histogram": (Prio3(prio3_histogram(9, 4).parameters, compiled=True), 3),
    "histogram 08": (Prio3(prio3_histogram(9, 4, version=VDAF_08).parameters, compiled=True), 3),
    "l1 bound": (Prio3(prio3_l1_bound_sum(4, 5, 4).parameters, compiled=True), [0, 2, 0, 3]),
    "l1 bound, plain": (Prio3(prio3_l1_bound_sum(2, 1, 2).parameters, compiled=False), [1, 0]),
    "sum": (prio3_sum(5), 4),
    "count": (prio3_count(), 1),
}


def begun(vdaf: Prio3, public: bytes, shares: tuple[bytes, bytes]) -> list[Continuation]:
    """Both servers after `verify_init`."""
    key = bytes(range(vdaf.VERIFY_KEY_SIZE))
    return [vdaf.verify_init(key, b"", i, b"", NONCE, public, share) for i, share in enumerate(shares)]


def verified(vdaf: Prio3, public: bytes, shares: tuple[bytes, bytes]) -> list[int]:
    """What a report counts for, after both servers have spoken."""
    both = begun(vdaf, public, shares)
    message = vdaf.verifier_shares_to_message(b"", b"", [each.verifier_share for each in both])
    return vdaf.unshard(b"", [vdaf.verify_next(b"", each.state, message) for each in both])


def corpus() -> dict[str, tuple[list[bytes], Check]]:
    """By the name of a decoder, bytes that it takes, and the decoder."""
    found: dict[str, tuple[list[bytes], Check]] = {}
    for name, (vdaf, measurement) in KINDS.items():
        public, (leader, helper) = vdaf.shard(b"", measurement, NONCE, bytes(range(vdaf.RAND_SIZE)))
        both = begun(vdaf, public, (leader, helper))
        said = both[1].verifier_share
        message = vdaf.verifier_shares_to_message(b"", b"", [both[0].verifier_share, said])
        state: Prio3State = both[0].state
        if public:
            found[f"{name}: public share"] = [public], partial(report, vdaf, public, None, leader, helper)
            found[f"{name}: message"] = [message], partial(told, vdaf, state, message)
        found |= {
            f"{name}: leader's share": ([leader], partial(report, vdaf, leader, public, None, helper)),
            f"{name}: helper's share": ([helper], partial(report, vdaf, helper, public, leader, None)),
            f"{name}: verifier share": ([said], partial(answered, vdaf, both[0].verifier_share, said)),
            f"{name}: state": ([vdaf.encode_state(b"", state)], partial(stored, vdaf)),
            f"{name}: result": ([vdaf.encode_agg_share(b"", state.out_share)], partial(shared, vdaf)),
        }
    return found


def report(
    vdaf: Prio3, honest: bytes, public: bytes | None, leader: bytes | None, helper: bytes | None, data: bytes
) -> None:
    """A report in which one part (None here) is spoilt."""
    parts = [data if part is None else part for part in (public, leader, helper)]
    verified(vdaf, parts[0], (parts[1], parts[2]))
    must(data == honest)


def answered(vdaf: Prio3, first: bytes, honest: bytes, data: bytes) -> None:
    """The helper's verifier share: only its part of the joint randomness may differ, and then the message does."""
    message = vdaf.verifier_shares_to_message(b"", b"", [first, data])
    right = vdaf.verifier_shares_to_message(b"", b"", [first, honest])
    must((message == right) == (data == honest))


def told(vdaf: Prio3, state: Prio3State, honest: bytes, data: bytes) -> None:
    """A verifier message."""
    vdaf.verify_next(b"", state, data)
    must(data == honest)


def stored(vdaf: Prio3, data: bytes) -> None:
    """A server's own state."""
    must(vdaf.encode_state(b"", vdaf.decode_state(b"", data)) == data)


def shared(vdaf: Prio3, data: bytes) -> None:
    """A share of a result."""
    must(vdaf.encode_agg_share(b"", vdaf.decode_agg_share(b"", data)) == data)
