"""Whole messages: the media type each travels under (section 8.1), and the most bytes it may have."""

from typing import ClassVar, Final, Self

from hazemap.errors import CodecError
from hazemap.vdaf.tls_encoding import Structure

MEDIA_TYPE: Final = "application/ppm-dap"
PROBLEM: Final = "application/problem+json"
LARGEST: Final = 1 << 28
"""Bytes: a message of many reports is shorter; who listens will allow fewer."""
_LONGEST_HEADER = 256


class Message(Structure):
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
