"""People in one process who run the real shuffle in parts, with a shuffler that opens nothing: for tests."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from hazemap.codec import digest
from hazemap.engines.memory import MemoryTable
from hazemap.errors import NotOpened, Refused
from hazemap.federated.protocols.shuffle.sealed_parts import messages, opened
from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.cohort_assumptions import Sampling, noisy_answer
from hazemap.federated.trust.report_batch import ReportBatch, asked_of
from hazemap.federated.trust.sampled_table import happens, one_by_one, without_replacement
from hazemap.federated.trust.shuffled import ShuffledParts, noise_of, terms_of
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream, in_any_order
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.vdaf.hpke import HpkeKeyPair, Kem


class Shuffler:
    """One batch: who has sent, and what, until it is handed on and forgotten.

    A person's messages are taken whole or not at all: as many as the parameters say, each as long as they say, once.
    What is in them it cannot see.

    >>> terms = ShuffleParameters(bytes(32), size=2, bits=8, block=2, honest=1_000, minimum=1_000)
    >>> batch = Shuffler(terms)
    >>> batch.take("ann", [bytes(terms.message_bytes)] * terms.messages)
    >>> batch.people
    1
    """

    def __init__(self, terms: ShuffleParameters) -> None:
        self.terms = terms
        self._messages: list[bytes] = []
        self._people: set[str] = set()
        self._handed_on = False

    @property
    def people(self) -> int:
        """How many people's messages are there."""
        return len(self._people)

    def take(self, person: str, messages: Sequence[bytes]) -> None:
        """All messages of an enrolled person, or none: `Refused` for another number, another length, a second time."""
        terms = self.terms
        if self._handed_on:
            raise Refused("this batch was handed on already; it takes no more messages")
        if person in self._people:
            raise Refused("this person's messages are in this batch already; each counts once")
        if len(messages) != terms.messages:
            raise Refused(
                f"a person sends {terms.messages:,} messages to this batch, all or none, not {len(messages):,}"
            )
        if any(len(each) != terms.message_bytes for each in messages):
            raise Refused(f"a message of this batch has {terms.message_bytes:,} bytes, every one of them")
        self._people.add(person)
        self._messages.extend(messages)

    def hand_on(self, stream: Stream) -> list[bytes]:
        """All messages in an order drawn uniformly, once; nothing of them or of who sent them stays here.

        `NotOpened` while too few people have sent theirs; then everything stays as it was.
        """
        if self._handed_on:
            raise Refused("this batch was handed on already, and forgotten")
        if self.people < self.terms.minimum:
            raise NotOpened(
                f"{self.people:,} people have sent their messages, and nothing below {self.terms.minimum:,} is handed "
                "on: wait for more of them"
            )
        order = in_any_order(stream, len(self._messages)).tolist()
        shuffled = [self._messages[at] for at in order]
        self._messages.clear()
        self._people.clear()
        self._handed_on = True
        return shuffled


class InMemoryShuffle(ShuffledParts):
    """Answers by shuffled messages of the people of a table, each with a share of the noise, sealed to an analyser.

    Its answers have the law of `ShuffledParts`. A message costs some 200 µs, and a person sends dozens for each block
    of numbers.

    >>> import numpy as np
    >>> from hazemap import AtMostRows, Counts, Leaves, MemoryTable, PureDP, Quadtree, Query
    >>> table = MemoryTable(np.arange(20), {"lon": np.full(20, 2.35), "lat": np.full(20, 48.85)})
    >>> trust = InMemoryShuffle(table, ReportBatch(20, 19))
    >>> tree = Quadtree.world(depth=1)
    >>> trust.answer(Query(Counts(Leaves(tree, tree.root), AtMostRows(1)), 1), PureDP(50)).sums
    array([20])
    """

    def __init__(
        self,
        table: MemoryTable,
        batch: ReportBatch,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
    ) -> None:
        super().__init__(table, batch, stream, dropping)
        self._people = list(one_by_one(table))
        self._asked: Ints | None = None
        self._key = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, self._stream.words(4).tobytes())

    def answer(self, question: Question, price: Budget) -> Answer:
        """Draw people, have each send their parts, shuffle them, open them and add them up."""
        query, stream = asked_of(question, "a shuffler and an analyser"), self._stream
        noise = noise_of(query.encoder, price, self.batch)
        terms = terms_of(query.encoder, noise, self.batch, digest(query).encode())
        asked = self._asked
        if asked is None:
            asked = without_replacement(stream, len(self._people), min(self.batch.people, len(self._people)))
        if self.batch.sampling is Sampling.ONE:
            self._asked = asked
        came: list[int] = asked[~happens(stream, len(asked), self.dropping)].tolist()
        self.reports.append(len(came))
        shuffler = Shuffler(terms)
        for number in came:
            sums = contribution(query.encoder, partial(self._people.__getitem__, number)).sums
            noisy = sums + noise.share(stream, terms.size)
            shuffler.take(str(number), messages(terms, self._key.public, noisy, stream))
        found = opened(terms, self._key, shuffler.hand_on(stream))
        return noisy_answer(found.sums, noise.scale, Fraction(found.people, self.batch.honest), found.people)
