"""A small batch of a shuffler, its people, and a shuffler whose machine dies at a write of one's choice."""

from dataclasses import dataclass, field, replace

from tests.federated.aggregator.two_servers import Crash, MemoryDatabase

from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.protocols.shuffle.submission import issued, submitted
from hazemap.federated.service.store import Contradiction, Store
from hazemap.federated.shuffler.shuffler_service import SCHEMA, BatchLimits, ShufflerService
from hazemap.privacy.signing_identities import Identity
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

NOW = 1_000_000
ISSUER, SECRET = Identity.from_bytes(b"i" * 32), b"s" * 32
KEY = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, b"k" * 32)
TERMS = BatchTerms(1, b"n" * 16, ISSUER.public, b"a" * 32, b"c" * 32, 2, 50, 3, 6, NOW + 100)
LIMITS = BatchLimits(least=2, largest=1 << 20, keep=1_000)


def messages_of(person: str, terms: BatchTerms = TERMS) -> list[bytes]:
    """Messages that can be told apart."""
    return [f"{person}:{number}".encode().ljust(terms.message_bytes, b".") for number in range(terms.messages)]


def request_of(person: str, terms: BatchTerms = TERMS, said: str | None = None, issuer: Identity = ISSUER) -> bytes:
    """What a person sends, always the same."""
    own = issued(issuer, SECRET, terms.digest, person.encode())
    return submitted(terms, KEY.public, own, messages_of(said or person, terms), f"{person}{said}".encode().ljust(32))


def other(**changes: object) -> BatchTerms:
    """The batch with other terms."""
    return replace(TERMS, **changes)


class DyingStore(Store):
    """A store whose machine dies just before or just after the n-th commit."""

    left: int | None = None
    dies = "after"

    def write_now(self, *writes):
        if self.left is not None:
            self.left -= 1
        last = self.left is not None and self.left < 0
        if last and self.dies == "before":
            self.left = None
            raise Crash
        super().write_now(*writes)
        if last:
            self.left = None
            raise Crash


@dataclass
class Machine:
    """A shuffler, its disk, and everything that ever left it."""

    database: MemoryDatabase = field(default_factory=MemoryDatabase)
    kind: type[ShufflerService] = ShufflerService
    store: DyingStore | None = None
    service: ShufflerService | None = None
    acknowledged: set[str] = field(default_factory=set)
    handed_on: list[bytes] = field(default_factory=list)

    def start(self) -> "Machine":
        """Begin, or begin again after the machine died."""
        if self.store is not None:
            self.store.close()
        self.store = DyingStore(self.database, SCHEMA)
        self.service = self.kind(self.store, KEY, LIMITS)
        return self

    def send(self, person: str, terms: BatchTerms = TERMS, now: float = NOW) -> None:
        """A person's messages, as the routes take them."""
        while True:
            writes = self.service.taking(terms.digest, request_of(person, terms), now)
            if not writes:
                break
            try:
                self.store.write_now(*writes)
                break
            except Contradiction:
                continue
        self.acknowledged.add(person)

    def fetch(self, terms: BatchTerms = TERMS) -> bytes:
        """What is handed on, as an analyser collects it."""
        found = self.service.permute(terms.digest)
        every = b"".join(self.service.piece(terms.digest, number) for number in range(found.pieces))
        self.handed_on.append(every)
        return every

    def rows(self, table: str) -> int:
        """Of a table."""
        return self.store.read(f"SELECT count(*) FROM {table}")[0][0]
