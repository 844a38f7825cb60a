"""Draws cell maps and plans. Nothing here sees a row."""

from hazemap.draw.cell_densities import shown_part
from hazemap.draw.density_grids import draw_grids
from hazemap.draw.error_by_cell_size import ErrorCurve, draw_plan
from hazemap.draw.figure_layout import PageSize, encode, save
from hazemap.draw.heatmaps import draw_heatmap
from hazemap.draw.maps import MapPanel, draw_map, draw_side_by_side
from hazemap.draw.share_maps import Beside, draw_shares
from hazemap.draw.small_maps import draw_small_maps, draw_small_shares
from hazemap.draw.themes import DARK, LIGHT, Theme, theme_named
from hazemap.draw.viewport import MapExtent

__all__ = [
    "DARK",
    "LIGHT",
    "Beside",
    "ErrorCurve",
    "MapExtent",
    "MapPanel",
    "PageSize",
    "Theme",
    "draw_grids",
    "draw_heatmap",
    "draw_map",
    "draw_plan",
    "draw_shares",
    "draw_side_by_side",
    "draw_small_maps",
    "draw_small_shares",
    "encode",
    "save",
    "shown_part",
    "theme_named",
]
