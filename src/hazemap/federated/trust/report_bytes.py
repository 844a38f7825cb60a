"""What a device sends in a run, in bytes, by who is trusted: the reports as they travel, without HTTP around them."""

from fractions import Fraction

from hazemap.encoders import Counts, Encoder
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import packed_length
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import pure
from hazemap.federated.trust.prefix_walk import CellStrings, flat
from hazemap.federated.trust.randomised_reports import ReportPrices
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import noise_of, terms_of
from hazemap.federated.trust.two_servers import histograms, ones_allowed
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.algorithm_session import Transcript
from hazemap.queries.noisy_queries import Query
from hazemap.vdaf.circuits import shortest_chunk_length
from hazemap.vdaf.prio3 import Prio3, prio3_histogram, prio3_multihot_count_vec

UPLOAD = 152
"""Bytes that DAP-18 puts around the shares of a report: its id and time, two sealings, lengths."""

SEALED = 48
"""Bytes that sealing adds to a message of a shuffle."""

_SEED, _KEY, _INNER, _LEAF = 32, 16, 8, 32  # of Poplar1: seeds, keys and field elements


def asked_by(transcript: Transcript) -> list[tuple[Encoder, Fraction]]:
    """The encoder and the share of each round; `InputError` where something else than sums was asked."""
    found = []
    for question, _ in transcript:
        if not isinstance(question, Query):
            raise InputError(f"devices answer queries for sums, not a {type(question).__name__}")
        found.append((question.encoder, question.share))
    return found


def of_two_servers(transcript: Transcript) -> int:
    """A Prio3Histogram report for each vector of each round, with a place more for devices without a row.

    >>> of_histogram(4_096)
    70008
    """
    return sum(of_histogram(size) for encoder, _ in asked_by(transcript) for size in histograms(encoder))


def of_histogram(size: int) -> int:
    """One Prio3Histogram report of so many places."""
    return _of_prio3(prio3_histogram(size + 1, shortest_chunk_length(size + 1)))


def of_weighed_bits(size: int, most_ones: int) -> int:
    """One Prio3MultihotCountVec report of so many places, at most so many of them 1."""
    chunk = shortest_chunk_length(size + most_ones.bit_length())
    return _of_prio3(prio3_multihot_count_vec(size, most_ones, chunk))


def of_randomised(transcript: Transcript, budget: Budget, batch: ReportBatch, most: Fraction) -> int:
    """A report of randomised bits for each round, whose number is proved; each by itself costs ε = `most` at most."""
    prices, total = ReportPrices(budget, batch, most), 0
    for encoder, share in asked_by(transcript):
        total += of_weighed_bits(encoder.size, ones_allowed(prices.law(share, encoder.size), encoder.size, batch))
    return total


def of_path(bits: int) -> int:
    """One Poplar1 report of a path of so many bits: a run needs no other.

    >>> of_path(48)
    3476
    """
    words = -(-2 * bits // 8) + bits * _KEY + 2 * (bits - 1) * _INNER + 2 * _LEAF
    share = _KEY + _SEED + 2 * (bits - 1) * _INNER + 2 * _LEAF
    return UPLOAD + words + 2 * share


def of_one_report(transcript: Transcript) -> int:
    """The one report of a person, whose path is in the tree that was asked about."""
    for encoder, _ in asked_by(transcript):
        for each in flat(encoder):
            if isinstance(each, Counts):
                return of_path(CellStrings(each.cells.tree).bits)
    raise InputError("one report answers counts of cells; none were asked for")


def of_secure_sums(transcript: Transcript, budget: Budget, cohort: Cohort) -> int:
    """The masked vectors of all rounds; keys and shares of a session come on top, some kB."""
    total, size = 0, cohort.shards[0]
    for encoder, share in asked_by(transcript):
        scale = encoder.sensitivity.l1 / pure(budget.part(share)).epsilon
        bits = DistributedNoise(scale, cohort.honest(size)).bits(size, encoder.sensitivity.l1, encoder.size)
        total += packed_length(encoder.size, bits)
    return total


def of_shuffled_parts(transcript: Transcript, budget: Budget, batch: ReportBatch) -> int:
    """All sealed parts of all rounds."""
    total = 0
    for encoder, share in asked_by(transcript):
        total += terms_of(encoder, noise_of(encoder, budget.part(share), batch), batch).bytes_a_person
    return total


def of_bits(transcript: Transcript, sealed: bool) -> int:
    """A report of bits for each round, sealed to an analyser or not."""
    return sum(packed_length(encoder.size, 1) + SEALED * sealed for encoder, _ in asked_by(transcript))


def _of_prio3(vdaf: Prio3) -> int:
    sizes = vdaf.parameters
    return UPLOAD + sizes.public_share_size + sizes.input_share_size(0) + sizes.input_share_size(1)
