"""How long an aggregator's answer to a request can be: whoever asked reads no further."""

from typing import Final

from hazemap.federated.protocols.dap.media_types import LARGEST
from hazemap.federated.protocols.dap.prefix_question import read_question
from hazemap.federated.protocols.dap.task import Task
from hazemap.vdaf.idpf import SIZE_INNER
from hazemap.vdaf.vdaf import Vdaf

WORDS: Final = 1 << 16
"""Bytes of a problem document, or of all that goes around a share: at most."""


def longest_aggregation_answer(request: int) -> int:
    """Of a helper to a request of so many bytes about reports.

    It answers each report by at most one message and one verifier share. The request holds a share of the leader's for
    each, and a message is no longer than one.

    >>> longest_aggregation_answer(1_000)
    67536
    """
    return min(LARGEST, 2 * request + WORDS)


def longest_share(task: Task, vdaf: Vdaf, agg_param: bytes) -> int:
    """Of a helper that gives its share of a batch's sums, sealed."""
    if task.walk is not None:
        return read_question(agg_param).size * SIZE_INNER + WORDS
    return vdaf.output_length(agg_param) * ((vdaf.modulus(agg_param).bit_length() + 7) // 8) + WORDS


def longest_result(task: Task, vdaf: Vdaf, agg_param: bytes) -> int:
    """Of a leader that gives both shares."""
    return 2 * longest_share(task, vdaf, agg_param)
