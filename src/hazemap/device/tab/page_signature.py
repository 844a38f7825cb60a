"""A detached signature of the page: who serves it elsewhere shows that it is the one of whoever signed it.

It is Ed25519 (RFC 8032) over the page's bytes, 64 bytes in a file beside it, so any tool can check it. The key may be
the one that signs policies: what it signs there begins otherwise than a page.
"""

from hazemap.errors import InputError, Refused
from hazemap.protocols.secure_aggregation.signing_identities import Identity, verified

ENDING = ".sig"
_BEGINS = b"<!doctype html>"


def signed(page: bytes, identity: Identity) -> bytes:
    """The signature; `InputError` for what is no page, which the key might have signed as something else.

    >>> key = Identity.create()
    >>> check_signature(b"<!doctype html>", signed(b"<!doctype html>", key), key.public)
    """
    if page[: len(_BEGINS)].lower() != _BEGINS:
        raise InputError("a page begins with <!doctype html>, and nothing else is signed as one")
    return identity.sign(page)


def check_signature(page: bytes, signature: bytes, key: bytes) -> None:
    """`Refused` unless this key has signed this very page."""
    if page[: len(_BEGINS)].lower() != _BEGINS or not verified(key, signature, page):
        raise Refused("the signature does not fit the page and the key: one of the three is another")
