"""One list of rules for two devices: the verdicts of the vectors, and of mutations that both judge."""

import json
import warnings
from collections import Counter

import pytest
from tests.federated.device import verdicts
from tests.federated.device.hostile_bytes import SHARES
from tests.federated.device.test_typescript_device import COMPILED, _built

KEPT = json.loads(verdicts.FILE.read_text())


def test_the_verdicts_of_the_vectors_are_what_the_code_says_today():
    head = json.loads(verdicts.text([]))
    assert {name: KEPT[name] for name in head if name != "cases"} == {
        name: head[name] for name in head if name != "cases"
    }
    for case in KEPT["cases"]:
        found = verdicts.judged(case["kind"], verdicts.content_of(case), case["policy"])
        said = {"verdict": found["verdict"], "rule": verdicts.rule(found), "answer": found.get("answer")}
        assert json.loads(json.dumps(said)) == {name: case[name] for name in said}, (case, found)


def test_every_rule_by_which_a_message_is_refused_has_a_case():
    """But for one: the shipped policy of the vectors lets both carriers answer everything."""
    assert set(verdicts.RULES) - {case["rule"] for case in KEPT["cases"]} == {"carrier"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_devices_say_the_same_of_the_same_hostile_bytes():
    _built()
    other, seen = verdicts.OtherDevice(COMPILED / "test" / "verdicts.js"), Counter()
    try:
        with warnings.catch_warnings(action="ignore"):
            for kind, content, ours, theirs in verdicts.compared(other, seed=7, number=2_500):
                assert not content, (kind, content[:5_000], ours, theirs)
                seen[kind, ours["verdict"]] += 1
    finally:
        other.close()
    assert all(seen[kind, said] > 4 for kind in SHARES for said in ("accept", "malformed")), seen
