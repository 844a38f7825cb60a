"""Styles as files: QML, Styled Layer Descriptor 1.0 (OGC 02-070), and the table `layer_styles` of a GeoPackage.

Both hold rules with filters, each with a symbol. QGIS 3.26 and later read a symbol's `Option` map, older ones its
`prop` elements, so both are there. QGIS loads `map.qml` by itself beside `map.geojson`, and the default style of a
GeoPackage. SLD is for GeoServer, MapServer, and whatever reads no QML: its elements stand in the order of OGC's schema,
and a hatch is the mark `shape://slash`, which GeoServer and QGIS know.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree as Xml

from hazemap.releases.gis.layer_styles import NOT_IN_XML, Comparison, Condition, Fill, Hatch, LayerStyle, Rgb, StyleRule

POLYGONS = "2"
DOCTYPE = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
HATCH_WIDTH = "0.15"  # millimetres
SLANT = "45"


def qml(style: LayerStyle) -> str:
    """A style as QGIS reads it.

    >>> from hazemap.releases.gis.layer_styles import StyleRule
    >>> print(qml(LayerStyle("s", (StyleRule("few", (Comparison("n", "<", 3),), Fill((1, 2, 3))),)))[:64])
    <!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>
    <qgis
    """
    root = Xml.Element("qgis", version="3.22.0", styleCategories="Symbology")
    renderer = Xml.SubElement(
        root, "renderer-v2", type="RuleRenderer", symbollevels="0", forceraster="0", enableorderby="0"
    )
    rules = Xml.SubElement(renderer, "rules", key=_key(style.name))
    symbols = Xml.SubElement(renderer, "symbols")
    for number, rule in enumerate(style.rules):
        Xml.SubElement(
            rules,
            "rule",
            key=_key(f"{style.name}/{number}"),
            filter=" AND ".join(map(expression, rule.conditions)),
            label=rule.label,
            symbol=str(number),
        )
        _symbol(symbols, str(number), rule.look)
    for name, text in (("blendMode", "0"), ("featureBlendMode", "0"), ("layerGeometryType", POLYGONS)):
        Xml.SubElement(root, name).text = text
    Xml.indent(root, " ")
    return DOCTYPE + Xml.tostring(root, encoding="unicode") + "\n"


def expression(condition: Condition) -> str:
    """A condition in QGIS's language of expressions.

    >>> expression(Comparison("stddev", ">", 0, "best_guess", 0.5))
    '"stddev" > 0.5 * "best_guess"'
    """
    column = _quoted(condition.column)
    if not isinstance(condition, Comparison):
        return f"{column} IS NULL"
    if condition.sign == "=":
        return f"{column} = {_text(condition.text)}"
    if condition.other is None:
        return f"{column} {condition.sign} {json.dumps(condition.number)}"
    more = f"{json.dumps(condition.number)} + " if condition.number else ""
    return f"{column} {condition.sign} {more}{json.dumps(condition.times)} * {_quoted(condition.other)}"


def _quoted(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    """A text, in which a backslash would begin an escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _symbol(symbols: Xml.Element, name: str, look: Fill | Hatch) -> None:
    symbol = Xml.SubElement(symbols, "symbol", name=name, type="fill", alpha="1", clip_to_extent="1", force_rhr="0")
    if isinstance(look, Fill):
        colour = _colour(look.colour)
        own = {"color": colour, "outline_color": colour, "outline_style": "solid", "outline_width": "0.05"}
        own |= {"outline_width_unit": "MM", "style": "solid", "joinstyle": "miter"}
        _layer(symbol, "SimpleFill", own, "0")
        return
    line = {"color": _colour(look.colour), "line_width": HATCH_WIDTH, "line_width_unit": "MM"}
    pattern = line | {"angle": SLANT, "distance": str(look.apart), "distance_unit": "MM"}
    layer = _layer(symbol, "LinePatternFill", pattern, "1")  # the second pass: above every colour
    inner = Xml.SubElement(layer, "symbol", name=f"@{name}@0", type="line", alpha="1", clip_to_extent="1")
    own = {"line_color": line["color"], "line_style": "solid", "line_width": HATCH_WIDTH, "line_width_unit": "MM"}
    _layer(inner, "SimpleLine", own, "0")


def _layer(symbol: Xml.Element, kind: str, settings: dict[str, str], drawn: str) -> Xml.Element:
    """A layer of a symbol with its settings in both ways of writing; `drawn` is the pass in which it is."""
    layer = Xml.SubElement(symbol, "layer", {"class": kind, "enabled": "1", "locked": "0", "pass": drawn})
    options = Xml.SubElement(layer, "Option", type="Map")
    for name, value in settings.items():
        Xml.SubElement(options, "Option", name=name, type="QString", value=value)
    for name, value in settings.items():
        Xml.SubElement(layer, "prop", k=name, v=value)
    return layer


def _colour(colour: Rgb) -> str:
    return ",".join(map(str, (*colour, 255)))


def _key(name: str) -> str:
    """The same key for the same rule, so that a style is the same bytes each time."""
    return "{" + str(uuid5(NAMESPACE_URL, f"hazemap:{name}")) + "}"


SLD, OGC, XSI = (
    "http://www.opengis.net/sld",
    "http://www.opengis.net/ogc",
    "http://www.w3.org/2001/XMLSchema-instance",
)
SCHEMA = f"{SLD} http://schemas.opengis.net/sld/1.0.0/StyledLayerDescriptor.xsd"
SIGNS = {
    "<": "PropertyIsLessThan",
    ">": "PropertyIsGreaterThan",
    ">=": "PropertyIsGreaterThanOrEqualTo",
    "=": "PropertyIsEqualTo",
}
PIXELS_A_MILLIMETRE = 1 / 0.28  # OGC's standardised pixel


def sld(style: LayerStyle, layer: str) -> str:
    """A style of a layer of this name, as XML.

    >>> from hazemap.releases.gis.layer_styles import StyleRule
    >>> rule = StyleRule("few", (Comparison("n", "<", 3),), Fill((1, 2, 3)))
    >>> "#010203" in sld(LayerStyle("s", (rule,)), "hazemap")
    True
    """
    for prefix, space in (("", SLD), ("ogc", OGC), ("xsi", XSI)):
        Xml.register_namespace(prefix, space)
    root = Xml.Element(_sld("StyledLayerDescriptor"), {"version": "1.0.0", f"{{{XSI}}}schemaLocation": SCHEMA})
    named = Xml.SubElement(root, _sld("NamedLayer"))
    Xml.SubElement(named, _sld("Name")).text = NOT_IN_XML.sub("", layer)
    user = Xml.SubElement(named, _sld("UserStyle"))
    Xml.SubElement(user, _sld("Name")).text = style.name
    drawn = Xml.SubElement(user, _sld("FeatureTypeStyle"))
    for number, rule in enumerate(style.rules):
        _rule(drawn, number, rule)
    Xml.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _rule(drawn: Xml.Element, number: int, rule: StyleRule) -> None:
    made = Xml.SubElement(drawn, _sld("Rule"))
    Xml.SubElement(made, _sld("Name")).text = f"rule-{number}"
    Xml.SubElement(made, _sld("Title")).text = rule.label
    where = Xml.SubElement(made, _ogc("Filter"))
    where = Xml.SubElement(where, _ogc("And")) if len(rule.conditions) > 1 else where
    for each in rule.conditions:
        _condition(where, each)
    fill = Xml.SubElement(Xml.SubElement(made, _sld("PolygonSymbolizer")), _sld("Fill"))
    if isinstance(rule.look, Fill):
        _css(fill, "fill", _hex(rule.look.colour))
    else:
        _hatch(fill, rule.look)


def _condition(where: Xml.Element, condition: Condition) -> None:
    if not isinstance(condition, Comparison):
        Xml.SubElement(Xml.SubElement(where, _ogc("PropertyIsNull")), _ogc("PropertyName")).text = condition.column
        return
    made = Xml.SubElement(where, _ogc(SIGNS[condition.sign]))
    Xml.SubElement(made, _ogc("PropertyName")).text = condition.column
    if condition.sign == "=":
        Xml.SubElement(made, _ogc("Literal")).text = condition.text
        return
    if condition.other is not None:
        right = Xml.SubElement(made, _ogc("Add"))
        Xml.SubElement(right, _ogc("Literal")).text = repr(condition.number)
        product = Xml.SubElement(right, _ogc("Mul"))
        Xml.SubElement(product, _ogc("Literal")).text = repr(condition.times)
        Xml.SubElement(product, _ogc("PropertyName")).text = condition.other
    else:
        Xml.SubElement(made, _ogc("Literal")).text = repr(condition.number)


def _hatch(fill: Xml.Element, hatch: Hatch) -> None:
    graphic = Xml.SubElement(Xml.SubElement(fill, _sld("GraphicFill")), _sld("Graphic"))
    mark = Xml.SubElement(graphic, _sld("Mark"))
    Xml.SubElement(mark, _sld("WellKnownName")).text = "shape://slash"
    stroke = Xml.SubElement(mark, _sld("Stroke"))
    _css(stroke, "stroke", _hex(hatch.colour))
    _css(stroke, "stroke-width", "0.5")
    Xml.SubElement(graphic, _sld("Size")).text = f"{hatch.apart * PIXELS_A_MILLIMETRE:.1f}"


def _css(parent: Xml.Element, name: str, value: str) -> None:
    Xml.SubElement(parent, _sld("CssParameter"), name=name).text = value


def _hex(colour: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _sld(name: str) -> str:
    return f"{{{SLD}}}{name}"


def _ogc(name: str) -> str:
    return f"{{{OGC}}}{name}"


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
