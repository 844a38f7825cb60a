"""Paths under an aggregator's endpoint (draft-ietf-ppm-dap-18, section 3), media types (8.1) and longest messages."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import ClassVar, Final, Self

from hazemap.errors import CodecError
from hazemap.vdaf.tls_encoding import Structure

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


MEDIA_TYPE: Final = "application/ppm-dap"
PROBLEM: Final = "application/problem+json"
LARGEST: Final = 1 << 28
"""Bytes: a message of many reports is shorter; who listens will allow fewer."""
_LONGEST_HEADER = 256


class DapMessage(Structure):
    """A structure that is the whole body of a request or of a response."""

    NAME: ClassVar[str]
    LARGEST_MESSAGE: ClassVar[int]

    def __init_subclass__(cls, *, name: str = "", largest: int = LARGEST) -> None:
        super().__init_subclass__()
        cls.NAME, cls.LARGEST_MESSAGE = name, largest

    @classmethod
    def media_type(cls) -> str:
        """What goes into Content-Type."""
        return f"{MEDIA_TYPE};message={cls.NAME}"

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote; CodecError for anything else, and for too many bytes before any work."""
        if len(data) > cls.LARGEST_MESSAGE:
            raise CodecError(f"a message {cls.NAME!r} has at most {cls.LARGEST_MESSAGE} bytes, not {len(data)}")
        return super().from_bytes(data)


def message_name(content_type: str) -> str:
    """Which message a Content-Type announces; CodecError if it is none of DAP's.

    >>> message_name('Application/PPM-DAP; version=18; message="upload-req"')
    'upload-req'
    """
    kind, *parameters = content_type[:_LONGEST_HEADER].split(";")
    if len(content_type) > _LONGEST_HEADER or kind.strip().lower() != MEDIA_TYPE:
        raise CodecError(f"a message of DAP has the media type {MEDIA_TYPE}, not what was sent")
    names = [
        value.strip().strip('"').lower()
        for key, _, value in (parameter.partition("=") for parameter in parameters)
        if key.strip().lower() == "message"
    ]
    if len(names) != 1 or not names[0]:
        raise CodecError(f"{MEDIA_TYPE} names its message once, in the parameter 'message'")
    return names[0]
