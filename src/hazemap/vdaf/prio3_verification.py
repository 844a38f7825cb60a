"""What an aggregator keeps of a report under Prio3, and why a report is refused: the same in both twins."""

from typing import NamedTuple

from hazemap.machine_code.arrays import Words
from hazemap.vdaf.vdaf import InvalidReport


class Prio3State(NamedTuple):
    """What an aggregator keeps of a report until the others have spoken."""

    out_share: Words
    joint_rand_seed: bytes
    """as the client claims it; b"" where there is no joint randomness"""


def no_element(field: str) -> InvalidReport:
    """A number in a share is no element of the field."""
    return InvalidReport(f"a number is no element of {field}: it is not below the modulus", undecodable=True)


def root_of_unity() -> InvalidReport:
    """The point of a query must be none of those that fix the polynomials: one report in 2^57 or fewer meets one."""
    return InvalidReport("the point of a query is a root of unity, where it would tell of the measurement")


def proof_does_not_hold() -> InvalidReport:
    """The measurement is not valid, or some share is not what the client made."""
    return InvalidReport("the proof does not hold: the measurement is not valid, or a share was changed")
