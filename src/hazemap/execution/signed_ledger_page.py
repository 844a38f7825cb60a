"""Signed pages of a ledger: an auditor can keep one, check it, and compare it with a later one."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hazemap.codec.json_parser import Limits, parsed
from hazemap.errors import CodecError, InputError, LedgerError, Refused
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_extract import FIELDS, FORMAT, check_grown, check_sums, extract
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, ledger_page_statement, verified

LIMITS = Limits(length=1 << 28, items=1 << 25, work=0, depth=32, things=1 << 23, lists=1 << 23)
"""A quarter of a gigabyte: some 50,000 releases with their statements."""


@dataclass(frozen=True)
class SignedLedgerPage:
    """All that a ledger said of a data set (`privacy.ledger_extract`), an Ed25519 key and its signature over it.

    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from hazemap.privacy.budget import PureDP
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     _ = ledger.cap("nyc", PureDP(1))
    ...     signed = SignedLedgerPage.of(ledger, "nyc", Identity.create())
    >>> SignedLedgerPage.from_json(signed.to_json()).verify(signed.key)["dataset"]
    'nyc'
    """

    page: Mapping[str, Any]
    key: bytes
    signature: bytes

    @classmethod
    def of(cls, ledger: Ledger, dataset: str, identity: Identity) -> "SignedLedgerPage":
        """Sign the present page of a data set."""
        page = extract(ledger, dataset)
        return cls(page, identity.public, identity.sign(_message(page)))

    @classmethod
    def from_json(cls, text: str | bytes) -> "SignedLedgerPage":
        """The inverse of `to_json`; `InputError` for anything else. The signature is yet to be verified."""
        try:
            found = parsed(text, LIMITS)
            if not isinstance(found, dict) or set(found) != {"key", "page", "signature"}:
                raise InputError("a signed page has a page, a key and a signature: `hazemap ledger export` makes one")
            key, signature = (bytes.fromhex(found[name]) for name in ("key", "signature"))
        except (CodecError, ValueError, TypeError) as error:
            raise InputError(f"this is no signed page of a ledger: {error!s:.200}") from None
        page = found["page"]
        if not isinstance(page, dict) or set(page) != FIELDS or page["format"] != FORMAT:
            raise InputError("this is no page of a ledger, or of another version of hazemap")
        return cls(page, key, signature)

    def to_json(self) -> str:
        """As a file: one line."""
        found = {"key": self.key.hex(), "page": self.page, "signature": self.signature.hex()}
        return json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n"

    def verify(self, pinned: bytes, older: "SignedLedgerPage | None" = None) -> Mapping[str, Any]:
        """The page, if the pinned key has signed it, its sums are right, and nothing of an older one is gone.

        `Refused` if not; the older page has to be signed by the same key.
        """
        if self.key != pinned or (len(self.key), len(self.signature)) != (KEY, SIGNATURE):
            raise Refused(f"this page is signed by the key {self.key.hex():.16}…, not by {pinned.hex():.16}…")
        if not verified(self.key, self.signature, _message(self.page)):
            raise Refused("the signature of this page does not fit it: it was changed, or damaged on its way")
        try:
            check_sums(self.page)
            if older is not None:
                check_grown(older.verify(pinned), self.page)
        except (CodecError, LedgerError, KeyError, TypeError) as error:
            raise Refused(f"the page is signed, but cannot be true: {error}") from None
        return self.page


def _message(page: Mapping[str, Any]) -> bytes:
    """The signed bytes: a digest of the page's JSON with sorted names, in ASCII and without spaces."""
    text = json.dumps(page, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return ledger_page_statement(hashlib.sha256(text.encode()).digest())
