"""Styles inside a GeoPackage: the table `layer_styles`, of which QGIS takes the default one by itself."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from hazemap.releases.gis.layer_styles import LayerStyle
from hazemap.releases.gis.qml import qml
from hazemap.releases.gis.sld import sld

TABLE = """CREATE TABLE layer_styles (
 id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
 f_table_catalog TEXT(256), f_table_schema TEXT(256), f_table_name TEXT(256), f_geometry_column TEXT(256),
 styleName TEXT(30), styleQML TEXT, styleSLD TEXT, useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30),
 update_time DATETIME)"""
LISTED = """INSERT INTO gpkg_contents(table_name, data_type, identifier, description, last_change)
 VALUES ('layer_styles', 'attributes', 'layer_styles', 'styles for QGIS', ?)"""
DATED = ("UPDATE gpkg_contents SET last_change = ?", "UPDATE gpkg_metadata_reference SET timestamp = ?")
STYLE = "INSERT INTO layer_styles VALUES (NULL, '', '', ?, ?, ?, ?, ?, ?, ?, '', NULL, ?)"


def with_styles(geopackage: bytes, layer: str, styles: Sequence[LayerStyle], about: str, made: str) -> bytes:
    """A GeoPackage with styles of its layer, the first as default; `about` says what they are.

    All of it is dated by the day on which it was `made` (UTC): GDAL writes the second.
    """
    midnight = f"{made}T00:00:00.000Z"
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(geopackage)
        [(column,)] = base.execute("SELECT column_name FROM gpkg_geometry_columns WHERE table_name = ?", [layer])
        for dated in DATED:
            base.execute(dated, [midnight])
        if styles:
            base.execute(TABLE)
            base.execute(LISTED, [midnight])
        rows = [
            (layer, column, style.name[:30], qml(style), sld(style, layer), number == 0, about, midnight)
            for number, style in enumerate(styles)
        ]
        base.executemany(STYLE, rows)
        base.commit()
        return base.serialize()
