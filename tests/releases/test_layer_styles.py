"""Styles for QGIS and others: well-formed, cut like hazemap's own pictures, and each cell has one colour."""

import re
import sqlite3
from itertools import pairwise
from xml.etree import ElementTree as Xml

import numpy as np
import pytest

from hazemap.errors import FileError
from hazemap.releases.gis.layer_styles import (
    MOST_STYLES,
    Comparison,
    Fill,
    Hatch,
    IsEmpty,
    LayerStyle,
    StyleRule,
    for_each_slot,
    value_style,
)
from hazemap.releases.gis.style_files import OGC, SLD, expression, qml, sld

SIGNS = {
    "<": np.less,
    ">": np.greater,
    ">=": np.greater_equal,
}


def holds(condition, columns):
    """Which rows meet a condition, as SQL and QGIS say: what is compared with nothing does not."""
    if isinstance(condition, IsEmpty):
        return np.isnan(columns[condition.column])
    if condition.sign == "=":
        return columns[condition.column] == condition.text
    right = condition.number + (condition.times * columns[condition.other] if condition.other else 0)
    return SIGNS[condition.sign](columns[condition.column], right)


def met(rule, columns):
    return np.logical_and.reduce([holds(each, columns) for each in rule.conditions])


def test_every_cell_has_one_colour_and_unsure_ones_a_hatch(any_release):
    [style] = any_release.layer_styles()
    columns = any_release.columns()
    fills = [met(rule, columns) for rule in style.rules if isinstance(rule.look, Fill)]
    known = np.isfinite(columns["per_km2"])
    assert (np.sum(fills, axis=0) == known).all()
    sparse, dense = (met(rule, columns) for rule in style.rules if isinstance(rule.look, Hatch))
    relative = columns["stddev"] / np.maximum(columns["best_guess"], 1e-300)
    assert (sparse == (relative > 0.5)).all()
    assert (dense == (relative > 1)).all()


def test_denser_classes_are_darker_and_follow_each_other(release):
    [style] = release.layer_styles()
    fills = [rule for rule in style.rules if isinstance(rule.look, Fill)]
    assert 4 <= len(fills) <= 10
    light = [np.dot(rule.look.colour, (0.299, 0.587, 0.114)) for rule in fills]
    assert light == sorted(light, reverse=True)
    for before, after in pairwise(fills):
        assert before.conditions[-1].number == after.conditions[0].number
    assert "people per km²" in fills[0].label


def test_qml_has_what_qgis_reads(any_release):
    text = qml(any_release.layer_styles()[0])
    assert text.startswith("<!DOCTYPE qgis ")
    root = Xml.fromstring(text)
    assert root.tag == "qgis"
    renderer = root.find("renderer-v2")
    assert renderer.get("type") == "RuleRenderer"
    symbols = {symbol.get("name"): symbol for symbol in renderer.findall("symbols/symbol")}
    rules = renderer.findall("rules/rule")
    assert [rule.get("symbol") for rule in rules] == list(symbols)
    assert len({rule.get("key") for rule in rules}) == len(rules)
    assert all(re.fullmatch(r"\{[0-9a-f-]{36}\}", rule.get("key")) for rule in rules)
    for symbol in symbols.values():
        assert symbol.get("type") == "fill"
        [layer] = symbol.findall("layer")
        assert layer.get("class") in ("SimpleFill", "LinePatternFill")
        options = {each.get("name"): each.get("value") for each in layer.findall("Option/Option")}
        assert options == {each.get("k"): each.get("v") for each in layer.findall("prop")}
        assert re.fullmatch(r"\d+,\d+,\d+,255", options["color"])
    hatches = [each for each in symbols.values() if each.find("layer").get("class") == "LinePatternFill"]
    assert len(hatches) == 2
    assert all(each.find("layer/symbol").get("type") == "line" for each in hatches)
    assert root.findtext("layerGeometryType") == "2"


def test_sld_has_its_elements_in_the_order_of_the_schema(any_release):
    root = Xml.fromstring(sld(any_release.layer_styles()[0], "map").encode())
    assert (root.tag, root.get("version")) == (f"{{{SLD}}}StyledLayerDescriptor", "1.0.0")
    [layer] = root
    assert [each.tag for each in layer] == [f"{{{SLD}}}Name", f"{{{SLD}}}UserStyle"]
    assert layer[0].text == "map"
    for rule in layer.iter(f"{{{SLD}}}Rule"):
        wanted = [f"{{{SLD}}}Name", f"{{{SLD}}}Title", f"{{{OGC}}}Filter", f"{{{SLD}}}PolygonSymbolizer"]
        assert [each.tag for each in rule] == wanted
        [test] = rule[2]
        assert (test.tag == f"{{{OGC}}}And" and len(test) > 1) or test.tag.startswith(f"{{{OGC}}}PropertyIs")


def test_a_geopackage_has_its_styles_inside_and_opens_as_before(any_release, tmp_path):
    path = tmp_path / "map.gpkg"
    any_release.export(path)
    with sqlite3.connect(path) as base:
        rows = base.execute(
            "SELECT f_table_name, f_geometry_column, styleName, styleQML, styleSLD, useAsDefault FROM layer_styles"
        ).fetchall()
        [(listed,)] = base.execute("SELECT data_type FROM gpkg_contents WHERE table_name = 'layer_styles'")
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    base.close()
    [(table, column, name, as_qml, as_sld, default)] = rows
    assert (table, column, name, default, listed) == ("hazemap", "geom", "density", 1, "attributes")
    assert as_qml == qml(any_release.layer_styles()[0])
    Xml.fromstring(as_sld.encode())
    assert [each.name for each in tmp_path.iterdir()] == ["map.gpkg"]


@pytest.mark.parametrize("suffix", [".qml", ".sld"])
def test_a_style_alone_is_the_same_each_time(release, tmp_path, suffix):
    for name in "ab":
        release.export(tmp_path / f"{name}{suffix}")
    first, second = ((tmp_path / f"{name}{suffix}").read_text() for name in "ab")
    assert first == second.replace("<Name>b<", "<Name>a<")
    with pytest.raises(FileError, match="pixels"):
        release.export(tmp_path / f"c{suffix}", pixel=5)


def test_names_cannot_break_out_of_an_expression():
    assert expression(Comparison('a" OR "b', "=", text="it's \\")) == '"a"" OR ""b" = \'it\'\'s \\\\\''
    rule = StyleRule("<b>&", (Comparison("<&\">'", "=", text="]]>"), IsEmpty("x")), Fill((0, 0, 0)))
    style = LayerStyle("<!--", (rule,))
    assert Xml.fromstring(qml(style)).find(".//rules/rule").get("label") == "<b>&"
    Xml.fromstring(sld(style, "a\x1b\udcff\0b").encode())
    assert "]]>" in [each.text for each in Xml.fromstring(sld(style, "a&b").encode()).iter(f"{{{OGC}}}Literal")]


@pytest.mark.parametrize("bad", ["a\0b", "\x1b[2J", "\ufffe", "\ud800"])
def test_a_style_that_xml_cannot_hold_is_known(bad):
    style = value_style("mean", "guess", np.array([1.0, 2.0]), (0.0, 3.0))
    assert style.writable
    assert not for_each_slot(style, [bad])[0].writable


def test_there_are_not_endless_styles():
    style = value_style("mean", "guess", np.array([1.0, np.nan]), (0.0, 3.0))
    assert len(for_each_slot(style, [str(each) for each in range(1000)])) == MOST_STYLES


def test_values_have_even_classes_over_everything_and_grey_where_nothing_is_known():
    values = np.array([-5.0, 0.0, 1.0, 2.5, 3.0, 99.0, np.nan])
    style = value_style("mean", "guess", values, (0.0, 3.0))
    found = [met(rule, {"guess": values}) for rule in style.rules]
    assert (np.sum(found, axis=0) == 1).all()
    assert found[-1].tolist() == [False] * 6 + [True]


@pytest.mark.parametrize("values", [[np.nan], [0.0], [5.0, 5.0], [1e-300], [1e300, -1e300]])
def test_odd_values_still_make_a_style(values):
    values = np.array(values)
    style = value_style("mean", "guess", values, (0.0, 3.0))
    found = [met(rule, {"guess": values}) for rule in style.rules]
    assert (np.sum(found, axis=0) == 1).all()
    Xml.fromstring(qml(style))
