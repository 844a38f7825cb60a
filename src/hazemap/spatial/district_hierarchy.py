"""How layers of districts lie in each other: whose child each is, and what is left over.

A point belongs to the district of the finest layer that holds it, and with it to all that this one belongs to. So
where two files draw a border differently the finer one is right, and a district's ground is that of its children
and what of its own polygon no finer district takes: its *unincorporated* child.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.spatial.district_files import Named

UNINCORPORATED = "unincorporated"
"""The name of what is left over."""

BETWEEN = " > "
"""What stands between the names on the path to a district."""

OVERLAP = 1e-3
"""Two districts of a layer may share this part of the smaller one, as badly drawn borders do; the first keeps it."""

LEFT_OVER = 1e-9
"""What is less than this part of a district is no place, but rounding."""

GRAIN = 1e-10
"""Degrees (10 µm): GEOS 3.14 may call touching polygons overlapping unless it rounds to a grid."""

Shapes = NDArray[Any]


class Nested(NamedTuple):
    """All districts, each before those in it: names, levels, polygons (empty ones for what has none of its own)."""

    labels: tuple[str, ...]
    levels: NDArray[np.int64]
    shapes: Shapes


def nested(layers: Sequence[Named], whole: str) -> Nested:
    """The districts of some layers, coarse to fine, under one root; all leaves are of the same level."""
    import shapely

    if not layers:
        raise InputError("districts are made of one layer of polygons or more; found none")
    for layer in layers:
        _apart(layer)
    starts = np.cumsum([1, *(len(layer.names) for layer in layers)])  # of each layer, among all with the root before
    parents = [np.zeros(1, dtype=np.int64)]
    for level, layer in enumerate(layers):
        upper = _parents(layer, layers[level - 1]) + starts[level - 1] if level else np.zeros(len(layer.names), int)
        parents.append(upper)
    names = [whole, *(name for layer in layers for name in layer.names)]
    shapes = np.concatenate([[shapely.Polygon()], *(layer.shapes for layer in layers)])
    parent = np.concatenate(parents)
    levels = np.repeat(np.arange(len(layers) + 1), [1, *(len(layer.names) for layer in layers)])
    left = left_over(shapes, levels)
    children: list[list[int]] = [[] for _ in names]
    for child in range(1, len(names)):
        children[parent[child]].append(child)
    labels: list[str] = []
    depths: list[int] = []
    order: list[int] = []

    def add(at: int, label: str, level: int) -> None:
        labels.append(label)
        depths.append(level)
        order.append(at)

    def visit(at: int) -> None:
        level = int(levels[at])
        add(at, names[at], level)
        for child in children[at]:
            visit(child)
        if at and level < len(layers) and (not children[at] or left[at].area > LEFT_OVER * shapes[at].area):
            if left[at].is_empty:
                raise InputError(
                    f"{names[at]!r} in {layers[level - 1].title} has no district in it, and districts of other parents "
                    "fill it: give the finer layer a column of parents, or cut its districts along the coarser ones"
                )
            for deeper in range(level + 1, len(layers) + 1):
                add(0, UNINCORPORATED, deeper)  # the root's polygon is empty

    visit(0)
    return Nested(tuple(labels), np.array(depths, dtype=np.int64), shapes[order])


def left_over(shapes: Shapes, levels: NDArray[np.int64]) -> Shapes:
    """What of each polygon those of deeper levels leave: O(crossings of borders)."""
    import shapely

    tree, left = shapely.STRtree(shapes), shapes.copy()
    upper = np.flatnonzero((levels < levels.max()) & ~shapely.is_empty(shapes))
    at, other = tree.query(shapes[upper], predicate="intersects")
    deeper = levels[other] > levels[upper[at]]
    at, other = at[deeper], other[deeper]
    for place in np.unique(at):
        taken = shapely.union_all(shapes[other[at == place]], grid_size=GRAIN)
        left[upper[place]] = shapely.difference(shapes[upper[place]], taken, grid_size=GRAIN)
    return areas_of(left)


def areas_of(shapes: Shapes) -> Shapes:
    """Only the polygons in each shape, without the lines and points that cutting may leave."""
    import shapely

    whole: Shapes = np.array(shapes, dtype=object)
    for at in np.flatnonzero(~np.isin(shapely.get_type_id(whole), (3, 6))):
        parts = shapely.get_parts(whole[at])
        parts = parts[shapely.area(parts) > 0]
        whole[at] = shapely.union_all(parts) if len(parts) else shapely.Polygon()
    return whole


def clipped(ground: Any, boxes: NDArray[np.float64]) -> Shapes:
    """What of each box (west, south, east, north) lies in a polygon; edges of the box stay where they are.

    GEOS clips six times as fast as it intersects, and says that the result may be invalid: then it is intersected.
    """
    import shapely

    parts = np.array([shapely.clip_by_rect(ground, *box) for box in boxes.tolist()], dtype=object)
    doubtful = np.flatnonzero(~shapely.is_valid(parts) | ~np.isin(shapely.get_type_id(parts), (3, 6)))
    parts[doubtful] = shapely.intersection(ground, shapely.box(*boxes[doubtful].T), grid_size=GRAIN)
    return areas_of(parts)


def _apart(layer: Named) -> None:
    """`InputError` if two districts of a layer share more than hairlines."""
    import shapely

    first, second = shapely.STRtree(layer.shapes).query(layer.shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    shared = shapely.area(shapely.intersection(layer.shapes[first], layer.shapes[second], grid_size=GRAIN))
    smaller = np.minimum(shapely.area(layer.shapes[first]), shapely.area(layer.shapes[second]))
    part = shared / smaller
    if (part > OVERLAP).any():
        worst = int(np.argmax(part))
        names = [layer.names[place[worst]] for place in (first, second)]
        raise InputError(
            f"the districts of a layer do not overlap; in {layer.title}, {names[0]!r} and {names[1]!r} share "
            f"{100 * part[worst]:.3g} % of the smaller one"
        )


def _parents(layer: Named, upper: Named) -> NDArray[np.int64]:
    """For each district the position of its parent in the coarser layer."""
    if layer.parents is None:
        return _around(layer, upper)
    wanted = set(layer.parents)
    keys = [column for column in upper.columns.values() if len(set(column)) == len(column)]
    found = next((column for column in keys if wanted <= set(column)), None)
    if found is None:
        known = {value for column in keys for value in column}
        strange = next((text for text in layer.parents if text not in known), layer.parents[0])
        name = layer.names[layer.parents.index(strange)]
        raise InputError(
            f"the parent of {name!r} in {layer.title} is {strange!r}, but no column of {upper.title} has all the "
            f"parents, each once; its columns are {', '.join(upper.columns)}"
        )
    place = {value: at for at, value in enumerate(found)}
    return np.array([place[text] for text in layer.parents])


def _around(layer: Named, upper: Named) -> NDArray[np.int64]:
    """The coarser district in which most of each one's area lies; `InputError` if that is less than half."""
    import shapely

    at, above = shapely.STRtree(upper.shapes).query(layer.shapes, predicate="intersects")
    shared = np.zeros((len(layer.names), len(upper.names)))
    shared[at, above] = shapely.area(shapely.intersection(layer.shapes[at], upper.shapes[above], grid_size=GRAIN))
    part = shared.max(axis=1) / shapely.area(layer.shapes)
    if (part < 0.5).any():
        worst = int(np.argmin(part))
        hint = [
            name for name, column in layer.columns.items() for key in upper.columns.values() if set(column) <= set(key)
        ]
        raise InputError(
            f"{layer.names[worst]!r} in {layer.title} lies with only {100 * part[worst]:.3g} % of its area in any one "
            f"district of {upper.title}: name the column of its parents"
            + (f" (it may be {hint[0]!r})" if hint else "")
            + ", or cut it along their borders"
        )
    return np.asarray(shared.argmax(axis=1))
