"""`hazemap methods`, and what the Tab key completes."""

import os
import subprocess
import sys

from tests.every_method import EVERY

from hazemap.cli.main import method_texts


def test_it_lists_and_describes_methods(hazemap):
    listed = hazemap("methods")
    assert listed.code == 0 and all(name in listed.out for name in EVERY)
    one = hazemap("methods", "htf-published")
    assert "Shaham" in one.out and "threshold" in one.out and "T=3" in one.out
    facts = hazemap("methods", "adaptive", "--json").json
    assert facts["name"] == "auto" and facts["aliases"] == ["adaptive"] and facts["sums_only"]
    assert {each["name"] for each in hazemap("methods", "--json").json["methods"]} == set(EVERY)
    wrong = hazemap("methods", "magic")
    assert wrong.code == 2 and "a method is one of: auto" in wrong.err


def test_a_release_plan_and_comparison_take_parameters(hazemap):
    plan = hazemap(
        "plan",
        "--box=13.2,52.4,13.6,52.6",
        "--people",
        "2000",
        "-e",
        "1",
        "--method",
        "prefix:c0=0.2,rounds=3",
        "--json",
    )
    assert plan.json["method"]["name"] == "prefix:c0=0.2,rounds=3"
    wrong = hazemap("plan", "--box=13.2,52.4,13.6,52.6", "--people", "2000", "-e", "1", "--method", "prefix:c0=2000")
    assert wrong.code == 2 and "c0 is a number from 0.001 to 1000" in wrong.err


def test_the_shell_completes_methods_and_their_parameters():
    assert [text for text, _ in method_texts("pyr")] == ["pyramid", "pyramid-published"]
    assert [text for text, _ in method_texts("pyramid:20,g")] == ["pyramid:20,gamma="]
    assert [text for text, _ in method_texts("adaptive:c")] == ["adaptive:contrast="]
    assert "htf:T=" in [text for text, _ in method_texts("htf:")]
    assert method_texts("nothing:") == []
    asked = {"_HAZEMAP_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "hazemap release --method htf:T=3,h"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['hazemap']; from hazemap.cli.main import run; run()"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "height=" in done.stdout and "T=3" in done.stdout
