"""The errors that this package raises; all others of hazemap are beside them in the tree of `hazemap.errors`."""

from typing import Any


class HazemapError(Exception):
    """The root: catch this to catch everything hazemap can say. `exit_code` is the command line's."""

    exit_code = 1

    @property
    def facts(self) -> dict[str, Any]:
        """What a machine is told of it, beside its type and its message."""
        return {}


class InputError(HazemapError):
    """An option or a value that the caller can mend."""

    exit_code = 2


class ConversationError(HazemapError):
    """The algorithm's side and the answering side do not fit together."""

    exit_code = 4


class Refused(ConversationError):
    """The other side of a protocol broke its rules, or asks for less protection than this side accepts."""


class CodecError(ConversationError):
    """JSON or bytes that do not describe anything on hazemap's closed list."""
