"""Extensions of tasks, reports, aggregation jobs and collection jobs: one form, and one rule for taking them.

All four are uint16 type ‖ opaque data, ascend strictly, and must be understood. A list that is read from a message
may still be out of order: who handles the message says what that means for it (`check_extensions`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from hazemap.errors import CodecError
from hazemap.vdaf.tls_encoding import Structure, number, opaque, vector


@dataclass(frozen=True)
class Extension(Structure):
    """Its type, and what that type makes of its data.

    >>> Extension(0x1234, b"hello").to_bytes().hex()
    '1234000568656c6c6f'
    """

    type: Annotated[int, number(2)]
    data: Annotated[bytes, opaque(2)]


Extensions = Annotated[tuple[Extension, ...], vector(Extension, 2)]


class InvalidExtensions(CodecError):
    """Extensions whose types do not ascend strictly, or whose data mean nothing."""


class UnsupportedExtensions(CodecError):
    """Extensions that this side does not know; `types` are theirs, ascending."""

    def __init__(self, types: Collection[int]) -> None:
        self.types = tuple(sorted(set(types)))
        super().__init__(f"extensions {', '.join(map(str, self.types))} are not known here, and may not be ignored")


def check_extensions(extensions: tuple[Extension, ...], known: Collection[int]) -> dict[int, bytes]:
    """The data by their types: InvalidExtensions unless these ascend, UnsupportedExtensions unless all are known.

    >>> check_extensions((Extension(1, b"a"), Extension(4, b"b")), {1, 2, 4})
    {1: b'a', 4: b'b'}
    """
    if not extensions:
        return {}
    types = [each.type for each in extensions]
    if any(left >= right for left, right in pairwise(types)):
        raise InvalidExtensions("extensions must ascend strictly by their types, and do not")
    if unknown := set(types) - set(known):
        raise UnsupportedExtensions(unknown)
    return {each.type: each.data for each in extensions}
