"""What a device is shown and asked to agree to, and the protocol's parameters that follow from it.

Nobody chooses parameters of a secure sum: the task says what is asked at which price among whom, and noise, modulus,
degree, threshold and the least number of survivors are computed from it, by the server that sets a session up and
again by every device before it answers.
"""

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property

from hazemap.cells import Leaves, WholeDomain
from hazemap.codec import digest
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder, HaarWavelet, Values
from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import KNOWN as OF_RECIPES
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.recipe_terms import (
    check_carried_by,
    check_recipe_round,
    check_recipe_sum,
    randomiser_of,
    stated_price,
)
from hazemap.field_types import check_fields
from hazemap.privacy.amplification.neighbours import ReportNeighbours
from hazemap.privacy.amplification.zcdp_of_sum import LEAST_DELTA, zcdp_of_sum
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise, NoAddedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Randomiser, Symmetric, UnaryEncoding
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.plane import plane_of
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.cells_in_slots import AllSlots, EachSlot

MOST_ROUNDS, MOST_VOTES = 1 << 31, 1 << 31
"""Rounds of a campaign, and votes that one person has in a question, at most."""


@dataclass(frozen=True)
class Task:
    """One round of a campaign as a person can read it: who asks what, why, at which price, and whom else.

    `price` is what this round costs, `budget` what the whole campaign may cost a person. It travels as JSON:
    `codec.loads(text, KNOWN)`.

    Without a `randomiser` people add noise in shares, and both are in pure ε. With one, everybody sends one report,
    that of their one row or of none, and nothing is added: the sum's noise is that of the reports. Then `budget` may
    be (ε, δ) and `price` the part of its ρ: what the sum gives away, if as many honest people are in it as the cohort
    promises. What a report gives away by itself is the randomiser's own ε, whatever becomes of the sum.

    A round may ask a recipe instead of a map: `RecipeBins`. Then `price` is the (ε, δ) that the recipe states, and
    `budget` that of all recipes of the campaign, by basic composition (`recipe_terms`, `Task.asking`).

    >>> from fractions import Fraction
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.encoders import Counts
    >>> tree = Quadtree.world(depth=3)
    >>> query = Query(Counts(Leaves(tree, tree.children(tree.root))), Fraction(1, 20))
    >>> task = Task("homes", "a map of where people live", 1, query, PureDP("0.05"), PureDP(1), Cohort(1_000, 1_000))
    >>> task.noise(1_000)
    DistributedNoise(scale=Fraction(20, 1), parties=503)
    """

    campaign: str
    purpose: str
    round: int
    question: Query
    price: PureDP | ZCDP | ApproxDP
    budget: PureDP | ApproxDP | ZCDP
    cohort: Cohort
    randomiser: Symmetric | Asymmetric | UnaryEncoding | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.randomiser is None and self.recipe is None:
            pure(self.price)
            pure(self.budget)
        if not 1 <= self.round < MOST_ROUNDS or not self.campaign:
            raise InputError("a task names its campaign, and counts its rounds from 1")
        if self.question.cohort is not None:
            raise InputError("a task asks everybody, not a part of a cohort")
        if self.recipe is None and not askable(self.question.encoder):
            raise InputError(
                "a device counts in listed cells, or in sketches, or several times, by a rule that bounds its rows"
            )
        if self.randomiser is not None:
            check_randomiser(self.randomiser)
        if self.recipe is not None:
            share = self.question.share
            check_recipe_round(self.recipe, self.purpose, share, self.price, self.budget, self.randomiser)
            return
        if self.randomiser is not None:
            check_report(self.question.encoder)
            if isinstance(self.budget, ApproxDP) and self.budget.delta < LEAST_DELTA:
                raise InputError("where reports are randomised on devices, delta is 10^-12 or more")
        if self.price != self.budget.part(self.question.share):
            raise InputError(
                f"this task costs {self.price}, but its question's share of {self.budget} is "
                f"{self.budget.part(self.question.share)}"
            )

    @classmethod
    def asking(
        cls,
        recipe: Recipe,
        campaign: str,
        number: int,
        cohort: Cohort,
        budget: PureDP | ApproxDP | None = None,
        share: Fraction = Fraction(1),
        randomiser: Symmetric | Asymmetric | UnaryEncoding | None = None,
    ) -> "Task":
        """Round `number` of a campaign, which asks a recipe. Without a budget it is a campaign of its own."""
        price = stated_price(recipe)
        law = randomiser or randomiser_of(recipe)
        question = Query(RecipeBins(recipe), share)
        return cls(campaign, recipe.purpose, number, question, price, budget or price, cohort, law)

    @property
    def recipe(self) -> Recipe | None:
        """The recipe that is asked; None where cells of a map are."""
        encoder = self.question.encoder
        return encoder.recipe if isinstance(encoder, RecipeBins) else None

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of its canonical JSON: what the session is bound to."""
        return bytes.fromhex(digest(self))

    def noise(self, clients: int) -> DistributedNoise | NoAddedNoise:
        """The noise that the people of a shard of this size make together: discrete Laplace of scale Δ₁/ε.

        Nothing, where their reports are randomised: `InputError` if a sum of so few costs more than the price.
        """
        honest = self.cohort.honest(clients)
        if self.randomiser is None:
            return DistributedNoise(self.question.encoder.sensitivity.l1 / pure(self.price).epsilon, honest)
        if self.recipe is not None:
            check_carried_by(self.recipe, Carrier.SECURE_SUMS)
            check_recipe_sum(self.recipe, self.randomiser, self.cohort.survivors(clients), honest)
            return NoAddedNoise(honest)
        if not covers(self.price, self.randomiser, honest):
            raise InputError(
                f"a sum in which {honest:,} honest people's reports are certain costs more than {self.price}: ask more "
                "people together, for a report with a smaller local epsilon, or at a higher price"
            )
        return NoAddedNoise(honest)


KNOWN = (Task, Cohort, Sampling, Mode, Symmetric, Asymmetric, UnaryEncoding, *OF_RECIPES)
"""What a task adds to the codec's closed list."""


def askable(encoder: object) -> bool:
    """Whether a device answers this: counts on the closed list, all the way down, that bound a person's rows."""
    if isinstance(encoder, Concatenation):
        return isinstance(encoder.parts, tuple) and all(askable(part) for part in encoder.parts)
    if isinstance(encoder, Values):
        return isinstance(encoder.tree, CellTimeSlots)
    if not isinstance(encoder, Counts | CountMinSketch | HaarWavelet):
        return False
    bounding = encoder.bounding
    if not isinstance(bounding, AtMostRows | AtMostCells | OneVote) or bounding.largest > MOST_VOTES:
        return False
    cells = encoder.cells if isinstance(encoder, Counts) else encoder
    if not isinstance(
        cells, CountMinSketch | HaarWavelet | Leaves | WholeDomain | AttributeCells | AllSlots | EachSlot
    ):
        return False
    tree = cells.cells.tree if isinstance(cells, AttributeCells | AllSlots | EachSlot) else cells.tree
    return plane_of(tree) is None  # a device's rows are in degrees


def check_report(encoder: Encoder) -> None:
    """`InputError` unless a person's vector is a single 1, or none: what a report is made of."""
    if not isinstance(encoder, Counts | CountMinSketch | RecipeBins) or encoder.sensitivity.l1 != 1:
        raise InputError(
            "a device randomises a vector with a single 1: ask for counts of one row a person, one level at a time, "
            "and one question at a time"
        )


def check_randomiser(randomiser: Randomiser) -> None:
    """`InputError` for a report that says nothing, or hides nothing: ε from 2^−20 to 64, in numbers of 128 digits."""
    if isinstance(randomiser, Symmetric | Asymmetric):
        epsilon = randomiser.epsilon
        if max(epsilon.numerator, epsilon.denominator) >= 1 << 128 or not LEAST_LOCAL <= epsilon <= MOST_LOCAL:
            raise InputError("the local epsilon of a report is between 2^-20 and 64, with at most 128 binary digits")
    elif not LEAST_LOCAL <= randomiser.replacement <= MOST_LOCAL:
        raise InputError("the local epsilon of a report is between 2^-20 and 64")


def covers(price: Budget, randomiser: Randomiser, honest: int) -> bool:
    """Whether a price pays for a sum of reports of so many honest people: the removal of one of them.

    In pure ε only what a report hides by itself counts: however many people are in a sum, there are sums that nobody
    else could have made. In ρ, `zcdp_of_sum`.
    """
    if isinstance(price, PureDP):
        return randomiser.removal <= price.epsilon
    by_itself = randomiser.removal**2 / 2
    return (
        by_itself <= price.rho or zcdp_of_sum(randomiser.bit_flips, honest, ReportNeighbours.REMOVAL).rho <= price.rho
    )


LEAST_LOCAL, MOST_LOCAL = Fraction(1, 1 << 20), Fraction(64)


def pure(budget: Budget, what: str = "a secure sum") -> PureDP:
    """The budget, if what people make noise for in shares can spend it."""
    if not isinstance(budget, PureDP):
        raise InputError(
            f"{what} spends pure ε, not {budget}: people add discrete Laplace noise in shares, and shares of "
            "Gaussian noise do not add up exactly; give epsilon alone, without delta or rho"
        )
    return budget


def round_price(price: Budget) -> PureDP | ZCDP:
    """The price of one round of reports: a part of a budget, which is in pure ε or in ρ."""
    return ZCDP(price.rho) if isinstance(price, ApproxDP) else price


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
    if terms.size != task.question.encoder.size:
        raise Refused("the session's size does not follow from its task")
    try:
        wanted = parameters_for(task, terms.roster, terms.clients, terms.graph, terms.nonce)
    except InputError as error:
        raise Refused(f"no session of {terms.clients} people can keep what this task promises: {error}") from error
    for field in fields(SessionParameters):
        if getattr(terms, field.name) != getattr(wanted, field.name):
            raise Refused(f"the session's {field.name} does not follow from its task")
