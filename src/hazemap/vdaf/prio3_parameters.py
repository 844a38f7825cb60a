"""What fixes one variant of Prio3: its circuit, version, number and how many shares and proofs there are."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from hazemap.errors import InputError
from hazemap.vdaf.circuits import Circuit
from hazemap.vdaf.vdaf import InvalidReport
from hazemap.vdaf.vdaf_versions import VdafVersion


class Usage(IntEnum):
    """What an output of the XOF is for."""

    MEASUREMENT_SHARE = 1
    PROOF_SHARE = 2
    JOINT_RANDOMNESS = 3
    PROVE_RANDOMNESS = 4
    QUERY_RANDOMNESS = 5
    JOINT_RAND_SEED = 6
    JOINT_RAND_PART = 7


@dataclass(frozen=True)
class Prio3Parameters:
    """One variant, and the sizes of its messages."""

    circuit: Circuit
    version: VdafVersion
    algorithm: int
    shares: int = 2
    proofs: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.shares <= 255:
            raise InputError(f"a measurement is split into 2 to 255 shares, not {self.shares}")
        if not 1 <= self.proofs <= 255:
            raise InputError(f"a report has 1 to 255 proofs, not {self.proofs}")

    @cached_property
    def joint(self) -> bool:
        """Whether there is joint randomness."""
        return self.circuit.joint_rand_length > 0

    @cached_property
    def measurement_size(self) -> int:
        """Bytes of a measurement share."""
        return self.circuit.measurement_length * self.circuit.field.size

    @cached_property
    def proofs_length(self) -> int:
        """Elements of all proofs."""
        return self.proofs * self.circuit.proof_length

    @cached_property
    def verifiers_length(self) -> int:
        """Elements of all verifiers."""
        return self.proofs * self.circuit.verifier_length

    @cached_property
    def blind_size(self) -> int:
        """Bytes of the seed that hides a share in joint randomness; 0 without."""
        return self.version.seed_size if self.joint else 0

    @cached_property
    def rand_size(self) -> int:
        """Bytes of randomness for a report."""
        seeds = (self.shares - 1) * self.version.seeds_of_a_helper + 1 + (self.shares if self.joint else 0)
        return seeds * self.version.seed_size

    @cached_property
    def public_share_size(self) -> int:
        """Bytes of a public share."""
        return self.shares * self.blind_size

    def input_share_size(self, agg_id: int) -> int:
        """Bytes of an aggregator's input share."""
        if agg_id == 0:
            return self.measurement_size + self.proofs_length * self.circuit.field.size + self.blind_size
        return self.version.seeds_of_a_helper * self.version.seed_size + self.blind_size

    @cached_property
    def verifier_share_size(self) -> int:
        """Bytes of a verifier share."""
        return self.verifiers_length * self.circuit.field.size + self.blind_size

    def tag(self, usage: Usage, ctx: bytes) -> bytes:
        """The domain separation tag."""
        return self.version.domain_separation_tag(self.algorithm, usage, ctx)

    def seeds(self, data: bytes) -> list[bytes]:
        """Seeds one after another."""
        size = self.version.seed_size
        return [data[i : i + size] for i in range(0, len(data), size)]

    def split_randomness(self, rand: bytes) -> tuple[list[list[bytes]], bytes, bytes]:
        """The seeds of each helper (a blind is the last), the leader's blind, and the prover's seed."""
        seeds = self.seeds(rand)
        each = self.version.seeds_of_a_helper + self.joint
        helpers = [seeds[i * each : (i + 1) * each] for i in range(self.shares - 1)]
        return helpers, seeds[-2] if self.joint else b"", seeds[-1]

    def check_report_share(self, agg_id: int, public_share: bytes, input_share: bytes) -> None:
        """`InvalidReport` unless both have their length."""
        if len(public_share) != self.public_share_size:
            raise _wrong_size("a public share", self.public_share_size, len(public_share))
        if len(input_share) != self.input_share_size(agg_id):
            raise _wrong_size("an input share", self.input_share_size(agg_id), len(input_share))

    def check_verifier_shares(self, sizes: list[int]) -> None:
        """`InvalidReport` unless there is one of the right length from each aggregator."""
        if len(sizes) != self.shares:
            raise InputError(f"{self.shares} aggregators say what they found, not {len(sizes)}")
        for size in sizes:
            if size != self.verifier_share_size:
                raise _wrong_size("a verifier share", self.verifier_share_size, size)


def _wrong_size(what: str, expected: int, found: int) -> InvalidReport:
    return InvalidReport(f"{what} has {expected} bytes here, not {found}", undecodable=True)
