"""Who works on which request of a leader, and until when: in memory, as one process alone works with a database."""

from threading import Lock
from typing import Final

LEASE: Final = 600
"""Seconds that a worker has for a request before another may send it."""


class RequestLeases:
    """The leases of one task's requests, by the ids of their jobs.

    >>> leases = RequestLeases()
    >>> leases.take(b"job", b"first", 100), leases.take(b"job", b"second", 100)
    (True, False)
    >>> leases.take(b"job", b"second", 100 + LEASE)
    True
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._leases: dict[bytes, tuple[bytes, int]] = {}

    def free(self, job_id: bytes, now: int) -> bool:
        """Whether nobody works on a request or waits with it; no lease is longer than `LEASE` but by a wrong clock."""
        until = self._leases.get(job_id, (b"", 0))[1]
        return until <= now or until > now + LEASE

    def take(self, job_id: bytes, lease: bytes, now: int) -> bool:
        """Whether a request is free: it is then leased by this name, which nobody else knows."""
        with self._lock:
            if not self.free(job_id, now):
                return False
            self._leases = {job: own for job, own in self._leases.items() if own[1] > now}
            self._leases[job_id] = lease, now + LEASE
            return True

    def wait(self, job_id: bytes, lease: bytes, until: int) -> None:
        """Whoever has this lease does not work on it any more: it is free from then on."""
        with self._lock:
            if self._leases.get(job_id, (b"", 0))[0] == lease:
                self._leases[job_id] = lease, until

    def end(self, job_id: bytes) -> None:
        """The request is answered, or given up: whatever comes next of its job is free."""
        with self._lock:
            self._leases.pop(job_id, None)

    def last(self) -> int:
        """The end of the last lease; 0 if there is none."""
        with self._lock:
            return max((until for _, until in self._leases.values()), default=0)
