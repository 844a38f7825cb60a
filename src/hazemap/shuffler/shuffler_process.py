"""A shuffler as a process: its folder, its key, its analyser's token, its address."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from hazemap.errors import StoreError
from hazemap.protocols.hpke import Kem, KeyPair
from hazemap.service.access_tokens import token_file
from hazemap.service.http_limits import HttpLimits
from hazemap.service.served_address import ServedAddress
from hazemap.service.store import Store
from hazemap.shuffler.batch_limits import BatchLimits
from hazemap.shuffler.schema import SCHEMA
from hazemap.shuffler.shuffler_routes import ShufflerRoutes
from hazemap.shuffler.shuffler_service import ShufflerService

log = logging.getLogger("hazemap.shuffler")

KEY_FILE, ANALYSER = "shuffler.key", "analyser.token"
HOUSEKEEPING: Final = 600.0
"""Seconds between two looks for batches that nobody collects."""


def shuffler_key(secret: str) -> KeyPair:
    """The key that submissions are sealed for, from the secret in the shuffler's folder."""
    randomness = sha256(b"hazemap shuffler key 1" + secret.encode()).digest()
    return KeyPair.derived(Kem.X25519_HKDF_SHA256, randomness)


@dataclass(frozen=True)
class ShufflerProcess:
    """How a shuffler is reached, what it takes, and where it keeps what it must not forget yet.

    >>> ShufflerProcess(Path("data"), ServedAddress("127.0.0.1", 8473)).address.url
    'http://127.0.0.1:8473'
    """

    folder: Path
    address: ServedAddress
    batches: BatchLimits = field(default_factory=BatchLimits)
    database: str | None = None
    limits: HttpLimits | None = None

    def __post_init__(self) -> None:
        self.address.check("messages")

    def public_key(self) -> str:
        """What devices pin, in hexadecimal digits; the folder and its secrets are made where there are none."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        token_file(self.folder / ANALYSER)
        return shuffler_key(token_file(self.folder / KEY_FILE)).public.hex()

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        log.info("the shuffler %s serves %s from %s", self.public_key(), self.address.url, self.folder)
        key, token = shuffler_key(token_file(self.folder / KEY_FILE)), token_file(self.folder / ANALYSER)
        store = Store(self.database or self.folder / "shuffler.sqlite", SCHEMA)
        try:
            service = ShufflerService(store, key, self.batches)
            service.expire(time.time())

            async def alive() -> AsyncIterator[None]:
                work = asyncio.create_task(_housekeeping(service))
                yield
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

            limits = self.address.limits(self.limits)
            self.address.serve(ShufflerRoutes(service, token, limits).application(alive), limits)
        finally:
            store.close()


async def _housekeeping(service: ShufflerService) -> None:
    while True:
        await asyncio.sleep(HOUSEKEEPING)
        try:
            forgotten = await asyncio.to_thread(service.expire, time.time())
        except StoreError as error:
            log.warning("nothing is forgotten until the store can be written: %s", error)
            continue
        if forgotten:
            log.info("%d batches were not collected in time, and are forgotten", forgotten)
