"""A release in a notebook: a picture of a few kilobytes and the main numbers, without any script."""

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats
from hazemap.spatial.plane import plane_of

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

SIDE = 176
"""Pixels along the longer side. 4 bits each, so the picture is never above 16 kB, compressed or not."""

COLOURS = bytes.fromhex(
    "ffffff 440154 481467 482576 453781 404688 39558c 33638d 2d718e 287d8e 238a8d 1f968b 29af7f 55c667 94d840 fde725"
)
"""Nothing, then fifteen steps of viridis."""


def card(release: "BaseRelease") -> str:
    """HTML of less than 30 kB: thumbnail and summary."""
    text = "".join(f"<div>{html.escape(line)}</div>" for line in release.summary())
    picture = base64.b64encode(_png(thumbnail(release))).decode()
    title = html.escape(release.statement.dataset[:200])
    return (
        '<div style="display:flex;gap:1em;align-items:flex-start">'
        f'<img alt="map of {title}" style="image-rendering:pixelated;border:1px solid #ccc"'
        f' src="data:image/png;base64,{picture}"><div><b>{title}</b>{text}</div></div>'
    )


def thumbnail(release: "BaseRelease") -> NDArray[np.uint8]:
    """Steps 0 … 15 of a log density, or of a value, on a Web-Mercator grid, north up; uint8[rows, columns]."""
    leaves, (west, south, east, north) = release.cells, release.ground.extent
    plane = plane_of(leaves.tree)
    low, high = (south, north) if plane else (_height(south), _height(north))
    width, height = east - west if plane else np.radians(east - west), high - low
    columns, rows = (max(round(SIDE * side / max(width, height)), 1) for side in (width, height))
    across = west + (np.arange(columns) + 0.5) / columns * (east - west)
    up = high - (np.arange(rows) + 0.5) / rows * height
    if plane is None:
        up = np.degrees(np.arcsin(np.tanh(up)))
    elif plane.down:
        up = low + high - up
    points = {"lon": np.tile(across, rows), "lat": np.repeat(up, columns)}
    owner = leaves.locate(leaves.tree.cell_at(points, leaves.tree.depth))
    numbers, density = release.thumbnail
    seen = np.append(numbers, np.nan)[owner].reshape(rows, columns)
    return (_density_steps if density else _value_steps)(seen)


def _height(latitude: float) -> float:
    """How far north a latitude is in Web Mercator."""
    return float(np.arctanh(np.sin(np.radians(np.clip(latitude, -85, 85)))))


def _value_steps(seen: Floats) -> NDArray[np.uint8]:
    """Even steps from the least value to the greatest; 0 where none is known."""
    known = np.isfinite(seen)
    low, high = (seen[known].min(), seen[known].max()) if known.any() else (0.0, 0.0)
    steps = 1 + 14 * (np.where(known, seen, low) - low) / max(high - low, 1e-9)
    return np.where(known, steps.round(), 0).astype(np.uint8)


def _density_steps(seen: Floats) -> NDArray[np.uint8]:
    """Even steps of the logarithm up to the greatest density; 0 where nobody is."""
    seen = np.maximum(np.nan_to_num(seen), 0)
    if not seen.any():
        return np.zeros(seen.shape, dtype=np.uint8)
    top = np.log(seen.max())
    floor = max(np.log(np.quantile(seen[seen > 0], 0.02)), top - 12)
    scale = np.log(np.maximum(seen, 1e-300)) - floor
    steps = np.where(seen > 0, np.clip(1 + 14 * scale / max(top - floor, 1e-9), 1, 15), 0)
    return steps.round().astype(np.uint8)


def _png(steps: NDArray[np.uint8]) -> bytes:
    """A PNG of 16 colours, the first one transparent (ISO 15948)."""
    rows, columns = steps.shape
    even = np.pad(steps, ((0, 0), (0, columns % 2)))
    packed = (even[:, ::2] << 4) | even[:, 1::2]
    lines = np.pad(packed, ((0, 0), (1, 0)))  # each line begins with its filter: none
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 4, 3, 0, 0, 0)),
        (b"PLTE", COLOURS),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
