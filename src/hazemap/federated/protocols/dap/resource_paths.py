"""Where things are (draft-ietf-ppm-dap-18, section 3): paths under an aggregator's endpoint, with ids in base64url."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from hazemap.errors import CodecError

HPKE_CONFIG: Final = "hpke_config"
PROVISIONING: Final = "hazemap/tasks"
"""Where coordinators give an aggregator tasks: no resource of the standard."""
_ID = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def id_text(identifier: bytes) -> str:
    """An id as it stands in a path: base64url without padding.

    >>> id_text(bytes.fromhex("95ceda51e1a9752368b0d961f9466128"))
    'lc7aUeGpdSNosNlh-UZhKA'
    """
    return urlsafe_b64encode(identifier).rstrip(b"=").decode()


def read_id(text: str, length: int) -> bytes:
    """The id of `length` bytes that a path names; CodecError for any text but the one that `id_text` gives.

    >>> read_id("lc7aUeGpdSNosNlh-UZhKA", 16).hex()
    '95ceda51e1a9752368b0d961f9466128'
    """
    if len(text) != (length * 4 + 2) // 3 or not _ID.fullmatch(text):
        raise CodecError(f"an id of {length} bytes is {(length * 4 + 2) // 3} characters of base64url, without padding")
    identifier = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if id_text(identifier) != text:
        raise CodecError("an id ends in bits that must be zero, and are not")
    return identifier


def reports(task_id: bytes) -> str:
    """Where reports are uploaded."""
    return f"tasks/{id_text(task_id)}/reports"


def aggregation_jobs(task_id: bytes, job_id: bytes | None = None) -> str:
    """Where aggregation jobs are made, or one of them."""
    return _resources("aggregation_jobs", task_id, job_id)


def collection_jobs(task_id: bytes, job_id: bytes | None = None) -> str:
    """Where collection jobs are made, or one of them."""
    return _resources("collection_jobs", task_id, job_id)


def aggregate_shares(task_id: bytes, share_id: bytes | None = None) -> str:
    """Where aggregate shares are made, or one of them."""
    return _resources("aggregate_shares", task_id, share_id)


def _resources(name: str, task_id: bytes, identifier: bytes | None) -> str:
    collection = f"tasks/{id_text(task_id)}/{name}"
    return collection if identifier is None else f"{collection}/{id_text(identifier)}"
