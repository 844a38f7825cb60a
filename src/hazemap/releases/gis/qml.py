"""QGIS's own style file (QML): rules with filters, each with a symbol.

QGIS 3.26 and later read a symbol's `Option` map, older ones its `prop` elements, so both are there. QGIS loads
`map.qml` by itself beside `map.geojson`, and the default style of a GeoPackage out of its table `layer_styles`.
"""

import json
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree as Xml

from hazemap.releases.gis.layer_styles import Comparison, Condition, Fill, Hatch, LayerStyle, Rgb

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
