"""All of a person's messages in one request, sealed to the shuffler: nobody on the way sees even their credential."""

from collections.abc import Sequence
from typing import NamedTuple

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.shuffle.batch_terms import BatchTerms
from hazemap.federated.protocols.shuffle.client import SUITE
from hazemap.federated.protocols.shuffle.credential import CREDENTIAL, SERIAL, is_genuine
from hazemap.vdaf.hpke import TAG, KeyPair

INFO = b"hazemap shuffle 1 submission"
_KEY = 32


class Submission(NamedTuple):
    """What a person sent: their number in this batch, and their messages one after another."""

    serial: bytes
    messages: bytes


def submission_bytes(terms: BatchTerms) -> int:
    """The length of every submission to a batch."""
    return _KEY + TAG + CREDENTIAL + terms.bytes_a_person


def submitted(
    terms: BatchTerms, shuffler: bytes, credential: bytes, messages: Sequence[bytes], randomness: bytes
) -> bytes:
    """The request of a person; `randomness` is 32 fresh bytes. Keep it: what is sent again are the same bytes."""
    if len(messages) != terms.messages or any(len(each) != terms.message_bytes for each in messages):
        raise InputError(f"this batch has {terms.messages:,} messages of a person, of {terms.message_bytes:,} bytes")
    plain = b"".join((credential, *messages))
    enc, payload = SUITE.seal(shuffler, INFO, terms.digest, plain, randomness)
    return enc + payload


def read_submission(terms: BatchTerms, key: KeyPair, request: bytes) -> Submission:
    """What a person sent, if they may send to this batch and sent all of it; `Refused` otherwise. Some 0.3 ms."""
    if len(request) != submission_bytes(terms):
        raise Refused(
            f"a person sends {terms.messages:,} messages of {terms.message_bytes:,} bytes to this batch, all or none: "
            f"that is a request of {submission_bytes(terms):,} bytes, not of {len(request):,}"
        )
    plain = SUITE.open(key, request[:_KEY], INFO, terms.digest, request[_KEY:])
    credential, messages = plain[:CREDENTIAL], plain[CREDENTIAL:]
    if not is_genuine(terms.issuer, terms.digest, credential):
        raise Refused("this credential is not the issuer's for this batch: only who is enrolled may send to it")
    return Submission(credential[:SERIAL], messages)
