"""The steps of a session, in order: each is one message down to every client still in it, and one up."""

from enum import IntEnum


class Stage(IntEnum):
    """What the clients are asked for.

    >>> Stage.KEYS < Stage.MASKED < Stage.OPENED
    True
    """

    KEYS = 1
    """public keys of this session, signed"""
    PICKS = 2
    """malicious mode: whom a client draws to hold its shares"""
    SHARES = 3
    """shares of a client's two secrets, sealed for their holders"""
    MASKED = 4
    """the vector under its masks"""
    ASSENT = 5
    """a signature under who sent a vector"""
    UNMASK = 6
    """of each peer the share of one of its two secrets"""
    OPENED = 7
    """the end: the sum is known"""
    FAILED = 8
    """the end: nothing was opened"""
