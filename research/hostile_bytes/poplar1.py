"""Reports, messages and requests of Poplar1 that a hostile client, server or collector might send.

Inputs are valid ones spoilt as in `research.hostile_bytes.spoilt`. Bytes may be refused, or taken for the one value
that they encode. A spoilt report that both servers take counts for at most a single one among the nodes asked, and
a spoilt message between servers is refused, or says the same in all that is decided by it; among others of a job it
comes to what it comes to alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hazemap.machine_code.arrays import Words
from hazemap.vdaf.field255 import MODULUS
from hazemap.vdaf.ntt_field import FIELD64
from hazemap.vdaf.poplar1 import Poplar1, SketchState
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare, Vdaf
from research.hostile_bytes.spoilt import Check, must

POPLAR1 = Poplar1(6, most_prefixes=64)
CTX, KEY, NONCE = b"a task", bytes(range(32)), bytes(range(16))
LEAF = 0b101100
LEVELS = {2: [0, 3, 5, 7], 5: [1, 44, 45]}


def parameter(level: int) -> bytes:
    """The request at one of both levels."""
    return Poplar1Parameter(level, np.array(LEVELS[level], dtype=np.uint64)).to_bytes()


def begun(level: int, public: bytes, shares: Sequence[bytes]) -> list[Continuation]:
    """Both servers after `verify_init`."""
    reports = [ReportShare(NONCE, public, share) for share in shares]
    return [POPLAR1.verify_init(KEY, CTX, server, parameter(level), *report) for server, report in enumerate(reports)]


def gone_on(level: int, both: Sequence[Continuation]) -> list[int]:
    """What a report counts for, after both rounds."""
    for _ in range(2):
        said = [each.verifier_share for each in both]
        message = POPLAR1.verifier_shares_to_message(CTX, parameter(level), said)
        after = [POPLAR1.verify_next(CTX, each.state, message) for each in both]
        both = [each for each in after if isinstance(each, Continuation)]
    return POPLAR1.unshard(parameter(level), [each for each in after if not isinstance(each, Continuation)])


def at_most_one(level: int, public: bytes, shares: Sequence[bytes]) -> None:
    """A report, whatever its bytes: refused, or at most one among the nodes."""
    counts = gone_on(level, begun(level, public, shares))
    must(sorted(counts)[-2:] in ([0, 0], [0, 1]) and len(counts) == len(LEVELS[level]))


def corpus() -> dict[str, tuple[list[bytes], Check]]:
    """By the name of a decoder, bytes that it takes, and the decoder."""
    public, shares = POPLAR1.shard(CTX, LEAF, NONCE, bytes(range(128)))
    found: dict[str, tuple[list[bytes], Check]] = {
        "aggregation parameter": ([parameter(level) for level in LEVELS], asked),
    }
    for level, nodes in LEVELS.items():
        asking, both = parameter(level), begun(level, public, shares)
        said = [each.verifier_share for each in both]
        message = POPLAR1.verifier_shares_to_message(CTX, asking, said)
        states = [each.state for each in both]
        share = POPLAR1.share_of(asking, range(len(nodes)))
        private = partial(at_most_one, level, public)
        found |= {
            f"level {level}: public share": ([public], partial(at_most_one, level, shares=shares)),
            f"level {level}: leader's share": ([shares[0]], lambda data, private=private: private([data, shares[1]])),
            f"level {level}: helper's share": ([shares[1]], lambda data, private=private: private([shares[0], data])),
            f"level {level}: verifier share": ([said[1]], partial(said_by_the_helper, level, both)),
            f"level {level}: verifier message": ([message], partial(said_to_both, level, states, message)),
            f"level {level}: state": ([POPLAR1.encode_state(asking, each) for each in states], partial(stored, asking)),
            f"level {level}: aggregate share": ([POPLAR1.encode_agg_share(asking, share)], partial(shared, asking)),
        }
    return found


def asked(data: bytes) -> None:
    """An aggregation parameter."""
    valid = POPLAR1.is_valid(data, [])
    read = Poplar1Parameter.from_bytes(data, most=64)
    must(read.to_bytes() == data)
    must(valid == (read.increasing and read.level < POPLAR1.bits))
    must(POPLAR1.is_valid(data, [parameter(2)]) <= (valid and read.level > 2))


def said_by_the_helper(level: int, both: Sequence[Continuation], data: bytes) -> None:
    """A verifier share of the first round."""
    said = [both[0].verifier_share, both[1].verifier_share]
    jobs = [said, [said[0], data], said, [data, said[1]]]
    shares_alike(level, jobs)
    shares_alike(level, [[data, data]] * 2)
    shares_alike(level, [[each[: len(each) // 3] for each in job] for job in jobs])
    counts = gone_on(level, [both[0], both[1]._replace(verifier_share=data)])
    must(decided_by(level, data) == decided_by(level, both[1].verifier_share) and sum(counts) == 1)


def said_to_both(level: int, states: Sequence[SketchState], honest: bytes, data: bytes) -> None:
    """A verifier message of the first round."""
    for state in states:
        messages_alike([state] * 3, [honest, data, honest])
        messages_alike([state, replace(state, masks=None)] * 2, [data, data, honest, b""])
        messages_alike([replace(state, masks=None)] * 2, [b"", data])
    after = [POPLAR1.verify_next(CTX, state, data) for state in states]
    said = [each.verifier_share for each in after if isinstance(each, Continuation)]
    POPLAR1.verifier_shares_to_message(CTX, parameter(level), said)
    must(decided_by(level, data) == decided_by(level, honest))


def decided_by(level: int, sketch: bytes) -> tuple[int, int]:
    """What is decided by three numbers of a sketch: the first, which is squared, and the sum of the other two.

    The check is z₀² − z₁ − z₂: whoever adds to z₁ what he takes from z₂ has said the same (seed 241122 did).
    """
    modulus, size = (MODULUS if level == POPLAR1.bits - 1 else FIELD64.modulus), len(sketch) // 3
    first, second, third = (int.from_bytes(sketch[i : i + size], "little") for i in range(0, 3 * size, size))
    return first, (second + third) % modulus


def shares_alike(level: int, shares: Sequence[Sequence[bytes]]) -> None:
    """What both servers say of the reports of a job is taken as if each were alone."""
    alone = Vdaf.verifier_shares_to_messages(POPLAR1, CTX, parameter(level), shares)
    together = POPLAR1.verifier_shares_to_messages(CTX, parameter(level), shares)
    must([outcome(each) for each in together] == [outcome(each) for each in alone])


def messages_alike(states: Sequence[SketchState], messages: Sequence[bytes]) -> None:
    """A server goes on with the reports of a job as if each were alone."""
    alone = Vdaf.verify_next_all(POPLAR1, CTX, states, messages)
    together = POPLAR1.verify_next_all(CTX, states, messages)
    must([outcome(each) for each in together] == [outcome(each) for each in alone])


def outcome(found: bytes | Continuation | Words | InvalidReport) -> object:
    """What came of a report, to be compared."""
    if isinstance(found, InvalidReport):
        return str(found), found.undecodable
    if isinstance(found, Continuation):
        return found.verifier_share, found.state.masks, found.state.agg_id, found.state.level, id(found.state.out_share)
    return found if isinstance(found, bytes) else id(found)


def stored(asking: bytes, data: bytes) -> None:
    """A server's own state."""
    must(POPLAR1.encode_state(asking, POPLAR1.decode_state(asking, data)) == data)


def shared(asking: bytes, data: bytes) -> None:
    """An aggregate share."""
    must(POPLAR1.encode_agg_share(asking, POPLAR1.decode_agg_share(asking, data)) == data)
