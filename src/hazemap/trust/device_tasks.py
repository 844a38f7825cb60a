"""What a device is shown and asked to agree to, and the protocol's parameters that follow from it.

Nobody chooses parameters of a secure sum: the task says what is asked at which price among whom, and noise, modulus,
degree, threshold and the least number of survivors are computed from it, by the server that sets a session up and
again by every device before it answers.
"""

from dataclasses import dataclass, fields

from hazemap.cells import Leaves
from hazemap.codec import digest
from hazemap.encoders import Concatenation, CountMinSketch, Counts, HaarWavelet, Values
from hazemap.errors import InputError, Refused
from hazemap.field_types import check_fields
from hazemap.noisy_queries import Query
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.spatial.whole_domain import WholeDomain
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote
from hazemap.trust.cohort_assumptions import Cohort, Sampling
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.cell_slot_counters import CellTimeSlots


@dataclass(frozen=True)
class Task:
    """One round of a campaign as a person can read it: who asks what, why, at which price, and whom else.

    `price` is what this round costs, `budget` what the whole campaign may cost a person; both in pure ε. It travels
    as JSON: `codec.loads(text, KNOWN)`.

    >>> from fractions import Fraction
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.encoders import Counts
    >>> tree = Quadtree.world(depth=3)
    >>> query = Query(Counts(Leaves(tree, tree.children(tree.root))), Fraction(1, 20))
    >>> task = Task("homes", "a map of where people live", 1, query, PureDP("0.05"), PureDP(1), Cohort(1_000, 1_000))
    >>> task.noise(1_000)
    DistributedNoise(scale=Fraction(20, 1), parties=800)
    """

    campaign: str
    purpose: str
    round: int
    question: Query
    price: PureDP
    budget: PureDP
    cohort: Cohort

    def __post_init__(self) -> None:
        pure(self.price)
        pure(self.budget)
        check_fields(self)
        if self.round < 1 or not self.campaign:
            raise InputError("a task names its campaign, and counts its rounds from 1")
        if not askable(self.question.encoder):
            raise InputError(
                "a device counts in listed cells, or in sketches, or several times, by a rule that bounds its rows"
            )
        if self.price != self.budget.part(self.question.share):
            raise InputError(
                f"this task costs {self.price}, but its question's share of {self.budget} is "
                f"{self.budget.part(self.question.share)}"
            )

    @property
    def digest(self) -> bytes:
        """SHA-256 of its canonical JSON: what the session is bound to."""
        return bytes.fromhex(digest(self))

    def noise(self, clients: int) -> DistributedNoise:
        """The noise that the people of a shard of this size make together: discrete Laplace of scale Δ₁/ε."""
        return noise_shares(self.question, self.price, self.cohort, clients)


KNOWN = (Task, Cohort, Sampling, Mode)
"""What a task adds to the codec's closed list."""


def askable(encoder: object) -> bool:
    """Whether a device answers this: counts on the closed list, all the way down, that bound a person's rows."""
    if isinstance(encoder, Concatenation):
        return isinstance(encoder.parts, tuple) and all(askable(part) for part in encoder.parts)
    if isinstance(encoder, Values):
        return isinstance(encoder.tree, CellTimeSlots)
    if not isinstance(encoder, Counts | CountMinSketch | HaarWavelet):
        return False
    if not isinstance(encoder.bounding, AtMostRows | AtMostCells | OneVote):
        return False
    return isinstance(encoder, CountMinSketch | HaarWavelet) or isinstance(
        encoder.cells, Leaves | WholeDomain | AttributeCells
    )


def noise_shares(question: Query, price: PureDP, cohort: Cohort, clients: int) -> DistributedNoise:
    """The shares of noise in a shard of `clients` people: of scale Δ₁/ε, for its guaranteed honest survivors."""
    return DistributedNoise(question.encoder.sensitivity.l1 / price.epsilon, cohort.honest(clients))


def pure(budget: Budget) -> PureDP:
    """The budget, if a secure sum can spend it."""
    if not isinstance(budget, PureDP):
        raise InputError(
            f"a secure sum spends pure ε, not {budget}: people add discrete Laplace noise in shares, and shares of "
            "Gaussian noise do not add up exactly; give epsilon alone, without delta or rho"
        )
    return budget


def parameters_for(task: Task, roster: bytes, clients: int, graph: bytes, nonce: bytes) -> SessionParameters:
    """The parameters of one session among `clients` people with this Merkle root: all follow from the task.

    `graph` commits to the seed of the permutation (zeros in malicious mode). `InputError` where no degree is enough.
    """
    cohort, encoder = task.cohort, task.question.encoder
    noise = task.noise(clients)
    degree, threshold = cohort.degree_and_threshold(clients)
    return SessionParameters(
        mode=cohort.mode,
        task=task.digest,
        nonce=nonce,
        clients=clients,
        degree=degree,
        threshold=threshold,
        survivors=cohort.survivors(clients),
        size=encoder.size,
        bits=noise.bits(clients, encoder.sensitivity.l1, encoder.size),
        noise=noise,
        roster=roster,
        graph=graph,
    )


def check(task: Task, terms: SessionParameters) -> None:
    """A device's look at what a server offers: `Refused` unless every parameter follows from the task.

    A shard may be smaller than the cohort's (fewer people came), never larger. The roster, the nonce and the graph's
    commitment are the server's to choose; the client checks what it can of them when the neighbours come.
    """
    if terms.clients > task.cohort.shard:
        raise Refused(f"a shard of {terms.clients} people was formed, but the task says at most {task.cohort.shard}")
    try:
        wanted = parameters_for(task, terms.roster, terms.clients, terms.graph, terms.nonce)
    except InputError as error:
        raise Refused(f"no session of {terms.clients} people can keep what this task promises: {error}") from error
    for field in fields(SessionParameters):
        if getattr(terms, field.name) != getattr(wanted, field.name):
            raise Refused(f"the session's {field.name} does not follow from its task")
