"""What a person sends to a shuffler: their noisy vector in sealed parts, all of one length."""

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import pack
from hazemap.federated.protocols.shuffle.additive_parts import split
from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.vdaf.hpke import Aead, CipherSuite, Kdf, Kem
from hazemap.vdaf.tls_encoding import TlsWriter

SUITE = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
"""What messages are sealed with, for the analyser: the shuffler opens none."""

INFO = b"hazemap shuffle 1 part"


def messages(terms: ShuffleParameters, public: bytes, noisy: Ints, stream: Stream) -> list[bytes]:
    """All messages of one person, whose vector int64[size] has their share of the noise in it already.

    Each block is split apart from the others. Costs some 100 µs a message. Send all in one request, in any order: the
    shuffler permutes them.
    """
    if noisy.shape != (terms.size,):
        raise InputError(f"this shuffle adds up vectors of {terms.size:,} numbers, not of {len(noisy):,}")
    made = []
    for number in range(terms.blocks):
        block = noisy[number * terms.block : (number + 1) * terms.block]
        for part in split(stream, np.pad(block, (0, terms.block - len(block))), terms.bits, terms.parts):
            plain = TlsWriter().number(number, 4).fixed(pack(part, terms.bits), terms.plain_bytes - 4).done()
            randomness = stream.words(4).tobytes()
            enc, payload = SUITE.seal(public, INFO, terms.digest, plain, randomness)
            made.append(enc + payload)
    return made
