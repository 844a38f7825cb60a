"""Who is asked in a round: a simple random sample, and shards of it at random."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.trust.random_sampling import in_any_order

T = TypeVar("T")


def sample(everyone: Sequence[T], people: int, stream: Stream) -> list[T]:
    """So many of them in random order; each set and each order is as likely as any other.

    >>> sorted(sample(["a", "b", "c"], 3, Stream.from_os()))
    ['a', 'b', 'c']
    """
    if not 0 <= people <= len(everyone):
        raise InputError(f"a sample of {people} cannot be drawn from {len(everyone)} without putting any back")
    return [everyone[at] for at in in_any_order(stream, len(everyone))[:people]]


def dealt(people: Sequence[T], sizes: Sequence[int]) -> list[Sequence[T]]:
    """A sample cut into shards of these sizes.

    >>> dealt("abcde", (3, 2))
    ['abc', 'de']
    """
    if sum(sizes) != len(people):
        raise InputError(f"shards of {sum(sizes)} people in all cannot be made of {len(people)}")
    return [people[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
