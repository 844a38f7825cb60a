"""Parameters after a method's name: typed, bounded, refused in words, and in the specification and the statement."""

from dataclasses import fields
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.every_method import EVERY

from hazemap import ZCDP, Box, MemoryTable, PureDP, Unrecorded, run
from hazemap.algorithms import METHODS
from hazemap.algorithms.built_in_methods import ALIASES, canonical
from hazemap.algorithms.method_descriptions import described
from hazemap.algorithms.named_methods import CellKind, Setting, split
from hazemap.algorithms.plug_ins import plug_in_type
from hazemap.algorithms.published.htf import HTF
from hazemap.codec import dumps, loads
from hazemap.errors import InputError
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.specs.method_from_name import among_devices, method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator

BOX, ROW, ONE = Box(13.2, 52.4, 13.6, 52.6), AtMostRows(1), PureDP(1)
SETTINGS = [(name, each) for name, method in EVERY.items() for each in method.settings]


def made(text, box=BOX, budget=ONE):
    return method_from_name(text, QuadtreeCells(8), box, ROW, budget)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("htf:threshold=50,T=3,height=12", {"stop_at": 50, "turns": 3, "height": 12}),
        ("htf:threshold=eq31", {"stop_at": None}),
        ("htf:T=all", {"turns": None}),
        ("prefix:c0=0.2", {"c0": Fraction(1, 5)}),
        ("prefix:c0=1/3", {"c0": Fraction(1, 3)}),
        ("pyramid:w=20,gamma=0.7", {"kept": 20, "gamma": Fraction(7, 10)}),
        ("pyramid:20,gamma=0.7", {"kept": 20, "gamma": Fraction(7, 10)}),
        ("auto:shares=0.02/0.1,fullness=20/6", {"fullness": (20, 6), "deciding": (Fraction(1, 50), Fraction(1, 10))}),
        ("adaptive:contrast=none", {"contrast": None}),
        ("geometric:5,grain=8", {"level": 5, "grain": 8}),
        ("adaptive-grid:people=1000", {"people": 1000}),
    ],
)
def test_a_text_sets_the_fields_of_its_method(text, wanted):
    assert {name: getattr(made(text), name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("htf:T=x", "of the method htf, T is a whole number from 0 to 16, or 'all'; found 'x'"),
        ("htf:T=17", "T is a whole number from 0 to 16, or 'all'; found '17'"),
        ("htf:T=-1", "found '-1'"),
        ("htf:T=1e1", "found '1e1'"),
        ("htf:T=٣", "T is a whole number"),
        ("htf:T=03", "T is a whole number"),
        ("htf:height=0", "height is a whole number from 1 to 40"),
        ("htf:T=1,T=2", "told T twice"),
        ("pyramid:20,w=20", "told w twice"),
        ("htf:depth=3", r"has no parameter 'depth': it has threshold, T, height"),
        ("total:x=1", "the method total has no parameter 'x': it has none"),
        ("prefix:c0=0", "c0 is a number from 0.001 to 1000"),
        ("prefix:c0=1/0", "c0 is a number"),
        ("prefix:c0=nan", "c0 is a number"),
        ("prefix:c0=" + "9" * 400, "c0 is a number"),
        ("pyramid:gamma=0.4", "gamma is a number from 0.5 to 0.99"),
        ("auto:shares=" + "/".join(["0.01"] * 99), "shares is numbers"),
        ("auto:shares=0.5/0.5,fullness=1/1", "add up to less than 1"),
        ("auto:fullness=5", "one fullness for each"),
        ("htf:T=", "NAME=VALUE"),
        ("htf:T=3,,", "NAME=VALUE"),
        ("htf:3", "the method htf is spelled htf, and takes threshold=, T=, .* behind a colon; found 'htf:3'"),
        ("htf:", "the method htf is spelled htf"),
        ("flat:-1", "the method flat is spelled flat or flat:LEVEL; found 'flat:-1'"),
        ("HTF", "found 'HTF'. Did you mean htf?"),
        ("adaptive-gird:number=0.1", "Did you mean adaptive-grid?"),
        ("HTF:T=3", "a method is one of"),
    ],
)
def test_what_is_not_allowed_is_refused_in_words(text, words):
    with pytest.raises(InputError, match=words):
        made(text)


@pytest.mark.parametrize(("name", "setting"), SETTINGS, ids=[f"{name}-{each.name}" for name, each in SETTINGS])
def test_every_parameter_names_a_field_and_its_default_and_bounds_are_within_it(name, setting):
    method = EVERY[name]
    if not (method.priced and setting.name in ("number", "lines")):
        assert setting.field in {each.name for each in fields(method.types[0])}
    default = next(each.default for each in described(method).parameters if each.name == setting.name)
    for text in filter(None, (default, setting.text((setting.least,) if setting.many else setting.least))):
        setting.value(text)  # is understood
    for beyond in (setting.least - 1, setting.most + 1):
        with pytest.raises(InputError):
            setting.value(setting.text((beyond,) if setting.many else beyond))
    if default and CellKind.SQUARES in method.cells:
        level = ":5," if method.levelled else ":"
        usual, told = made(name + level[:-1]), made(f"{name}{level}{setting.name}={default}")
        assert usual == told


@pytest.mark.parametrize("name", EVERY)
def test_every_method_is_described_with_its_paper(name):
    method = described(EVERY[name])
    assert method.what and method.paper and method.class_
    if CellKind.SQUARES in EVERY[name].cells and not EVERY[name].levelled:
        made(method.example)


def test_the_default_method_has_one_name_and_the_other_is_written_nowhere():
    assert ALIASES == {"adaptive": "auto"} and not ALIASES.keys() & EVERY.keys()
    spec = ReleaseSpec.of("t.csv", epsilon=1, box=BOX, method="adaptive:first=64")
    assert spec.method == "auto:first=64" == canonical("adaptive:first=64")
    assert 'method = "auto:first=64"' in spec.to_toml() and ReleaseSpec.from_toml(spec.to_toml()) == spec
    assert "the method: auto:first=64, with" in str(spec.statement("t").to_json())
    assert made("auto") == made("adaptive")


def test_htf_published_spends_the_papers_amounts_whatever_the_budget():
    for epsilon in ("0.1", "0.5", "3"):
        method = made("htf-published", budget=PureDP(epsilon))
        total = Fraction(epsilon)
        assert (method.share_of_number * total, method.share_a_level * total) == (Fraction(1, 10**4), Fraction(1, 1000))
        assert (method.stop_at, method.turns, method.least_pixels) == (100, 3, 5)
        assert method == HTF.published(method.tree, total, ROW)
    half = made("htf-published:lines=0.0005,threshold=eq31")
    assert half.share_a_level == Fraction(1, 2000) and half.stop_at is None
    found = method_from_name("htf-published", QuadtreeCells(None), None, ROW, PureDP(1))
    assert found.method.share_of_number * (1 - found.share) == Fraction(1, 10**4)
    for money in (ZCDP(1), None):
        with pytest.raises(InputError, match="spends amounts of pure ε"):
            made("htf-published", budget=money)
    with pytest.raises(InputError, match="must leave a part"):
        made("htf-published", budget=PureDP("0.0001"))


def test_a_height_that_is_given_is_public_and_no_number_is_bought():
    chance = np.random.default_rng(1)
    table = MemoryTable(
        np.arange(3000), {"lon": chance.normal(13.4, 0.05, 3000), "lat": chance.normal(52.5, 0.03, 3000)}
    )
    told, eq31 = made("htf:T=0,height=6"), made("htf:height=6,T=0,threshold=eq31")
    assert Learned.PEOPLE not in told.disclosure.learned and Learned.PEOPLE in eq31.disclosure.learned
    result = run(told, Curator(table, Stream.fixed(b"height")), PureDP(1), Unrecorded())
    assert result.value.cells.size <= 2**6 + 1
    assert result.transcript[0].question.share != told.share_of_number
    with pytest.raises(InputError, match="height of at least 1"):
        HTF(told.tree, height=0)


def test_optional_parameters_are_left_out_of_texts_where_they_are_none():
    for text in ("htf", "pyramid", "pyramid-published"):
        assert '"height"' not in dumps(made(text)) and '"gamma"' not in dumps(made(text))
    for text in ("htf:height=9", "pyramid:gamma=0.7", "pyramid-published:gamma=0.8"):
        assert loads(dumps(made(text)), METHODS, plug_ins=plug_in_type) == made(text)


def test_a_pyramid_spends_what_there_is_with_any_gamma():
    for text in ("pyramid-published:gamma=0.5", "pyramid-published:gamma=0.99", "pyramid-published"):
        assert sum(made(text).shares) == 1
    shares = made("pyramid-published:gamma=0.7").shares
    assert all(abs(float(b / a) - 0.7) < 1e-6 for a, b in pairwise(shares))


def test_parameters_are_kept_where_devices_answer():
    ours = among_devices(made("auto"), 5_000)
    text = "auto:shares=0.04/0.08/0.16,fullness=9/9/9"
    told = among_devices(made(text), 5_000, text=text)
    assert (told.fullness, told.deciding, told.most_numbers) == ((9, 9, 9), ours.deciding, 5_000)
    spec = ReleaseSpec.of(epsilon=1, box=BOX, method="auto:first=100", outside="drop", dataset="x")
    campaign = Campaign.of(spec, most_numbers=20_000, name="a", purpose="b", cohort=Cohort(500, 500))
    assert campaign.algorithm.first_cells == 100


def test_settings_of_plug_ins_are_checked():
    with pytest.raises(InputError, match="bounds of the parameter"):
        Setting("a", "a", "what", 2, 1)
    with pytest.raises(InputError, match="is a word"):
        Setting("a=b", "a", "what", 1, 2)
    assert split("20") == ("20", []) and split("") == ("", [])
