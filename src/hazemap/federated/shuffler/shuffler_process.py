"""A shuffler as a process: its folder, its key, its analysers' tokens, its address."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from hazemap.errors import StoreError
from hazemap.federated.service.housekeeping import alongside, housekeeping, is_steady
from hazemap.federated.service.served_address import ServedAddress
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.service.store import Store
from hazemap.federated.shuffler.analyser_client import FIRST, AnalyserTokens
from hazemap.federated.shuffler.shuffler_routes import ShufflerMetrics, ShufflerRoutes
from hazemap.federated.shuffler.shuffler_service import SCHEMA, BatchLimits, ShufflerService
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

log = logging.getLogger("hazemap.federated.shuffler")

KEY_FILE: Final = "shuffler.key"
USUAL: Final = ServedAddress("127.0.0.1", 8473)


def shuffler_key(secret: str) -> HpkeKeyPair:
    """The key that submissions are sealed for, from the secret in the shuffler's folder."""
    randomness = sha256(b"hazemap shuffler key 1" + secret.encode()).digest()
    return HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, randomness)


@dataclass(frozen=True)
class ShufflerProcess:
    """How a shuffler is reached, what it takes, and where it keeps what it must not forget yet.

    >>> from pathlib import Path
    >>> ShufflerProcess(StateFolder(Path("data"))).address.url
    'http://127.0.0.1:8473'
    """

    state: StateFolder
    address: ServedAddress = USUAL
    batches: BatchLimits = field(default_factory=BatchLimits)
    analysers: tuple[str, ...] = (FIRST,)

    def __post_init__(self) -> None:
        self.address.check("messages")

    def key(self) -> HpkeKeyPair:
        """What devices pin the public part of; the folder and its secrets are made where there are none."""
        return shuffler_key(self.state.secret(KEY_FILE))

    def tokens(self) -> AnalyserTokens:
        """The tokens of its analysers, made where there are none."""
        return AnalyserTokens(self.state.path, self.analysers)

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        key, tokens, operator = self.key(), self.tokens(), self.state.operator
        limits, metrics = self.address.limits(), ShufflerMetrics()
        with self.state.opened("shuffler.sqlite", lambda place: Store(place, SCHEMA)) as store:
            log.info("the shuffler %s serves %s from %s", key.public.hex(), self.address.url, self.state.path)
            log.info("its analysers are %s", ", ".join(tokens.names))
            service = ShufflerService(store, key, self.batches)
            with suppress(StoreError):  # one whose disk is full still hands on what it has
                _forget(service, metrics, time.time())

            async def look() -> None:
                await asyncio.to_thread(_forget, service, metrics, time.time())

            async def alive() -> AsyncIterator[None]:
                async with alongside(housekeeping(look, log)):
                    yield

            routes = ShufflerRoutes(service, tokens, limits, metrics=metrics, operator=operator)
            self.address.serve(routes.application(alive), limits, metrics, store)


def _forget(service: ShufflerService, metrics: ShufflerMetrics, now: float) -> None:
    """Forget what nobody has collected in time, by a clock that is believed."""
    if not is_steady(service.store, int(now)):
        return
    forgotten = service.expire(now)
    metrics.expired += forgotten
    if forgotten:
        log.info("%d batches were not collected in time, and are forgotten", forgotten)
