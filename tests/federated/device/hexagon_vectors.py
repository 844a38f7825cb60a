"""Vectors of hexagons: which cell of H3 a point lies in, all over the earth, and what rows add to counts of such cells.

`python -m tests.federated.device.hexagon_vectors` writes `tests/vectors/device/hexagons.json`; a test compares it
with what the code says. Points are those of a generator that is quickly written in another language too: their cells
are one digest.
"""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.cells import NOWHERE, Leaves
from hazemap.codec import dumps
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.federated.trust.checked_contribution import bounded
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import PENTAGONS, Hexagons, lattice
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Outside

FILE = Path(__file__).parents[2] / "vectors" / "device" / "hexagons.json"
RESOLUTIONS = (0, 1, 2, 5, 8, 9, 12, 15)
POINTS = 12_500

NORWAY, FIJI, NORTH, PARIS = (
    Box(9.5, 64.2, 11.5, 65.2),  # about a pentagon
    Box(178, -19, 180, -16),  # as far as the antimeridian
    Box(-180, 88, 180, 90),
    Box(2.2, 48.8, 2.4, 48.9),
)


def uniforms(seed: int, number: int) -> np.ndarray:
    """SplitMix64 from a seed, as float64[number] from 0 to below 1: the highest 53 bits of each word."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


def pentagons() -> list[list[float]]:
    """The centres of the twelve pentagons: longitude and latitude."""
    from h3ronpy.vector import cells_to_coordinates

    numbers = (
        (np.uint64(1) << np.uint64(59)) | (PENTAGONS.astype(np.uint64) << np.uint64(45)) | np.uint64((1 << 45) - 1)
    )
    centres = cells_to_coordinates(numbers)
    return np.column_stack([np.asarray(centres["lng"]), np.asarray(centres["lat"])]).tolist()


def points(resolution: int, centres: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """For one resolution: a quarter anywhere, a quarter about pentagons, by the antimeridian, and by the poles."""
    u, v = uniforms(resolution, 2 * POINTS).reshape(2, POINTS)
    lon, lat, width = u * 360 - 180, v * 180 - 90, 40 / 2.0**resolution
    kind, which = np.arange(POINTS) % 4, np.arange(POINTS) // 4 % len(centres)
    centre = np.array(centres)[which]
    lon = np.where(kind == 1, centre[:, 0] + (u - 0.5) * width, lon)
    lat = np.where(kind == 1, centre[:, 1] + (v - 0.5) * width, lat)
    lon = np.where(kind == 2, np.where(u < 0.5, -180 + u * width / 40, 180 - (u - 0.5) * width / 40), lon)
    lat = np.where(kind == 3, np.where(v < 0.5, -90 + v * width / 40, 90 - (v - 0.5) * width / 40), lat)
    return lon, lat


def digests(centres: list[list[float]]) -> list[dict[str, Any]]:
    """SHA-256 of the cells of all points of a resolution, eight bytes each (0 off the globe), and the first few."""
    found = []
    for resolution in RESOLUTIONS:
        cells = lattice(resolution).locate(*points(resolution, centres))
        digest = hashlib.sha256(cells.astype(">u8").tobytes()).hexdigest()
        found.append({"resolution": resolution, "cells": digest, "first": [f"{cell:x}" for cell in cells[:8].tolist()]})
    return found


def tasks(seed: int = 3) -> list[dict[str, Any]]:
    """Tasks about hexagons, and what the rows of a person add."""
    found = []
    for number, box in enumerate((NORWAY, FIJI, NORTH, PARIS)):
        tree = Hexagons(box, *((1, 4), (3, 6), (2, 2), (7, 9))[number])
        cells = np.append(tree.root, NOWHERE) if number % 2 else tree.root
        if tree.depth:
            cells = np.append(cells, tree.children(tree.root[::2])).astype(np.uint64)
        u, v = uniforms(seed + number, 60).reshape(2, 30)
        lon = (box.west - 0.4 + u * (box.east - box.west + 0.8)).round(5)
        lat = (box.south - 0.4 + v * (box.north - box.south + 0.8)).round(5)
        for rule in (AtMostRows(7, Outside.COUNT), AtMostCells(9, Outside.PEOPLE), AtMostCells(2)):
            query = Query(Counts(Leaves(tree, cells), rule), Fraction(1))
            task = Task(f"hexagons {number}", "a map", 1, query, PureDP(1), PureDP(1), Cohort(1_000, 1_000))
            sampling = hashlib.sha256(f"sampling {number}".encode()).digest()
            key = hashlib.sha256(sampling + task.campaign.encode()).digest()
            sums = bounded(query.encoder, MemoryTable(np.zeros(30, dtype=np.int64), {"lon": lon, "lat": lat}, key))
            rows = [{"lon": x, "lat": y} for x, y in zip(lon.tolist(), lat.tolist(), strict=True)]
            added = [[int(i), int(sums[i])] for i in np.flatnonzero(sums)]
            found.append({"task": dumps(task), "rows": rows, "sampling": sampling.hex(), "contribution": added})
    return found


def text() -> str:
    """The file."""
    centres = pentagons()
    parts = {"pentagons": centres, "points": digests(centres), "tasks": tasks()}
    lists = {name: ",\n".join(f"  {json.dumps(case)}" for case in cases) for name, cases in parts.items()}
    return "{\n" + ",\n".join(f' "{name}": [\n{lines}\n ]' for name, lines in lists.items()) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text())
