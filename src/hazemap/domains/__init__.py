"""Trees and partitions of places."""

from hazemap.domains.boxes import WORLD, Box
from hazemap.domains.cut_districts import CutDistricts
from hazemap.domains.cuts import Cuts
from hazemap.domains.districts import Districts
from hazemap.domains.everything import Everything
from hazemap.domains.gauge import Gauge
from hazemap.domains.grids import Grids
from hazemap.domains.hexagons import Hexagons
from hazemap.domains.layers import Layer
from hazemap.domains.magnitudes import Magnitudes
from hazemap.domains.marked import Marked, Sides
from hazemap.domains.measured import Measured
from hazemap.domains.octaves import Octaves
from hazemap.domains.parcels import Parcels
from hazemap.domains.quadtree import Quadtree
from hazemap.domains.slots import Always, Clock, Slots, Spans, Weekdays
from hazemap.domains.stretches import Stretches
from hazemap.domains.valued import Valued

__all__ = [
    "WORLD",
    "Always",
    "Box",
    "Clock",
    "CutDistricts",
    "Cuts",
    "Districts",
    "Everything",
    "Gauge",
    "Grids",
    "Hexagons",
    "Layer",
    "Magnitudes",
    "Marked",
    "Measured",
    "Octaves",
    "Parcels",
    "Quadtree",
    "Sides",
    "Slots",
    "Spans",
    "Stretches",
    "Valued",
    "Weekdays",
]
