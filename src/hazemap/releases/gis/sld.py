"""Styled Layer Descriptor 1.0 (OGC 02-070): the same rules for GeoServer, MapServer, and whatever reads no QML.

Elements stand in the order of OGC's schema. A hatch is the mark `shape://slash`, which GeoServer and QGIS know.
"""

from xml.etree import ElementTree as Xml

from hazemap.releases.gis.layer_styles import NOT_IN_XML, Comparison, Condition, Fill, Hatch, LayerStyle, Rgb, StyleRule

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
