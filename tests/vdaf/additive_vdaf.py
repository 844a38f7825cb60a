"""A VDAF for tests, of any number of rounds: its measurement is 0 … 9, and everybody sees it while it is verified."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hazemap.vdaf.errors import CodecError
from hazemap.vdaf.vdaf import Continuation, InvalidReport, Vdaf

MODULUS = 2**64 - 2**32 + 1


def _number(data: bytes) -> int:
    if len(data) != 8:
        raise InvalidReport("a share has 8 bytes", undecodable=True)
    return int.from_bytes(data, "little")


@dataclass(frozen=True)
class AdditiveVdaf(Vdaf):
    """Each round both shares are added up; from the second on they are multiplied by the round's number before."""

    ROUNDS: int = 1
    ID: int = 0xFFFF0000
    SHARES: int = 2
    NONCE_SIZE: int = 16
    RAND_SIZE: int = 8
    VERIFY_KEY_SIZE: int = 32

    @property
    def share_sizes(self) -> tuple[int, ...]:
        return 38, 9, 9

    def shard(self, ctx: bytes, measurement: Any, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        one = int.from_bytes(rand, "little") % MODULUS
        both = [one, (measurement - one) % MODULUS]
        return ctx, [share.to_bytes(8, "little") + bytes([agg_id]) for agg_id, share in enumerate(both)]

    def verify_init(self, verify_key, ctx, agg_id, agg_param, nonce, public_share, input_share):
        share = _number(input_share[:-1])
        if input_share[-1] != agg_id:
            raise InvalidReport("a share of the other aggregator")
        if public_share != ctx:
            raise InvalidReport("a report of another task")
        return Continuation((1, share), share.to_bytes(8, "little"))

    def verifier_shares_to_message(self, ctx: bytes, agg_param: bytes, shares: Sequence[bytes]) -> bytes:
        leader, helper = map(_number, shares)
        return ((leader + helper) % MODULUS).to_bytes(8, "little") + leader.to_bytes(8, "little")

    def verify_next(self, ctx: bytes, state: Any, message: bytes) -> Any:
        now, share = state
        if len(message) != 16:
            raise InvalidReport("a message has 16 bytes", undecodable=True)
        total = int.from_bytes(message[:8], "little") * pow(now, -1, MODULUS) % MODULUS
        if total > 9:
            raise InvalidReport("a measurement is 0 to 9")
        if now == self.ROUNDS:
            return np.array([[share]], dtype=np.uint64)
        return Continuation((now + 1, share), (share * (now + 1) % MODULUS).to_bytes(8, "little"))

    def is_valid(self, agg_param: bytes, previous: Sequence[bytes]) -> bool:
        return not previous

    def modulus(self, agg_param: bytes) -> int:
        return MODULUS

    def output_length(self, agg_param: bytes) -> int:
        return 1

    def encode_state(self, agg_param: bytes, state: Any) -> bytes:
        return bytes([state[0]]) + state[1].to_bytes(8, "little")

    def decode_state(self, agg_param: bytes, data: bytes) -> Any:
        if len(data) != 9:
            raise CodecError("a state has 9 bytes")
        return data[0], int.from_bytes(data[1:], "little")

    def merge(self, agg_param: bytes, shares: Iterable[Any]) -> Any:
        return self.share_of(agg_param, [sum(int(share[0, 0]) for share in shares)])

    def share_of(self, agg_param: bytes, numbers: Sequence[int]) -> Any:
        return np.array([[number % MODULUS] for number in numbers], dtype=np.uint64)

    def encode_agg_share(self, agg_param: bytes, share: Any) -> bytes:
        return share.tobytes()

    def decode_agg_share(self, agg_param: bytes, data: bytes) -> Any:
        if len(data) != 8:
            raise CodecError("an aggregate share has 8 bytes")
        return np.frombuffer(data, dtype=np.uint64).reshape(1, 1)

    def unshard(self, agg_param: bytes, agg_shares: Sequence[Any]) -> list[int]:
        return [int(self.merge(agg_param, agg_shares)[0, 0])]
