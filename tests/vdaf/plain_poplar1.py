"""One server's half of Poplar1 in plain Python, as the draft writes it: the oracle of the loops."""

from collections.abc import Sequence
from typing import NamedTuple

from hazemap.vdaf.compiled_loops import Words
from hazemap.vdaf.idpf import CorrectionWord, IdpfBBCGGI21, elements
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare
from hazemap.vdaf.xofs import TurboShake128


class PlainShare(NamedTuple):
    """What `verify_init` computes."""

    sketch: list[int]
    masks: list[int]
    data: list[int]


def xof(seed: bytes, usage: int, ctx: bytes, binder: bytes) -> TurboShake128:
    tag = bytes([18, 0, 0, 0, 0, 6, 0, usage]) + ctx
    return TurboShake128(len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder, 1)


def numbers(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def correction_words(bits: int, public: bytes) -> list[CorrectionWord]:
    """A public share as its parts (section 8.2.6.1)."""
    packed = (2 * bits + 7) // 8
    flags = [public[i // 8] >> i % 8 & 1 for i in range(2 * bits)]
    values = numbers(public[packed + 16 * bits : -64], 8) + numbers(public[-64:], 32)
    return [
        CorrectionWord(
            public[packed + 16 * level : packed + 16 * level + 16],
            (flags[2 * level], flags[2 * level + 1]),
            (values[2 * level], values[2 * level + 1]),
        )
        for level in range(bits)
    ]


def verify_init(
    bits: int, key: bytes, ctx: bytes, server: int, level: int, prefixes: Sequence[int], report: ReportShare
) -> PlainShare:
    """Section 8.2.2, line by line."""
    idpf, nonce, share = IdpfBBCGGI21(bits), report.nonce, report.input_share
    modulus, size = idpf.field(level)
    words = correction_words(bits, report.public_share)
    values = idpf.eval(server, words, share[:16], level, prefixes, ctx, nonce)
    if level < bits - 1:
        sketch = elements(xof(share[16:48], 2, ctx, bytes([server]) + nonce), modulus, size, 3 * level + 3)[-3:]
        masks = numbers(share[48:-64], 8)[2 * level : 2 * level + 2]
    else:
        sketch = elements(xof(share[16:48], 3, ctx, bytes([server]) + nonce), modulus, size, 3)
        masks = numbers(share[-64:], 32)
    random = elements(xof(key, 4, ctx, nonce + level.to_bytes(2, "big")), modulus, size, len(prefixes))
    for r, (data, auth) in zip(random, values, strict=True):
        for i, term in enumerate((data * r, data * r * r, auth * r)):
            sketch[i] = (sketch[i] + term) % modulus
    return PlainShare(sketch, masks, [data for data, _ in values])


def counted(
    poplar1: Poplar1, key: bytes, ctx: bytes, parameter: bytes, pairs: Sequence[tuple[ReportShare, ReportShare]]
) -> list[list[int] | InvalidReport]:
    """Both servers' verification of reports, from the root: of each what it counts for, or why it does not."""
    turn = [poplar1.verify_init_all(key, ctx, server, parameter, [pair[server] for pair in pairs]) for server in (0, 1)]
    found: list[list[int] | InvalidReport] = []
    for both in zip(*turn, strict=True):
        try:
            for each in both:
                if isinstance(each, InvalidReport):
                    raise each
            last = gone_on(poplar1, ctx, parameter, gone_on(poplar1, ctx, parameter, both))
            assert not any(isinstance(each, Continuation) for each in last)
            found.append(poplar1.unshard(parameter, last))
        except InvalidReport as error:
            found.append(error)
    return found


def gone_on(poplar1: Poplar1, ctx: bytes, parameter: bytes, both: Sequence[Continuation]) -> list[Continuation | Words]:
    """A round of one report, at both servers."""
    message = poplar1.verifier_shares_to_message(ctx, parameter, [each.verifier_share for each in both])
    return [poplar1.verify_next(ctx, each.state, message) for each in both]
