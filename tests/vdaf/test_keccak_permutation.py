"""Keccak-p[1600, 12], one state or eight at once, against the standard's own steps."""

import numpy as np

from hazemap.vdaf.turboshake128_kernels import ROUND_CONSTANTS, permute_eight, permute_one

ALL = 2**64 - 1


def by_the_steps(lanes: list[int]) -> list[int]:
    """FIPS 202, 3.2, with lanes as whole numbers: theta, rho, pi, chi, iota."""

    def turned(x: int, by: int) -> int:
        return (x << by % 64 | x >> -by % 64) & ALL if by % 64 else x

    state = {(x, y): lanes[x + 5 * y] for x in range(5) for y in range(5)}
    for constant in ROUND_CONSTANTS:
        column = [state[x, 0] ^ state[x, 1] ^ state[x, 2] ^ state[x, 3] ^ state[x, 4] for x in range(5)]
        state = {(x, y): v ^ column[x - 1] ^ turned(column[(x + 1) % 5], 1) for (x, y), v in state.items()}
        rho, (x, y) = {(0, 0): state[0, 0]}, (1, 0)
        for t in range(24):
            rho[x, y] = turned(state[x, y], (t + 1) * (t + 2) // 2)
            x, y = y, (2 * x + 3 * y) % 5
        pi = {(x, y): rho[(x + 3 * y) % 5, x] for x in range(5) for y in range(5)}
        state = {(x, y): pi[x, y] ^ (~pi[(x + 1) % 5, y] & ALL & pi[(x + 2) % 5, y]) for x, y in pi}
        state[0, 0] ^= constant
    return [state[i % 5, i // 5] for i in range(25)]


def test_eight_states_at_once_are_permuted_as_each_alone():
    states = np.random.default_rng(1).integers(0, 2**64, (25, 8), dtype=np.uint64)
    expected = [by_the_steps([int(lane) for lane in states[:, i]]) for i in range(8)]
    alone = np.ascontiguousarray(states[:, 2:3])
    permute_eight(states)
    permute_one(alone)
    assert [[int(lane) for lane in states[:, i]] for i in range(8)] == expected
    assert [int(lane) for lane in alone[:, 0]] == expected[2]


def test_the_round_constants_are_those_of_the_standard():
    """FIPS 202, 3.2.5: bit 2^j - 1 of round r is rc(j + 7 r), by a shift register; the last 12 of 24 rounds."""
    bits, register = [], 1
    for _ in range(7 * 24):
        bits.append(register & 1)
        register = register << 1 ^ (0x171 if register & 0x80 else 0)
    words = [sum(bits[7 * turn + j] << 2**j - 1 for j in range(7)) for turn in range(24)]
    assert list(ROUND_CONSTANTS) == words[12:]
