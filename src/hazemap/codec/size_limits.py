"""How much a text may ask of whoever reads it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What is checked before work is done; all are inclusive.

    `length` is in bytes, `items` are brackets and commas, `things` are objects, `digits` those of one numerator or
    denominator, and `work` is about the bytes of memory that making the things may need beyond the text
    (`decoding_work` of their classes).
    """

    length: int
    items: int
    work: int
    depth: int = 64
    digits: int = 640
    things: int = 1 << 14


MESSAGE = Limits(length=1 << 25, items=1 << 21, work=1 << 26)
"""What a device is sent, and what a server takes from outside: a million numbers, well below a second."""

FILE = Limits(length=1 << 33, items=1 << 31, work=1 << 33, things=1 << 31)
"""A release: files of many millions of numbers, which somebody chose to open."""
