"""One transaction for what many devices of a process have to write: one wait for the disk serves them all."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hazemap.device.encrypted_store import EncryptedStore, Write

GATHER = 0.003
"""Seconds for which others may join a transaction."""


@dataclass(eq=False)
class Commits:
    """Gathers statements into transactions; a device goes on when its own are on the disk."""

    store: EncryptedStore
    _waiting: list[tuple[Sequence[Write], asyncio.Future[None]]] = field(default_factory=list)

    async def write(self, writes: Sequence[Write]) -> None:
        """Have these statements written, all or none; `FileError` where they could not be."""
        if not writes:
            return
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(GATHER, self._flush)
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((writes, done))
        await done

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            outcomes = self.store.commit([writes for writes, _ in waiting])
        except Exception as error:
            for _, done in waiting:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), outcome in zip(waiting, outcomes, strict=True):
            if done.done():  # its device was stopped meanwhile; what it wrote stays
                continue
            if outcome is None:
                done.set_result(None)
            else:
                done.set_exception(outcome)
