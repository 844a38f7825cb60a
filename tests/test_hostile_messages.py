"""What comes from outside: bounded before work is done, of exact types, and refused in words."""

import ast
import json
import random
import sys
import tracemalloc
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from time import thread_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cpu_time import within

from hazemap import codec
from hazemap.algorithms import METHODS, OF_VALUES
from hazemap.cells import Leaves
from hazemap.codec import FILE, MESSAGE, Limits
from hazemap.encoders import Concatenation, CountMinSketch, Counts, HaarWavelet
from hazemap.errors import CodecError, HazemapError, InputError, Refused
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.server_task import ServerTask, parse_task
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import KNOWN, Task, parameters_for
from hazemap.field_types import kinds_of
from hazemap.privacy.budget import PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, OwnMeans, RowIsPerson
from hazemap.values.value_encoding import ValueEncoding
from research import hostile_tasks

GOLDEN = {path.stem: path.read_text() for path in (Path(__file__).parent / "vectors" / "codec").glob("*.json")}
ALL = (*METHODS, *OF_VALUES, *KNOWN)
TREE = Quadtree.world(depth=3)
QUARTERS = Leaves(TREE, TREE.children(TREE.root))
TASK = json.loads(GOLDEN["task"])


def changed(data, path, value):
    """A copy of JSON with another value at a place."""
    found = deepcopy(data)
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return found


def refused(text, limits=MESSAGE):
    """The text is refused, soon, in little memory."""
    with within(0.5), pytest.raises(CodecError) as error:
        codec.loads(text, ALL, limits=limits)
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            codec.loads(text, ALL, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < (64 << 20)
    finally:
        tracemalloc.stop()
    return str(error.value)


def part(data, path):
    """What stands at a place of JSON."""
    for step in path:
        data = data[step]
    return data


COHORT, QUESTION = ("Task", "cohort", "Cohort"), ("Task", "question", "Query", "encoder")

LARGE = {
    "200,000 brackets": "[" * 200_000,
    "200,000 objects": '{"a":' * 200_000,
    "brackets behind a text": '["\\\\\\"",' + "[" * 200_000,
    "brackets behind an escape that two pieces share": '["' + " " * ((1 << 20) - 3) + '\\"",' + "[" * 200_000,
    "a fraction that would fill the memory": '{"fraction": "1e999999999"}',
    "a fraction of a million digits": json.dumps({"fraction": "1" * 1_000_000}),
    "a whole number of a million digits": "1" * 1_000_000,
    "a number of a million digits in an array": '{"array": ["int64", [' + "1" * 1_000_000 + "]]}",
    "millions of empty lists": "[" + "[]," * 4_000_000 + "[]]",
    "half a million empty lists, which are parsed in 0.25 s": "[" + "[]," * 500_000 + "[]]",
    "three billion shards": json.dumps(
        changed(changed(TASK, (*COHORT, "people"), 3_000_000_000), (*COHORT, "shard"), 1)
    ),
    "a world of small hexagons": '{"Hexagons": {"box": {"Box": {"west": -180, "south": -80, "east": 180, '
    '"north": 80}}, "coarsest": 5, "finest": 15}}',
    "polygons that unpack to a gigabyte": '{"Districts": {"labels": ["a", "b"], "levels": {"array": ["int64", [0, 1]]}'
    ', "shapes": "1_000_000_000:"}}',
    "thirty thousand questions in one": json.dumps(
        changed(TASK, QUESTION, {"Stack": {"parts": [part(TASK, QUESTION)] * 30_000, "weights": [1] * 30_000}})
    ),
    "33 MB": " " * (33 << 20) + "1",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_text_that_would_cost_much_is_refused_before_it_does(name):
    refused(LARGE[name])


NEARLY = {
    "a name that comes twice": '{"AtMostRows": {"most": 1, "most": 2, "nowhere": false}}',
    "not a number": '{"PureDP": {"epsilon": NaN}}',
    "infinity": '{"Box": {"west": -Infinity, "south": 0, "east": 1, "north": 1}}',
    "a number beyond all floats": '{"Box": {"west": -1e999, "south": 0, "east": 1, "north": 1}}',
    "half of a pair of surrogates": '{"Weekdays": {"zone": "UTC\\ud800"}}',
    "a bool for an int": '{"AtMostRows": {"most": true, "nowhere": false}}',
    "an int for a bool": '{"AtMostRows": {"most": 1, "nowhere": -1}}',
    "a float for an int": '{"AtMostRows": {"most": 1.0, "nowhere": false}}',
    "a fraction for an int": '{"AtMostRows": {"most": {"fraction": "1001/1000"}, "nowhere": false}}',
    "a float for a fraction": '{"PureDP": {"epsilon": 0.1}}',
    "an int for a fraction": '{"PureDP": {"epsilon": 1}}',
    "a fraction that is not in its lowest terms": '{"PureDP": {"epsilon": {"fraction": "2/20"}}}',
    "a fraction with spaces": '{"PureDP": {"epsilon": {"fraction": " 1/20"}}}',
    "a fraction in other digits": '{"PureDP": {"epsilon": {"fraction": "\u0661"}}}',
    "an int that no float is": '{"Box": {"west": -1, "south": 0, "east": 9007199254740993, "north": 1}}',
    "another type of array": '{"Answer": {"sums": {"array": ["float64", [1.0]]}, "stddev": '
    '{"array": ["float64", [1.0]]}, "kurtosis": 0.0, "people": null}}',
    "a number beyond its array": '{"array": ["int8", [300]]}',
    "true in an array": '{"array": ["int64", [1, true]]}',
    "null in an array": '{"array": ["int64", [1, null]]}',
    "a float in an array of ints": '{"array": ["int64", [1, 1.0]]}',
    "infinity in an array": '{"array": ["float64", [1e999]]}',
    "an int in an array of floats": '{"array": ["float64", [1]]}',
    "a ragged array": '{"array": ["int64", [[1], [2, 3]]]}',
    "a rule for a tree": '{"Sketch": {"tree": {"RowIsPerson": {"nowhere": false}}, "level": 1, "width": 2, "rows": 1, '
    '"bounding": {"RowIsPerson": {"nowhere": false}}, "key": 0}}',
    "a method without cells for a box that is found": '{"FoundBox": {"method": {"Locate": {"bounding": {"RowIsPerson": '
    '{"nowhere": false}}, "coarse": 8, "deeper": 5}}, "share": {"fraction": "1/25"}, "finest": 9}}',
    "an item too many": '{"Value encoding": {"low": 0, "high": 1, "degree": 1, "bins": 0, "weights": [1, 1, 1]}}',
    "what comes again, but never came": '{"Leaves": {"tree": {"again": 0}, "cells": {"array": ["uint64", [1]]}}}',
    "the value of another list": '{"Mode": true}',
    "UTF-16": '{"AtMostRows": {"most": 1, "nowhere": false}}'.encode("utf-16"),
    "a mark of byte order": b'\xef\xbb\xbf{"AtMostRows": {"most": 1, "nowhere": false}}',
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_a_message_is_none(name):
    refused(NEARLY[name], FILE)
    if isinstance(NEARLY[name], str) and "NaN" not in NEARLY[name] and "twice" not in name:
        with pytest.raises(CodecError):
            codec.from_json(json.loads(NEARLY[name]), ALL)


def test_what_stands_in_texts_is_not_counted_as_nesting():
    text = '[{\\"' * 1_000 + "\\\\"
    assert codec.parsed(f'["{text}"]', Limits(1 << 20, 10, 0, depth=1)) == ['[{"' * 1_000 + "\\"]


@given(st.recursive(st.text(alphabet='ab[]{}\\",\u00e9', max_size=9) | st.integers(), st.lists, max_leaves=20))
@settings(max_examples=100, deadline=None)
def test_depth_is_that_of_the_parser_however_texts_are_escaped(data):
    def depth(value):
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    text = json.dumps([data], ensure_ascii=False)
    assert codec.parsed(text, Limits(1 << 20, 1 << 20, 0, depth(data) + 1)) == [data]
    with pytest.raises(CodecError, match="nested"):
        codec.parsed(text, Limits(1 << 20, 1 << 20, 0, depth(data)))


RULES = (AtMostRows, AtMostCells, OneVote, OwnMeans)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("number", [Fraction(1001, 1000), Fraction(2), True, 2.0, "2", np.int64(2), None])
def test_a_rule_is_made_of_whole_numbers_alone(rule, number):
    with pytest.raises(InputError, match="whole number"):
        rule(number)


@pytest.mark.parametrize("outside", [-1, 1, 0, None, "no", True, np.bool_(True), "people"])
def test_what_becomes_of_rows_outside_is_one_of_three_and_no_number(outside):
    for made in (lambda: AtMostCells(100, outside=outside), lambda: RowIsPerson(outside=outside)):
        with pytest.raises(InputError, match="is Outside"):
            made()


def test_a_stack_of_a_thousand_and_one_thousandths_of_a_row_does_not_understate_its_sensitivity():
    """Fraction(1001, 1000) rows kept two of them, and 1000 times it was the 1001 that a cache knew."""
    with pytest.raises(InputError):
        Concatenation((Counts(QUARTERS, AtMostRows(Fraction(1001, 1000))),), (1000,))
    with pytest.raises(InputError):
        Concatenation((Counts(QUARTERS, AtMostRows(1)),), (Fraction(1000),))
    assert DistributedNoise(Fraction(20), 800).bits(1000, 1001, 4) > 0
    for lookalike in (Fraction(1001), 1001.0, True):
        with pytest.raises(InputError):
            DistributedNoise(Fraction(20), 800).bits(1000, lookalike, 4)


def test_every_cache_of_what_comes_from_outside_tells_types_apart():
    """Fraction(2) and True are equal to ints: as keys of a cache, typed plain values are not taken for each other."""
    plain = {"str", "bytes", "int", "int | None", "bool", "Fraction", "Mode", "Policy"}
    # of numbers whose exact types are checked, or of our own
    checked = {"Asymmetric", "NttField", "BitVector", "Poplar1Parameter"}
    caches = 0
    package = Path(codec.__file__).parent.parent
    for folder in ("codec", "federated/device", "federated/protocols", "vdaf", "federated/trust"):
        files = [file for file in (package / folder).rglob("*.py") if file.stem != "compiled_loops"]  # keys: our loops
        for node in (n for file in files for n in ast.walk(ast.parse(file.read_text()))):
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
            keys = node.args.args if isinstance(node, ast.FunctionDef) else []
            if any(mark.startswith(("cache", "lru_cache")) and "property" not in mark for mark in marks):
                if [key.arg for key in keys] in ([], ["cls"]):  # one key only
                    continue
                caches += 1
                assert "typed=True" in marks[0], node.name
                assert {ast.unparse(key.annotation) for key in keys} <= plain | checked, node.name
    assert caches >= 6


@pytest.mark.parametrize(
    "thing", [Quadtree, Hexagons, CountMinSketch, HaarWavelet, Query, Answer, Cohort, Task, ValueEncoding]
)
def test_every_field_of_a_class_has_a_kind(thing):
    assert kinds_of(thing)


def test_the_classes_themselves_refuse_other_types():
    box = Box(0, 0, 1, 1)
    for made in (
        lambda: Quadtree(0, 0, 1, 3.0),
        lambda: Quadtree(Fraction(0), 0, 1, 3),
        lambda: Hexagons(box, 5, True),
        lambda: CountMinSketch(TREE, 1, width=Fraction(4), rows=1),
        lambda: HaarWavelet(TREE, True),
        lambda: Query(Counts(QUARTERS), Fraction(1, 2), cohort=1.0),
        lambda: Answer(np.array([1]), np.array([1.0]), people=True),
        lambda: Cohort(100.0, 100),
        lambda: Cohort(100, 100, dropout=0.1),
        lambda: Counts(QUARTERS, "one row"),
        lambda: PureDP(True),
        lambda: PureDP("1e999999999"),
        lambda: Box(np.array(0.0), 0, 1, 1),
    ):
        with pytest.raises(InputError):
            made()


POISON = [
    *(None, True, False, 0, 1, -1, 2, 1 << 63, 1 << 64, -(1 << 63), 10**30, 0.5, 1.0, -0.0, 1e308, "", "0", "again"),
    *("\ud800", "a" * 3_000, [], [[]], [0], {}, {"again": 0}, {"fraction": "1/3"}, {"fraction": "1001/1000"}),
    *(
        {"array": ["int64", [1]]},
        {"array": ["uint64", [2, 1]]},
        {"fraction": "9" * 600},
        {"fraction": "1/" + "9" * 600},
    ),
    *(
        3_000_000_000,
        4096,
        65_536,
        1e-320,
        {"RowIsPerson": {"nowhere": True}},
        {"OneVote": {"nowhere": False, "scale": 3}},
    ),
]


def places(data, path=()):
    """Every place of a JSON value."""
    yield path
    for step, inner in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(inner, (*path, step))


def mutated(rng, data):
    """The data with a few places poisoned, taken away, doubled, or swapped for another of its parts."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        every = [path for path in places(data) if path]
        if not every:
            return data
        *above, last = path = rng.choice(every)
        parent = data
        for step in above:
            parent = parent[step]
        way = rng.randrange(5)
        if way == 0:
            del parent[last]
        elif way == 1 and isinstance(parent, list):
            parent.insert(last, deepcopy(parent[last]))
        elif way == 2:
            source = data
            for step in rng.choice(every):
                source = source[step]
            data = changed(data, path, deepcopy(source))
        else:
            parent[last] = deepcopy(rng.choice(POISON))
    return data


def tried(rng, name, floors):
    """Read a mutated golden vector as a device would; what can be read writes itself as it was read."""
    data = mutated(rng, json.loads(GOLDEN[name]))
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    try:
        found = codec.loads(text, ALL, limits=MESSAGE)
    except CodecError:
        return False
    assert codec.dumps(found) == text, "what was read is what was written, digit by digit"
    if isinstance(found, Task):
        with suppress(InputError, Refused):
            terms = parameters_for(found, bytes(32), min(found.cohort.shard, 1_000), bytes(32), bytes(32))
            floors.refusal(found, terms)
    return True


def fuzzed(examples, seed):
    rng, longest, read = random.Random(seed), 0.0, 0
    names = sorted(GOLDEN)
    for _ in range(examples):
        start = thread_time()
        try:
            read += tried(rng, rng.choice([*names, *["task"] * 10]), Policy(people=1, survivors=1))
        except HazemapError as error:
            raise AssertionError("only CodecError comes out") from error
        longest = max(longest, thread_time() - start)
    return longest, read


def test_mutated_messages_are_refused_or_understood_and_nothing_else_happens():
    longest, read = fuzzed(1_500, 1)
    assert longest < 2.0
    assert read > 30, "some mutations are messages of their own, or the test says little"


@pytest.mark.slow
def test_twenty_thousand_mutated_messages_are_refused_or_understood():
    longest, _ = fuzzed(20_000, 2)
    assert longest < 2.0


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_bytes_are_work_or_refused(content):
    for read, kind in ((ServerTask.from_json, ServerTask), (lambda data: parse_task(data.decode("latin-1")), Task)):
        with suppress(CodecError):
            assert isinstance(read(content), kind)


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_whatever_a_task_asks_it_is_refused_or_answered_soon_and_alike_inside_the_box_and_outside(number):
    """Tasks made up by kind: no other error, 64 MB and 1 s of CPU at most, the same answer for two people.

    The script itself judges 0.1 s, on a machine that does nothing else. Recipes, whose query may run, have 3 s.
    """
    found = hostile_tasks.fuzzed(number, seed=number, most=1.0)
    assert not found.faults, "\n".join(found.faults[:5])
    assert found.kinds["answered"] > number / 50 and found.kinds["no task"] > number / 50, found.kinds
    assert found.kinds["answered a recipe"] > number / 200, found.kinds


def test_the_fuzzer_sees_an_error_that_only_somebody_inside_the_box_has(monkeypatch):
    """A twin that must fail: an IndexError for whoever has rows inside the box, as an older encoder had it."""
    honest = hostile_tasks.contribution

    def careless(encoder, rows):
        if rows().columns["lon"][0] == 13.4:
            raise IndexError
        return honest(encoder, rows)

    monkeypatch.setattr(hostile_tasks, "contribution", careless)
    assert hostile_tasks.fuzzed(60, seed=3).faults


def test_the_fuzzer_ends_a_message_that_hangs_and_says_which(monkeypatch):
    """A modulus was looked for without end where a task asked for 2^63 numbers: the run stood still."""

    def endless(_):
        while True:
            with suppress(Exception):
                sum(range(1_000))

    monkeypatch.setattr(hostile_tasks, "HANGS", 0.2)
    monkeypatch.setattr(hostile_tasks, "understood", endless)
    found = hostile_tasks.Findings()
    found.see(json.dumps(TASK), traced=False)
    assert "more than 0.2 s of CPU" in found.faults[0] and '"Task"' in found.faults[0]


def test_a_task_beyond_a_million_numbers_is_refused_and_a_release_of_them_is_read():
    numbers = ",".join(["1"] * (1 << 21))
    text = '{"array":["int64",[' + numbers + "]]}"
    refused(text)
    assert codec.loads(text).sum() == 1 << 21
    assert sys.getrecursionlimit() >= 1_000
