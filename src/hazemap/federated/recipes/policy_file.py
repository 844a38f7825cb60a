"""A policy that devices ship with, read from a file."""

from pathlib import Path

from hazemap.errors import FileError, InputError
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import LIMITS, from_json, from_toml
from hazemap.federated.recipes.signed_policy import SignedPolicy


def read_policy(path: Path) -> ShippedPolicy:
    """The policy in a file: TOML, JSON, or signed JSON, whose signature is not looked at here."""
    try:
        with path.open("rb") as file:
            text = file.read(LIMITS.length + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the policy {path} cannot be read ({error})") from None
    if text.lstrip()[:1] != "{":
        return from_toml(text)
    try:
        return SignedPolicy.from_json(text).policy
    except InputError:
        return from_json(text)
