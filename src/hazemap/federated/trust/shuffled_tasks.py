"""What follows from a round through a shuffler: the coordinator, the shuffler and each device compute the same.

In parts: people's noisy vectors, split so that only the noisy sum can be learned. By reports: a vector of randomised
bits of each person. Everything about them, and about the batch that holds them, follows from the announcement, and
from the two keys that are told with it.
"""

from hashlib import sha256
from typing import Final

from hazemap.codec import digest
from hazemap.errors import InputError
from hazemap.federated.protocols.shuffle.batch_terms import BatchTerms
from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
from hazemap.federated.protocols.shuffle.shuffled_reports import ReportParameters
from hazemap.federated.trust.carried_tasks import CarriedTask
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByShuffler
from hazemap.federated.trust.shuffled import ShuffledReportPrices, noise_of, terms_of
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Asymmetric

OPEN: Final = 7 * 86_400
"""Seconds for which the batch of a round takes messages: as long as a coordinator may wait for devices."""
_VERSION: Final = 1


def shuffled_batch(carried: CarriedTask) -> ReportBatch:
    """Who is asked in a round, and how few are never opened; `InputError` for a round of another carrier."""
    if not isinstance(carried.carrier, ByShuffler):
        raise InputError("this round's reports are carried by others than a shuffler")
    cohort = carried.task.cohort
    return ReportBatch(cohort.people, carried.carrier.minimum, cohort.corrupt, cohort.sampling)


def shuffled_noise(carried: CarriedTask) -> DistributedNoise:
    """The noise that the honest people of the smallest batch make together for the round's price."""
    return noise_of(carried.task.question.encoder, carried.task.price, shuffled_batch(carried))


def shuffled_parts(carried: CarriedTask) -> ShuffleParameters:
    """In how many parts, blocks and bits people split what they say; `InputError` where it cannot be done safely.

    Computed once for each announcement that was read: some 50 ms.
    """
    known: ShuffleParameters | None = carried.__dict__.get("_shuffled_parts")
    if known is None:
        noise, asked = shuffled_noise(carried), digest(carried).encode()
        known = terms_of(carried.task.question.encoder, noise, shuffled_batch(carried), asked)
        object.__setattr__(carried, "_shuffled_parts", known)
    return known


def shuffled_law(carried: CarriedTask) -> Asymmetric | None:
    """How each person randomises their report: the largest ε₀ that clones cover; None where a round is in parts."""
    carrier, task = carried.carrier, carried.task
    if not isinstance(carrier, ByShuffler) or carrier.local is None:
        return None
    if not isinstance(task.budget, ApproxDP):
        raise InputError(f"what is seen of shuffled reports costs (ε, δ), not {task.budget}: give a delta")
    return ShuffledReportPrices(task.budget, shuffled_batch(carried), carrier.local).law(task.question.share)


def shuffled_contents(carried: CarriedTask) -> ShuffleParameters | ReportParameters:
    """What the messages of a round are: parts, or reports of one message each."""
    if shuffled_law(carried) is None:
        return shuffled_parts(carried)
    asked = sha256(digest(carried).encode()).digest()
    return ReportParameters(asked, carried.task.question.size, shuffled_batch(carried).minimum)


def check_law(carried: CarriedTask) -> None:
    """`InputError` unless a round's reports are randomised as its price and its people have it."""
    law = shuffled_law(carried)
    if carried.task.randomiser != law:
        raise InputError(
            f"the round says that reports are randomised by {carried.task.randomiser}, but its price and its people "
            f"make it {law}"
        )


def batch_terms(carried: CarriedTask, issuer: bytes, analyser: bytes) -> BatchTerms:
    """The batch that a shuffler holds for this round."""
    contents, batch = shuffled_contents(carried), shuffled_batch(carried)
    return BatchTerms(
        _VERSION,
        sha256(b"hazemap batch of a campaign" + bytes.fromhex(carried.batch)).digest()[:16],
        issuer,
        analyser,
        contents.digest,
        contents.messages,
        contents.message_bytes,
        batch.minimum,
        batch.people,
        carried.begun + OPEN,
    )
