"""All of a person's messages in one request, sealed to the shuffler: nobody on the way sees even their credential.

A credential says who may send to a batch: a random number that the issuer signs for this batch, one for each person.
The shuffler counts a number once. Numbers of one person in two batches have nothing in common, so a shuffler that
keeps them cannot link batches by them. The issuer stores nothing: the same person has the same number again.
"""

from collections.abc import Sequence
from hmac import digest
from typing import NamedTuple

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.shuffle.sealed_parts import SUITE
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.privacy.signing_identities import SIGNATURE, Identity, verified
from hazemap.vdaf.hpke import TAG, HpkeKeyPair

SERIAL = 32
CREDENTIAL = SERIAL + SIGNATURE
"""Bytes of a number, and of a credential."""

_SIGNED = b"hazemap shuffle 1 credential"


def issued(issuer: Identity, secret: bytes, batch: bytes, person: bytes) -> bytes:
    """The credential of a person, by the issuer's name for them, in a batch: the same each time, and 40 µs.

    >>> made = issued(Identity.create(), bytes(32), bytes(32), b"ann")
    >>> len(made)
    96
    """
    if len(secret) < SERIAL:
        raise InputError(f"numbers of people are made from a secret of {SERIAL} bytes or more")
    serial = digest(secret, _SIGNED + len(batch).to_bytes(2, "big") + batch + person, "sha256")
    return serial + issuer.sign(_SIGNED + batch + serial)


def is_genuine(issuer: bytes, batch: bytes, credential: bytes) -> bool:
    """Whether the issuer made this credential for this batch.

    >>> issuer = Identity.create()
    >>> is_genuine(issuer.public, b"one", issued(issuer, bytes(32), b"one", b"ann"))
    True
    >>> is_genuine(issuer.public, b"two", issued(issuer, bytes(32), b"one", b"ann"))
    False
    """
    serial, signature = credential[:SERIAL], credential[SERIAL:]
    return len(credential) == CREDENTIAL and verified(issuer, signature, _SIGNED + batch + serial)


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


def read_submission(terms: BatchTerms, key: HpkeKeyPair, request: bytes) -> Submission:
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
