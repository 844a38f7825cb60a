"""`hazemap audit`: what it says, what it writes, when it fails."""

import json
import sys

import pytest

from hazemap.lab.audit import planned_trials as plan
from hazemap.lab.audit.planted_faults import PLANTS, planted


@pytest.fixture
def few(monkeypatch):
    """An audit of one order instead of hundreds."""

    def shortest(*_):
        from hazemap.lab.audit.audited_settings import AuditedSetting

        return plan.of_setting(AuditedSetting("flat:4", cells="quadtree:4"), 4)[:1]

    monkeypatch.setattr(plan, "thorough", shortest)
    monkeypatch.setattr(plan, "short", shortest)


def run(*arguments):
    from hazemap.cli.main import main

    return main(["audit", *arguments])


@pytest.mark.slow
def test_an_audit_says_what_it_found_and_fails_where_something_is_broken(few, capsys, tmp_path):
    page = tmp_path / "audit.md"
    assert run("--confidence", "0.999999", "-o", str(page)) == 0
    assert "no lower bound is above what is stated" in capsys.readouterr().out
    assert "## What an audit cannot see" in page.read_text()
    assert run("--planted", "skipped-charge", "--json") == 0
    [found] = json.loads(capsys.readouterr().out)["audits"]
    assert found["planted"] == "skipped-charge" and found["broken"] >= 1
    assert run("--planted", "sniffed-dialect", "-o", str(tmp_path / "audit.html"), "--confidence", "0.999999") == 1
    assert "not found: sniffed-dialect" in capsys.readouterr().err
    assert (tmp_path / "audit.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--planted", "nothing"], "a planted fault is one of: mirrored-noise"),
        (["--trust", "nobody"], "a trust model is one of: curator, secure sum, two servers, one report, local"),
        (["-e", "1", "--rho", "1"], "either ε or ρ"),
        (["-o", "audit.pdf"], "a .md or .html"),
        (["--confidence", "2"], "a confidence lies from 0.5"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_words(arguments, words, capsys):
    assert run(*arguments) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_every_planted_fault_changes_the_product_and_puts_it_back():
    def product() -> dict[tuple[str, str], int]:
        homes = [module for name, module in list(sys.modules.items()) if name.startswith("hazemap.")]
        homes += {id(each): each for home in homes for each in vars(home).values() if isinstance(each, type)}.values()
        return {(str(home), name): id(each) for home in homes for name, each in vars(home).items()}

    for name in PLANTS:
        before = product()
        with planted(name):
            during = product()
        after = product()
        assert any(during[at] != before[at] for at in before), name
        assert all(after[at] == before[at] for at in before), name
