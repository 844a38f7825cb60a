"""How long a device waits before it asks again: often enough for the work, seldom enough for the server."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Waits that keep the polls of any number of devices near a rate.

    With n devices, each of which asks every w seconds, the server sees n/w polls a second. Where a device takes part
    in a secure sum that waits for others it comes back after n/`busy` seconds, n the people in running sums, but not
    sooner than `least`; otherwise after N/`idle`, N all devices, and between `least` and `most`: at the shorter end
    while a campaign is about to ask. Each wait is drawn from half to one and a half of that, so that devices that
    were started together drift apart.

    >>> Pace().idle_wait(5_000, asking=False), Pace().busy_wait(2_000)
    (20.0, 2.0)
    """

    busy: float = 1_000
    idle: float = 250
    least: float = 0.5
    most: float = 300
    calm: float = 10

    def busy_wait(self, people: int) -> float:
        """Seconds for one that takes part in a sum, on average."""
        return max(self.least, people / self.busy)

    def idle_wait(self, devices: int, asking: bool) -> float:
        """Seconds for one that has nothing to do, on average; `asking`: a campaign is running."""
        if asking:
            return min(self.most, max(2 * self.least, devices / self.busy))
        return min(self.most, max(self.calm, devices / self.idle))

    def recent(self, devices: int) -> float:
        """Who was not heard of for so long, three waits, is not there."""
        return 4.5 * self.idle_wait(devices, asking=False) + 5


def jittered(wait: float) -> float:
    """A wait from half to one and a half as long, uniformly."""
    return wait * (0.5 + int.from_bytes(os.urandom(2), "big") / 65536)
