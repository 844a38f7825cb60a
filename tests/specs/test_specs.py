"""Typed specifications: what they refuse when they are made, and that nothing is lost on paper."""

import inspect
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hazemap
from hazemap.errors import FileError, InputError
from hazemap.files.text_files import toml_table
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.readers.csv_files import CsvDialect
from hazemap.spatial.bounding_box import Box
from hazemap.specs.parsing import DistrictFiles, HexagonCells, HexagonList, QuadtreeCells, bounding, cells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import RELEASE, SCHEMAS
from hazemap.specs.specification import from_toml, to_toml
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.specs.table_spec import TableSpec
from hazemap.tables.contribution_bounding import OneVote, Outside, RowIsPerson

TABLE = TableSpec("visits.csv")
PARIS = Box(2.2, 48.8, 2.5, 48.95)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
maybe = st.none() | texts
rationals = st.builds(Fraction, st.integers(1, 10**6), st.integers(1, 10**6)).filter(lambda f: f < 1)
budgets = st.one_of(
    st.builds(PureDP, rationals), st.builds(ZCDP, rationals), st.builds(ApproxDP, rationals, rationals)
).filter(lambda each: each.rho > Fraction(1, 10**9))  # less is refused where a person may say much
dialects = st.builds(CsvDialect, st.sampled_from([None, ";", "\t"]), st.just("cp1252"), st.just(","), st.booleans())
tables = st.builds(TableSpec, texts, st.none(), maybe, maybe, maybe, dialect=dialects | st.just(CsvDialect()))


def faults(document, schema):
    """What a JSON Schema says against a document, by the words that ours use."""
    types = {"string": str, "boolean": bool, "integer": int, "number": float, "array": list}
    said = [f"{name} is missing" for name in schema["required"] if name not in document]
    for name, value in document.items():
        field = schema["properties"].get(name)
        if field is None:
            said.append(f"{name} is not known")
        elif type(value) is not types[field["type"]]:
            said.append(f"{name} is a {type(value).__name__}")
        elif "enum" in field and value not in field["enum"]:
            said.append(f"{name} is {value}")
    return said + (["no budget"] if sum(_fits(document, each) for each in schema["oneOf"]) != 1 else [])


def _fits(document, rule):
    return (
        all(name in document for name in rule.get("required", ()))
        and ("not" not in rule or not _fits(document, rule["not"]))
        and ("anyOf" not in rule or any(_fits(document, each) for each in rule["anyOf"]))
    )


EVERYTHING = {
    ReleaseSpec: {
        "source": "a.csv",
        "lon": "x",
        "lat": "y",
        "time": "t",
        "value": "w",
        "since": "2026-01-01",
        "until": "2026-02-01",
        "time_format": "milliseconds",
        "delimiter": ";",
        "encoding": "cp1252",
        "decimal": ",",
        "multiline": True,
        "person": "user",
        "epsilon": "0.5",
        "delta": "0.00001",
        "bounding": "one vote",
        "outside": "count",
        "dataset": "nyc",
        "box": "2.2,48.8,2.5,48.95",
        "cells": "quadtree:7",
        "method": "auto",
        "slots": "hour-of-day",
        "time_zone": "Europe/Paris",
        "output": "map.parquet",
        "overwrite": True,
    },
    StatisticsSpec: {
        "source": "a.csv",
        "lon": "x",
        "lat": "y",
        "time": "t",
        "value": "w",
        "since": "2026-01-01",
        "until": "2026-02-01",
        "time_format": "milliseconds",
        "delimiter": ";",
        "encoding": "cp1252",
        "decimal": ",",
        "multiline": True,
        "person": "user",
        "epsilon": "0.5",
        "delta": "0.00001",
        "low": -1.5,
        "bounds": "private",
        "max_cells_per_person": 3,
        "max_records_per_cell": 2,
        "select": True,
        "model": "full",
        "dataset": "nyc",
        "box": "2.2,48.8,2.5,48.95",
        "cells": "h3:6-6",
        "slots": "hour-of-day",
        "time_zone": "Europe/Paris",
        "estimator": "own-means",
        "chop_user": False,
        "variance": True,
        "quantiles": [0.5],
        "bins": 8,
        "output": "map.parquet",
        "overwrite": True,
    },
}


EXCLUDING = {"rho", "high", "mark", "goal", "plane", "prior", "prior_is_public", "cell_column", "length", "mean_of"}
"""Names that exclude others of the same document."""


@pytest.mark.parametrize(("kind", "document"), EVERYTHING.items())
def test_every_name_of_a_specification_is_kept_and_its_schema_knows_it(kind, document):
    spec = kind.from_json(document)
    assert spec.to_json() == document
    assert kind.from_toml(spec.to_toml()) == kind.of(**document) == spec
    assert kind.NAMES.keys() - document.keys() <= EXCLUDING
    schema = SCHEMAS["release" if kind is ReleaseSpec else "statistics"]
    assert faults(document, schema) == []
    assert faults(document | {"rho": "1"}, schema) == ["no budget"]
    wrong = document | {"epsilom": "1", "overwrite": "yes"}
    assert faults(wrong, schema) == ["overwrite is a str", "epsilom is not known"]


@pytest.mark.parametrize(("kind", "least"), [(ReleaseSpec, {}), (StatisticsSpec, {"value": "w", "low": 0, "high": 1})])
def test_a_default_is_what_a_name_means_where_it_is_left_out(kind, least):
    usual = {name: field.default for name, field in kind.NAMES.items() if field.default is not None}
    least = least | {"epsilon": "1"}
    assert kind.from_json(least | usual) == kind.from_json(least)
    assert len(usual) >= 7


def test_numbers_and_times_of_numpy_and_decimals_are_those_of_python():
    plain = {"value": "w", "low": 0.5, "high": 65, "quantiles": [0.1, 0.5], "max_cells_per_person": 3, "variance": True}
    plain |= {"epsilon": "0.1", "since": "2026-05-31", "until": "2026-06-01T12:00:00"}
    others = {
        "value": np.str_("w"),
        "low": np.float32(0.5),
        "high": Decimal(65),
        "quantiles": np.array([0.1, 0.5]),
        "max_cells_per_person": np.int64(3),
        "variance": np.True_,
        "epsilon": Decimal("0.1"),
        "since": date(2026, 5, 31),
        "until": np.datetime64("2026-06-01T12:00:00", "ns"),
    }
    found = StatisticsSpec.of("a.csv", **others)
    assert found == StatisticsSpec.of("a.csv", **plain)
    assert StatisticsSpec.from_toml(found.to_toml()) == found
    moments = {"since": datetime(2026, 5, 31, tzinfo=UTC), "until": np.datetime64("2026-06-01T12:00")}
    assert ReleaseSpec.of("a.csv", epsilon=np.float64(1), **moments).table.window == (
        "2026-05-31T00:00:00+00:00",
        "2026-06-01T12:00:00",
    )
    for wrong in ({"max_cells_per_person": np.float64(2.5)}, {"low": np.array([[1]])}, {"low": Decimal("NaN")}):
        with pytest.raises(InputError):
            StatisticsSpec.of("a.csv", **{**others, **wrong})


def test_crs_is_another_name_of_a_plane_in_python():
    pyproj = pytest.importorskip("pyproj")
    order = {"epsilon": 1, "box": "390000,5810000,400000,5820000"}
    plain = ReleaseSpec.of("a.csv", plane="EPSG:25833", **order)
    for crs in ("EPSG:25833", 25833, pyproj.CRS(25833), np.int64(25833)):
        assert ReleaseSpec.of("a.csv", crs=crs, **order) == plain
    assert ReleaseSpec.of("a.csv", crs=None, **order | {"box": "13,52,14,53"}).plane is None
    with pytest.raises(InputError, match="pass one of them"):
        ReleaseSpec.of("a.csv", crs=25833, plane="EPSG:25833", **order)
    with pytest.raises(TypeError, match="crs"):
        StatisticsSpec.of("a.csv", crs=25833, value="w", low=0, high=1, epsilon=1)
    for wrong in ("EPSG:99999999", [25833], True, pyproj.CRS("+proj=tmerc +lat_0=51")):
        with pytest.raises(InputError):
            ReleaseSpec.of("a.csv", crs=wrong, **order)


def test_a_byte_order_mark_before_a_specification_is_no_letter_of_it():
    text = 'source = "v.parquet"\nepsilon = "1"\n'
    assert ReleaseSpec.from_toml("\ufeff" + text) == ReleaseSpec.from_toml(text)
    assert toml_table("\ufeffdays = 30", "the policy", 100) == {"days": 30}


def test_a_keyword_that_is_not_known_is_refused_as_python_does():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        hazemap.release("a.csv", epsilom=1)
    shown = inspect.signature(hazemap.stats).parameters
    assert shown["max_records_per_cell"].default is None and shown["model"].default == "full" and "asked" not in shown
    assert set(inspect.signature(hazemap.release).parameters) > set(RELEASE) > {"box", "method", "delimiter"}


def test_a_data_set_called_like_its_file_follows_another_file():
    spec = ReleaseSpec.of("nyc.csv", epsilon=1)
    assert "dataset" not in spec.to_json() and spec.dataset == "nyc"
    assert ReleaseSpec.from_json(spec.to_json() | {"source": "rome.csv"}).dataset == "rome"
    assert ReleaseSpec.of("nyc.csv", epsilon=1, dataset="us").to_json()["dataset"] == "us"


@given(
    tables,
    budgets,
    st.sampled_from(["one row", "rows:3", "cells:2", "one vote", "rows are people"]),
    st.sampled_from(Outside),
    st.sampled_from(["auto", "flat:3", "htf", "privtree", "pyramid:50"]),
    st.sampled_from([None, PARIS, Box(-179.5, -0.1, 1e-7, 0.30000000000000004)]),
    texts,
    maybe,
    st.booleans(),
)
def test_a_map_s_specification_is_the_same_after_toml_and_json(
    table, budget, rule, outside, method, box, name, output, over
):
    spec = ReleaseSpec(
        table=table,
        budget=budget,
        bounding=bounding(rule, outside),
        method=method,
        cells=QuadtreeCells(None),
        box=box,
        dataset=name,
        output=output,
        overwrite=over,
    )
    assert ReleaseSpec.from_toml(spec.to_toml()) == spec
    assert ReleaseSpec.from_json(spec.to_json()) == spec
    assert ReleaseSpec.from_toml(spec.to_toml()).algorithm == spec.algorithm
    assert faults(spec.to_json(), SCHEMAS["release"]) == []


@given(
    tables,
    budgets,
    st.sampled_from([(0, 65), (-3.5, 1e-9), (None, 5)]),
    st.sampled_from(["always", "hour-of-day", "clock:7:00,9:30,16:00"]),
    st.booleans(),
    st.sampled_from([(), (0.1, 0.5), (1 / 3,)]),
    st.sampled_from([None, 3]),
)
def test_a_specification_of_statistics_is_the_same_after_toml_and_json(
    table, budget, bounds, slots, spread, ranks, cap
):
    declared = None if None not in bounds else "private"
    asked = StatisticsSpec(
        table,
        budget,
        "speed",
        *bounds,
        declared,
        PARIS,
        HexagonCells(7, 7),
        slots,
        "Europe/Paris",
        spread,
        ranks,
        max_cells_per_person=cap,
    )
    back = StatisticsSpec.from_toml(asked.to_toml())
    assert back == asked == StatisticsSpec.from_json(asked.to_json())
    assert back.algorithm == asked.algorithm
    assert faults(asked.to_json(), SCHEMAS["statistics"]) == []


@pytest.mark.parametrize(
    "found",
    [
        DistrictFiles((("states.geojson", None, None), ("a b.gpkg", "geo id", "state")), 12),
        *(HexagonList("area.csv"), HexagonCells(3, 3), HexagonCells(3, 9), QuadtreeCells(4), QuadtreeCells(None)),
    ],
)
def test_every_kind_of_cells_is_written_as_it_is_read(found):
    from hazemap.specs.parsing import cells_of_values

    assert cells_of_values(found.text) == found
    if not isinstance(found, HexagonList):
        assert cells(found.text) == found


@given(st.dictionaries(st.from_regex("[a-z_]{1,9}", fullmatch=True), texts | st.floats(-1e300, 1e300) | st.booleans()))
def test_toml_says_what_was_meant_whatever_the_texts_hold(document):
    assert from_toml(to_toml(document)) == document


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 1}, "epsilon of a specification is a text"),
        ({"epsilon": "1", "sigma": "2"}, "no 'sigma'"),
        ({"epsilon": "1", "overwrite": "yes"}, "overwrite of a specification is true or false"),
        ({"epsilon": "1", "box": ["2.2"]}, "box of a specification is a text; found"),
        ({"epsilon": "1", "cells": {"h3": 7}}, "cells of a specification is a text, a number"),
        ({"epsilon": "1e999999999"}, "a finite number of at most"),
        ({"epsilon": "1", "outside": "elsewhere"}, "people, drop or count"),
        ({"epsilon": "1", "source": ""}, "source must be non-empty text"),
        ({}, "give epsilon, epsilon and delta, or rho alone; found"),
        ([1], "a specification must be a table of names and values"),
    ],
)
def test_a_document_of_another_shape_is_refused_in_words(wrong, words):
    with pytest.raises(InputError, match=words):
        ReleaseSpec.from_json(wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": 1}, "budget of a specification cannot be a int"),
        ({"method": 7}, "method of a specification cannot be"),
        ({"method": "magic"}, "a method is one of"),
        ({"bounding": OneVote(512)}, "the bounding rule of a release is one of"),
        ({"bounding": "one row"}, "the bounding rule of a release is one of"),
        ({"value": "hours"}, "choose 'one vote'"),
        ({"table": TableSpec("a.csv", person="user"), "bounding": RowIsPerson()}, "only be one of them"),
        ({"overwrite": 1}, "overwrite of a specification cannot be a int"),
    ],
)
def test_a_specification_that_cannot_be_is_refused_when_it_is_made(wrong, words):
    asked = {"table": TABLE, "budget": PureDP(1), "box": PARIS} | wrong
    with pytest.raises(InputError, match=words):
        ReleaseSpec(**asked)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"outside": []}, "people, drop or count"),
        ({"outside": {}}, "people, drop or count"),
        ({"bounding": []}, "found a list"),
        ({"bounding": 3}, "found a int"),
        ({"plane": "1000,800", "box": b"x"}, "cannot be a bytes"),
        ({"plane": "1000,800", "box": (0, 0, 1, 1)}, "cannot be a tuple"),
        ({"prior": "x" * 5_000}, "to take a prior from"),
    ],
)
def test_options_of_odd_types_are_refused_in_words(odd, words):
    with pytest.raises((InputError, FileError), match=words):
        ReleaseSpec.of("a.csv", **{"epsilon": 1, "box": PARIS, **odd})


@pytest.mark.parametrize(
    "budget", [PureDP("1e-10"), PureDP(10**6 + 1), ZCDP("1e-20"), ZCDP(10**12), ApproxDP("9e-10", "0.1")]
)
def test_an_epsilon_of_a_billionth_or_a_billion_is_refused_before_anything_is_read(budget):
    with pytest.raises(InputError, match=r"ask for an ε from 1e-9 to 1e6 \(usual are 0\.001 to 20\)"):
        ReleaseSpec(TABLE, budget, box=PARIS)
    with pytest.raises(InputError, match="ask for an ε from 1e-9 to 1e6"):
        StatisticsSpec(TABLE, budget, "speed", 0, 65)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1" + "0" * 5000, "is not TOML"),
        ("-1" + "0" * 400, "of more than 64 bits"),
        ("0x" + "f" * 100_000, "of more than 64 bits"),
        ("1e400", "must be finite"),
        ("nan", "must be finite"),
    ],
)
@pytest.mark.parametrize("name", ["low", "max_cells_per_person", "quantiles"])
def test_a_number_that_no_machine_holds_is_refused_in_words(name, number, words):
    written = f"[{number}]" if name == "quantiles" else number
    with pytest.raises(InputError, match=words):
        StatisticsSpec.from_toml(f'value = "speed"\n{name} = {written}\n')


@pytest.mark.parametrize("odd", [0.5, "0.5", True, ("x",), [None], [[0.5]], "median"])
def test_quantiles_that_are_no_list_of_ranks_are_refused_in_words(odd):
    with pytest.raises(InputError, match="quantiles are"):
        StatisticsSpec.of("a.csv", epsilon=1, value="speed", low=0, high=65, box=PARIS, quantiles=odd)
