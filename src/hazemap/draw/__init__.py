"""Draws cell maps and plans. Nothing here sees a row."""

from hazemap.draw.cell_densities import shown_part
from hazemap.draw.error_by_cell_size import ErrorCurve, draw_plan
from hazemap.draw.figure_layout import encode, save
from hazemap.draw.maps import MapPanel, draw_map, draw_side_by_side
from hazemap.draw.viewport import MapExtent

__all__ = [
    "ErrorCurve",
    "MapExtent",
    "MapPanel",
    "draw_map",
    "draw_plan",
    "draw_side_by_side",
    "encode",
    "save",
    "shown_part",
]
