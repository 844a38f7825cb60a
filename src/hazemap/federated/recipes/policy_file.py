"""A policy that devices ship with, read from a file."""

from pathlib import Path

from hazemap.errors import InputError
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import LIMITS, from_json, from_toml
from hazemap.federated.recipes.signed_policy import SignedPolicy
from hazemap.files.text_files import read_text


def read_policy(path: Path) -> ShippedPolicy:
    """The policy in a file: TOML, JSON, or signed JSON, whose signature is not looked at here."""
    text = read_text(path, "the policy", LIMITS.length)
    if text.lstrip()[:1] != "{":
        return from_toml(text)
    try:
        return SignedPolicy.from_json(text).policy
    except InputError:
        return from_json(text)
