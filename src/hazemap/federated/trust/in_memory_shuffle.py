"""People in one process who run the real shuffle in parts: for tests, for teaching, and for a few dozen people."""

from fractions import Fraction
from functools import partial

from hazemap.codec import digest
from hazemap.engines.memory import MemoryTable
from hazemap.federated.protocols.shuffle.analyser import opened
from hazemap.federated.protocols.shuffle.client import messages
from hazemap.federated.protocols.shuffle.shuffler import Shuffler
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.cohort_assumptions import Sampling, noisy_answer
from hazemap.federated.trust.random_sampling import happens, without_replacement
from hazemap.federated.trust.report_batch import ReportBatch, asked_of
from hazemap.federated.trust.sampled_table import one_by_one
from hazemap.federated.trust.shuffled import Shuffled, noise_of, terms_of
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.vdaf.hpke import Kem, KeyPair


class InMemoryShuffle(Shuffled):
    """Answers by shuffled messages of the people of a table, each with a share of the noise, sealed to an analyser.

    Its answers have the law of `Shuffled`. A message costs some 200 µs, and a person sends dozens for each block of
    numbers.

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
        self._key = KeyPair.derived(Kem.X25519_HKDF_SHA256, self._stream.words(4).tobytes())

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
