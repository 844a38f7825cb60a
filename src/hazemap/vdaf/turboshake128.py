"""TurboSHAKE128 (RFC 9861, 2) in plain Python, for messages of a few blocks, where no compiler is worth loading."""

RATE = 168
"""Bytes of a block."""

ROUND_CONSTANTS = (
    0x000000008000808B,
    0x800000000000008B,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800A,
    0x800000008000000A,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
)
"""Of Keccak-p[1600, 12]: those of the last 12 rounds of Keccak-f (FIPS 202, 3.2.5)."""


def _steps() -> tuple[tuple[int, int, int], ...]:
    """Where rho and pi take each lane but the first: (from, to, by how many bits it is rotated)."""
    steps, x, y = [], 1, 0
    for t in range(24):
        steps.append((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), (t + 1) * (t + 2) // 2 % 64))
        x, y = y, (2 * x + 3 * y) % 5
    return tuple(steps)


STEPS = _steps()
_ALL = (1 << 64) - 1


class TurboShake128:
    """An output stream of TurboSHAKE128, drawn bit by bit.

    >>> TurboShake128(b"", 0x1F).next(8).hex()
    '1e415f1c5983aff2'
    """

    def __init__(self, message: bytes, domain: int) -> None:
        """Absorb a message; the domain is from 1 to 127."""
        padded = bytearray(message + bytes([domain]) + bytes(-(len(message) + 1) % RATE))
        padded[-1] ^= 0x80
        self._lanes = [0] * 25
        for start in range(0, len(padded), RATE):
            for lane in range(RATE // 8):
                self._lanes[lane] ^= int.from_bytes(padded[start + 8 * lane : start + 8 * lane + 8], "little")
            self._lanes = permuted(self._lanes)
        self._block, self._used = self._squeezed(), 0

    def next(self, length: int) -> bytes:
        """The next bytes of the output."""
        while len(self._block) - self._used < length:
            self._lanes = permuted(self._lanes)
            self._block, self._used = self._block[self._used :] + self._squeezed(), 0
        self._used += length
        return self._block[self._used - length : self._used]

    def _squeezed(self) -> bytes:
        return b"".join(lane.to_bytes(8, "little") for lane in self._lanes[: RATE // 8])


def permuted(a: list[int]) -> list[int]:
    """Keccak-p[1600, 12] of 25 lanes: lane x + 5 y is `a[x + 5 * y]`."""
    for constant in ROUND_CONSTANTS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ (c[(x + 1) % 5] << 1 & _ALL | c[(x + 1) % 5] >> 63) for x in range(5)]
        b = [a[0] ^ d[0]] * 25
        for here, there, by in STEPS:
            lane = a[here] ^ d[here % 5]
            b[there] = lane << by & _ALL | lane >> 64 - by
        a = [b[i] ^ (~b[i - i % 5 + (i + 1) % 5] & b[i - i % 5 + (i + 2) % 5]) for i in range(25)]
        a[0] ^= constant
    return a
