"""Long arrays in the data of a page: base64 of raw deflate (RFC 1951) of little-endian numbers."""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError

TYPES = ("uint8", "int16", "int32", "uint32", "float32", "float64", "uint64")
"""Those that `web/page/src/payload/arrays.ts` reads."""


LEVEL = 6
"""Of zlib: the highest would make pages 5 % smaller in ten times the time."""


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """A one-dimensional array as JSON; the same array always gives the same text.

    >>> pack(np.array([1, 2, 3], dtype=np.uint8))
    {'type': 'uint8', 'length': 3, 'data': 'Y2RiBgA='}
    """
    name = array.dtype.name
    if array.ndim != 1 or name not in TYPES:
        raise TypeError(f"a page holds rows of {', '.join(TYPES)}; found {array.ndim} dimensions of {name}")
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = squeeze.compress(little.tobytes()) + squeeze.flush()
    return {"type": name, "length": len(array), "data": base64.b64encode(data).decode()}


def unpack(packed: dict[str, Any]) -> NDArray[Any]:
    """What `pack` wrote; `FileError` for anything else."""
    if packed.get("type") not in TYPES:
        raise FileError(f"an array of a page holds {', '.join(TYPES)}; found {packed.get('type')!r:.40}")
    kind = np.dtype(packed["type"]).newbyteorder("<")
    try:
        data = zlib.decompress(base64.b64decode(packed["data"], validate=True), -zlib.MAX_WBITS)
        array = np.frombuffer(data, dtype=kind)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise FileError("this is no array of a page") from error
    if len(array) != packed["length"]:
        raise FileError(f"an array of {packed['length']} numbers of a page holds {len(array)}")
    return array.astype(kind.newbyteorder("="))
