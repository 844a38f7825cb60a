"""Long arrays of a transcript beside its text, in the metadata of a map's file: bytes that need not be parsed.

A line of JSON says of each its type, how many numbers it has and how many bytes they take; then follow these bytes in
base64. They are the numbers' little-endian bytes, the first of all numbers, then the second and so on, compressed with
zstd.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"uint64": 8, "int64": 8, "float64": 8, "int8": 1}
"""The types of long arrays, and how many bytes a number has."""

MOST_BYTES = 1 << 33
"""No file's arrays hold more: a damaged length must not fill the memory."""

FREE_BYTES, MOST_TIMES = 1 << 30, 256
"""Beyond so many bytes, arrays are at most so many times as long as what they were compressed to: noise is not. Zeros
would be 25,000 times as long, and a small file made on purpose would fill the memory."""

LEVEL = 3
"""How hard zstd tries."""


def packed_arrays(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Arrays as text of few bytes.

    >>> arrays = [np.arange(3), np.array([0.5]), np.zeros(2, np.int8)]
    >>> [each.tolist() for each in unpacked_arrays(packed_arrays(arrays))]
    [[0, 1, 2], [0.5], [0, 0]]
    """
    import pyarrow as pa

    squeeze, heads, bodies = pa.Codec("zstd", LEVEL), list[list[Any]](), list[bytes]()
    for each in arrays:
        little = np.ascontiguousarray(each, dtype=each.dtype.newbyteorder("<"))
        planes = np.ascontiguousarray(little.view(np.uint8).reshape(len(each), -1).T)
        bodies.append(squeeze.compress(planes.tobytes(), asbytes=True))
        heads.append([each.dtype.name, len(each), len(bodies[-1])])
    return json.dumps(heads, separators=(",", ":")).encode() + b"\n" + base64.b64encode(b"".join(bodies))


def unpacked_arrays(text: bytes) -> list[NDArray[Any]]:
    """What `packed_arrays` wrote; `ValueError` or an error of Arrow's for anything else."""
    import pyarrow as pa

    head, _, body = text.partition(b"\n")
    heads, content = json.loads(head), memoryview(base64.b64decode(body, validate=True))
    if any(kind not in KINDS or type(n) is not int or type(size) is not int for kind, n, size in heads):
        raise ValueError("arrays of unknown types or lengths")
    most = min(max(FREE_BYTES, MOST_TIMES * len(content)), MOST_BYTES)
    if min((min(n, size) for _, n, size in heads), default=0) < 0 or 8 * sum(n for _, n, _ in heads) > most:
        raise ValueError("arrays of impossible length")
    if sum(size for *_, size in heads) != len(content):
        raise ValueError("arrays of other lengths than was said")
    found, start, squeeze = list[NDArray[Any]](), 0, pa.Codec("zstd")
    for kind, n, size in heads:
        wide = KINDS[kind]
        planes = np.frombuffer(squeeze.decompress(content[start : start + size], wide * n), np.uint8)
        if len(planes) != wide * n:
            raise ValueError("an array of another length than was said")
        octets = np.zeros((n, wide), dtype=np.uint8)
        for place, plane in enumerate(planes.reshape(wide, n)):
            if plane.any():  # of small numbers most are zeros
                octets[:, place] = plane
        found.append(octets.view(np.dtype(kind).newbyteorder("<")).ravel().astype(kind, copy=False))
        start += size
    return found
