"""Trees and partitions of places."""

from hazemap.domains.boxes import WORLD, Box
from hazemap.domains.cut_districts import CutDistricts
from hazemap.domains.cuts import Cuts
from hazemap.domains.districts import Districts
from hazemap.domains.grids import Grids
from hazemap.domains.hexagons import Hexagons
from hazemap.domains.layers import Layer
from hazemap.domains.marked import Marked, Sides
from hazemap.domains.parcels import Parcels
from hazemap.domains.quadtree import Quadtree

__all__ = [
    "WORLD",
    "Box",
    "CutDistricts",
    "Cuts",
    "Districts",
    "Grids",
    "Hexagons",
    "Layer",
    "Marked",
    "Parcels",
    "Quadtree",
    "Sides",
]
