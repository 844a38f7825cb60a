"""How large, how small and how long a shuffler lets a batch be, whatever an analyser announces."""

from dataclasses import dataclass

from hazemap.errors import InputError
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms

LONGEST = 30 * 86_400
"""Seconds that a batch may be open."""


@dataclass(frozen=True)
class BatchLimits:
    """What a shuffler's operator allows.

    `least` people are in a batch that is handed on, at least, whatever its terms say. `largest` bytes are what all
    batches together may need. `keep` is how many seconds after its end a batch waits for its analyser, and is then
    forgotten.

    >>> BatchLimits(least=1_000).least
    1000
    """

    least: int = 50
    largest: int = 1 << 30
    keep: int = 7 * 86_400

    def __post_init__(self) -> None:
        for number, what in ((self.least, "people"), (self.largest, "bytes"), (self.keep, "seconds")):
            if type(number) is not int or number < 1:
                raise InputError(f"a shuffler's limits are whole {what} of at least 1, not {number!r:.40}")

    def check(self, terms: BatchTerms, held: int, now: float) -> None:
        """`InputError` for a batch that is not taken, beside others that may need `held` bytes."""
        if terms.minimum < self.least:
            raise InputError(
                f"this shuffler hands on nothing below the messages of {self.least:,} people, and this batch would be "
                f"of {terms.minimum:,}: announce a larger minimum"
            )
        if held + terms.most_bytes > self.largest:
            raise InputError(
                f"this batch may need {terms.most_bytes:,} bytes, and this shuffler holds {self.largest:,} at most, of "
                f"which {held:,} are promised: wait until others are collected, ask fewer people or for fewer numbers"
            )
        if not now < terms.closes <= now + LONGEST:
            raise InputError("a batch closes after now, and within 30 days")
