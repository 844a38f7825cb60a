"""Query classes are public data: exact, bounded, and able to say by its text alone whether a query may be one."""

import pytest

from hazemap import codec
from hazemap.errors import InputError
from hazemap.federated.recipes.query_class import (
    KNOWN,
    AnyQueryOverFields,
    FieldType,
    ListedQueries,
    ParameterRange,
    QueryTemplate,
    QueryTemplates,
    StreamField,
    StreamFieldName,
    StreamSchema,
    check_streams,
)
from hazemap.federated.recipes.sql_query import LONGEST_SQL, Parameter, SqlQuery

AGE = StreamFieldName("profile", "age")
PROFILE = StreamSchema.of("profile", age="integer", city="text")
LEAST = ParameterRange("least", FieldType.INTEGER, 10, 90)
CITY = ParameterRange("city", FieldType.TEXT, choices=("Rome", "Oslo"))
TEMPLATE = QueryTemplate("SELECT age FROM profile WHERE age > :least AND city = :city", (LEAST, CITY))


def made(least, city):
    return SqlQuery(TEMPLATE.text, (Parameter("city", city), Parameter("least", least)))


def test_a_template_admits_parameters_within_their_ranges_and_types():
    found = QueryTemplates((TEMPLATE,), (AGE, StreamFieldName("profile", "city")))
    assert found.refusal(made(10, "Rome")) is None
    for wrong in (made(9, "Rome"), made(50.0, "Rome"), made("50", "Rome"), made(50, "Bonn"), made(50, 7)):
        assert found.refusal(wrong)
    assert found.refusal(SqlQuery("SELECT age FROM profile")) == "this query is made from none of the templates"


def test_a_listed_query_is_the_same_text_with_the_same_values_of_the_same_types():
    text = "SELECT age FROM profile WHERE age > :least"
    found = ListedQueries((SqlQuery(text, (Parameter("least", 18),)),), (AGE,))
    assert found.refusal(SqlQuery(text, (Parameter("least", 18),))) is None
    for wrong in (SqlQuery(text, (Parameter("least", 18.0),)), SqlQuery(text + " ", (Parameter("least", 18),))):
        assert found.refusal(wrong) == "this query is not on the list"


def test_classes_and_streams_travel_as_json():
    fields = (AGE, StreamFieldName("profile", "city"))
    for thing in (
        *(PROFILE, QueryTemplates((TEMPLATE,), fields), AnyQueryOverFields(fields)),
        ListedQueries((SqlQuery("SELECT age FROM profile"),), fields),
    ):
        assert codec.loads(codec.dumps(thing), KNOWN) == thing


NO_SELECT = ("", "  ", "DELETE FROM s", "EXPLAIN SELECT 1", "PRAGMA x", "VALUES (1)", "(SELECT 1)")
SEVERAL = ("SELECT 1; SELECT 2", "SELECT 1;", "SELECT 1 -- all", "SELECT /* */ 1", "SELECT 1 /*")
UNSEEN = ("\ufeffSELECT 1", "SELECT 1\0", "SELECT 'e\u0301'", "SELECT '\u202e'", "SELECT '\ud800'")
QUOTED = ('SELECT "a" FROM s', "SELECT [a] FROM s", "SELECT `a` FROM s", "SELECT 'a FROM s", 'SELECT "" FROM s')
JOINED = ("SELECT 1 FROM s NATURAL JOIN t", "SELECT 1 FROM s JOIN t uSiNg(x)")
UNBOUND = ("SELECT ?", "SELECT ?1", "SELECT @a", "SELECT $a", "SELECT :a")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        *((each, ()) for each in NO_SELECT + SEVERAL + UNSEEN + UNBOUND + QUOTED + JOINED),
        ("SELECT 1", (Parameter("a", 1),)),
        ("SELECT :a", (Parameter("a", 1), Parameter("a", 2))),
        ("SELECT " + "1" * LONGEST_SQL, ()),
        ("SELECT 1", [Parameter("a", 1)]),
    ],
)
def test_a_text_that_is_not_one_plain_select_is_refused(text, parameters):
    with pytest.raises(InputError):
        SqlQuery(text, parameters)


def test_quotes_hide_semicolons_and_dashes_but_nothing_else():
    text = "SELECT ';--', '/*', 'it''s', 'natural' FROM s WHERE x = :a"
    assert SqlQuery(text, (Parameter("a", 1),)).named == ("a",)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: StreamSchema("sqlite_master", PROFILE.fields),
        lambda: StreamSchema("json_each", PROFILE.fields),
        lambda: StreamSchema("Profile", PROFILE.fields),
        lambda: StreamSchema("profile", ()),
        lambda: StreamSchema("profile", PROFILE.fields[:1] * 2),
        lambda: StreamSchema.of("profile", age="blob"),
        lambda: StreamField("order", FieldType.INTEGER),
        lambda: StreamField("rowid", FieldType.INTEGER),
        lambda: StreamField("a b", FieldType.INTEGER),
        lambda: StreamFieldName.parse("age"),
        lambda: Parameter("a", True),
        lambda: Parameter("a", float("nan")),
        lambda: Parameter("a", 1 << 63),
        lambda: Parameter("a", "x" * 2_000),
        lambda: Parameter("a", None),
        lambda: ParameterRange("a", FieldType.INTEGER, 5, 1),
        lambda: ParameterRange("a", FieldType.INTEGER, 1),
        lambda: ParameterRange("a", FieldType.INTEGER),
        lambda: ParameterRange("a", FieldType.INTEGER, 1, 5, (3,)),
        lambda: ParameterRange("a", FieldType.REAL, 1, 5),
        lambda: ParameterRange("a", FieldType.TEXT, choices=(1,)),
        lambda: QueryTemplate("SELECT age FROM profile", ()),
        lambda: AnyQueryOverFields(()),
        lambda: AnyQueryOverFields((AGE, AGE)),
        lambda: AnyQueryOverFields((AGE,), ("random",)),
        lambda: ListedQueries((), (AGE,)),
        lambda: check_streams((PROFILE,), AnyQueryOverFields((StreamFieldName("profile", "name"),))),
        lambda: check_streams((PROFILE, PROFILE), AnyQueryOverFields((AGE,))),
    ],
)
def test_what_is_not_exact_or_not_bounded_is_refused_in_words(wrong):
    with pytest.raises(InputError, match=r"\w+ \w+ \w+"):
        wrong()
