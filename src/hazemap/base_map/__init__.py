"""Coasts, lakes, rivers, borders and places of Natural Earth, to find one's way on a map. Public domain; no fetch."""

from hazemap.base_map.natural_earth import BaseMap, TownPlace, base_map

__all__ = ["BaseMap", "TownPlace", "base_map"]
