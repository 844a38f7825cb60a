"""Trees and partitions of places."""

from hazemap.domains.boxes import WORLD, Box
from hazemap.domains.cuts import Cuts
from hazemap.domains.grids import Grids
from hazemap.domains.hexagons import Hexagons
from hazemap.domains.marked import Marked, Sides
from hazemap.domains.quadtree import Quadtree

__all__ = ["WORLD", "Box", "Cuts", "Grids", "Hexagons", "Marked", "Quadtree", "Sides"]
