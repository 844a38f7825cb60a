"""Devices that fall silent in the middle of a session: for tests and loads, to be like people's own."""

from collections import OrderedDict
from fractions import Fraction

from hazemap.device.server_tasks import ServerTask
from hazemap.privacy.random_stream import Stream
from hazemap.protocols.secure_aggregation.messages import Stage

STAGES = (Stage.KEYS, Stage.SHARES, Stage.MASKED, Stage.ASSENT, Stage.UNMASK)
REMEMBERED = 8
"""Sessions of one device at a time, at most."""


class Absence:
    """Falls silent in each session with probability `share`, from a stage on that is drawn uniformly.

    >>> work = ServerTask(bytes(32), 1, None, b"", 0.0)
    >>> Absence(Fraction(0), Stream.from_os())(work)
    True
    """

    def __init__(self, share: Fraction, stream: Stream) -> None:
        self._share, self._stream = share, stream
        self._from: OrderedDict[bytes, Stage | None] = OrderedDict()

    def __call__(self, work: ServerTask) -> bool:
        """Whether the device answers."""
        if work.session not in self._from:
            self._from[work.session] = self._drawn()
            if len(self._from) > REMEMBERED:
                self._from.popitem(last=False)
        silent = self._from[work.session]
        return silent is None or work.stage < silent

    def _drawn(self) -> Stage | None:
        if self._stream.below(self._share.denominator) >= self._share.numerator:
            return None
        return STAGES[self._stream.below(len(STAGES))]
