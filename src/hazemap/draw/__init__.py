"""Pictures of cell maps and of plans. Nothing here sees a row."""

from hazemap.draw.curves import ErrorCurve, draw_plan
from hazemap.draw.files import encode, save
from hazemap.draw.frames import Frame, shown_part
from hazemap.draw.maps import Panel, draw_map, draw_side_by_side

__all__ = ["ErrorCurve", "Frame", "Panel", "draw_map", "draw_plan", "draw_side_by_side", "encode", "save", "shown_part"]
