"""Pictures of cell maps and of plans. Nothing here sees a row."""

from hazemap.draw.error_curves import ErrorCurve, draw_plan
from hazemap.draw.image_files import encode, save
from hazemap.draw.map_extent import MapExtent, shown_part
from hazemap.draw.maps import MapPanel, draw_map, draw_side_by_side

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
