"""One message a person: a vector of randomised bits, sealed to the analyser, who sees every one and not whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import pack, packed_length, reduced, unpack
from hazemap.federated.protocols.shuffle.sealed_parts import SUITE, OpenedBatch
from hazemap.federated.protocols.shuffle.shuffle_parameters import SEALING
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.vdaf.hpke import HpkeKeyPair
from hazemap.vdaf.tls_encoding import TlsWriter

INFO = b"hazemap shuffle 1 report"
_KEY = SEALING - 16


@dataclass(frozen=True)
class ReportParameters:
    """One shuffled sum of reports of `size` bits, each of its own person: `minimum` of them at least.

    >>> terms = ReportParameters(bytes(32), size=100, minimum=1_000)
    >>> terms.messages, terms.message_bytes
    (1, 61)
    """

    task: bytes
    size: int
    minimum: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or type(self.minimum) is not int:
            raise InputError("the parameters of shuffled reports are whole numbers")
        if type(self.task) is not bytes or len(self.task) != 32:
            raise InputError("shuffled reports are bound to a task by its SHA-256, 32 bytes")
        if not 1 <= self.size <= 1 << 24 or self.minimum < 1:
            raise InputError("reports of 1 to 2^24 bits are shuffled, 1 or more of them")

    @property
    def messages(self) -> int:
        """How many a person sends."""
        return 1

    @property
    def message_bytes(self) -> int:
        """The length of a message."""
        return SEALING + packed_length(self.size, 1)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all of these: what every message is bound to."""
        said = TlsWriter().fixed(self.task, 32).number(self.size, 8).number(self.minimum, 8)
        return sha256(b"hazemap shuffle 1 reports" + said.done()).digest()


def report_message(terms: ReportParameters, public: bytes, bits: Ints, stream: Stream) -> bytes:
    """A person's message, whose bits are randomised already."""
    if bits.shape != (terms.size,) or ((bits != 0) & (bits != 1)).any():
        raise InputError(f"a report of this shuffle is {terms.size:,} bits")
    enc, payload = SUITE.seal(public, INFO, terms.digest, pack(reduced(bits, 1), 1), stream.words(4).tobytes())
    return enc + payload


def summed_reports(terms: ReportParameters, key: HpkeKeyPair, messages: Sequence[bytes]) -> OpenedBatch:
    """The sums of the reports of a batch; `Refused` below the minimum.

    A message that does not open, or holds no bits, is nobody's report: it is left out, and the others count. Nothing is
    lost by that: every report is seen in any case. O(messages · size), some 100 µs a message.
    """
    if len(messages) < terms.minimum:
        raise Refused(f"a batch has {terms.minimum:,} reports or more; found {len(messages):,}: it is not opened")
    sums, people = np.zeros(terms.size, dtype=np.int64), 0
    for message in messages:
        try:
            plain = SUITE.open(key, message[:_KEY], INFO, terms.digest, message[_KEY:])
            sums += unpack(plain, terms.size, 1)
        except (Refused, CodecError):
            continue
        people += 1
    return OpenedBatch(sums, people)
