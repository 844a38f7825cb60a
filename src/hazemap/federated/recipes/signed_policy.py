"""A policy with the signature of whoever ships it, from a file, and when a device takes it in the place of its own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hazemap.codec.json_parser import parsed
from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import LIMITS, canonical, digest, from_json, from_signed, from_toml
from hazemap.files.text_files import read_text
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, policy_statement, verified


@dataclass(frozen=True)
class SignedPolicy:
    """A policy, the Ed25519 key of whoever ships it, and the signature over the policy's digest.

    >>> from hazemap.federated.recipes.policy_document import example
    >>> signed = SignedPolicy.sign(example(), Identity.create())
    >>> SignedPolicy.from_json(signed.to_json()).verify(signed.key).name
    'keyboard_statistics'
    """

    policy: ShippedPolicy
    key: bytes
    signature: bytes

    @classmethod
    def sign(cls, policy: ShippedPolicy, identity: Identity) -> "SignedPolicy":
        """The policy, signed; the signature is the same each time."""
        return cls(policy, identity.public, identity.sign(policy_statement(digest(policy))))

    @classmethod
    def from_json(cls, text: str | bytes) -> "SignedPolicy":
        """What `to_json` wrote; `InputError` for anything else. The signature is yet to be verified."""
        try:
            found = parsed(text, LIMITS)
            if not isinstance(found, dict) or set(found) != {"key", "policy", "signature"}:
                raise InputError("a signed policy has a policy, a key and a signature: `hazemap policy sign` makes one")
            key, signature = (bytes.fromhex(found[name]) for name in ("key", "signature"))
        except (CodecError, ValueError, TypeError) as error:
            raise InputError(f"this is no signed policy: {error!s:.200}") from None
        if (len(key), len(signature)) != (KEY, SIGNATURE):
            raise InputError(f"a signed policy has a key of {KEY} bytes and a signature of {SIGNATURE}, in hexadecimal")
        return cls(from_signed(found["policy"]), key, signature)

    def to_json(self) -> str:
        """As a file: one line, the same for the same policy and key."""
        found = {
            "key": self.key.hex(),
            "policy": json.loads(canonical(self.policy)),
            "signature": self.signature.hex(),
        }
        return json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n"

    def verify(self, pinned: bytes) -> ShippedPolicy:
        """The policy, if the pinned key has signed it; `Refused` if not."""
        if self.key != pinned:
            raise Refused(
                f"this policy is signed by the key {self.key.hex()[:16]}…, but the pinned key is"
                f" {pinned.hex()[:16]}…: take it only from whoever shipped the first one"
            )
        if not verified(self.key, self.signature, policy_statement(digest(self.policy))):
            raise Refused("the signature of this policy does not fit it: it was changed, or damaged on its way")
        return self.policy


def update_refusal(new: ShippedPolicy, accepted: Iterable[ShippedPolicy]) -> str | None:
    """Why a device does not take a policy after those it had; None where it does.

    Charges are kept by the names of analyses and fields, and count whatever policy they were made under. Besides, what
    would let them be forgotten is refused: a shorter period, a limit that is gone, prices that add up in another way,
    a stream that keeps its name and gets other fields.
    """
    return next((reason for old in accepted for reason in _reasons(new, old)), None)


def _reasons(new: ShippedPolicy, old: ShippedPolicy) -> Iterator[str]:
    if new.name != old.name:
        yield f"this device has the policy {old.name}, and takes no other: this one is {new.name}"
    if new.version <= old.version:
        yield f"this device has had version {old.version} and needs a later one: this is version {new.version}"
    if new.accounting is not old.accounting:
        yield f"prices of {old.name} add up by {old.accounting.value}, and cannot change to {new.accounting.value}"
    if new.days < old.days:
        yield f"the period was {old.days} days: {new.days} would forget what was spent before; it may grow only"
    if gone := sorted({limit.days for limit in old.limits} - {limit.days for limit in new.limits}):
        yield f"the limit over {gone[0]} days is gone: its numbers may change, but it stays"
    for stream in new.streams:
        before = old.stream(stream.name)
        if before is not None and before.fields != stream.fields:
            yield f"the stream {stream.name} has other fields than before: give the new ones a stream of their own"


def read_policy(path: Path) -> ShippedPolicy:
    """The policy in a file: TOML, JSON, or signed JSON, whose signature is not looked at here."""
    text = read_text(path, "the policy", LIMITS.length)
    if text.lstrip()[:1] != "{":
        return from_toml(text)
    try:
        return SignedPolicy.from_json(text).policy
    except InputError:
        return from_json(text)
