"""Coasts, lakes, rivers, borders and places of Natural Earth, to find one's way on a map. Public domain; no fetch."""

from hazemap.base_map.natural_earth import BaseMap, Place, base_map

__all__ = ["BaseMap", "Place", "base_map"]
