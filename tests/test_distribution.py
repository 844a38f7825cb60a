"""What goes along with a release of hazemap itself: man pages, the bill of materials and the changelog."""

import datetime
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from hazemap.cli.main import app

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "distribution"))

import changelog  # noqa: E402
import man_pages  # noqa: E402
import software_bill  # noqa: E402


def test_all_programs_of_the_web_are_pinned_by_one_lock_file_that_names_digests_and_no_addresses():
    web = ROOT / "web"
    [lock] = [*web.glob("package-lock.json"), *web.glob("*/package-lock.json")]
    assert "://" not in lock.read_text()
    packages = json.loads(lock.read_text())["packages"]
    programs = {name for name, package in packages.items() if name and not name.startswith("node_modules/")}
    assert programs == {path.parent.relative_to(web).as_posix() for path in web.glob("*/package.json")}
    pinned = [each for name, each in packages.items() if name.startswith("node_modules/") and not each.get("link")]
    assert all(each["integrity"].startswith("sha512-") and "resolved" not in each for each in pinned)


@pytest.fixture(scope="module")
def written():
    return man_pages.pages()


def test_every_command_has_a_page_with_its_options(written):
    commands = man_pages.commands(get_command(app), "hazemap")
    assert written.keys() == {"hazemap.1", *(f"{name.replace(' ', '-')}.1" for name in commands)}
    for name, command in commands.items():
        page = written[f"{name.replace(' ', '-')}.1"]
        assert page.startswith('.TH "HAZEMAP-')
        for parameter in command.params:
            if parameter.param_type_name != "argument" and not parameter.hidden:
                assert all(each.replace("-", "\\-") in page for each in parameter.opts), (name, parameter.opts)


def test_exit_codes_are_those_of_the_command_line():
    from hazemap import errors
    from hazemap.cli import main

    raised = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert {int(code) for code, _ in man_pages.EXIT_CODES} == raised | {0, 1, 2, main.INTERRUPTED}


def test_no_word_of_a_page_is_a_command_of_roff():
    assert man_pages.roff(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert man_pages.roff("a\n.so b\\c") == "a .so b\\ec"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
def test_groff_has_nothing_to_say_about_any_page(written, tmp_path):
    for name, text in written.items():
        (tmp_path / name).write_text(text)
        words = ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", name]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert done.stdout


def test_the_bill_names_what_hazemap_needs_and_nothing_of_its_tests():
    bill = software_bill.bill()
    assert bill == software_bill.bill() and json.loads(json.dumps(bill)) == bill
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    parts = {each["bom-ref"]: each for each in bill["components"]}
    assert len(parts) == len(bill["components"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each["name"]: each for each in parts.values()}
    for each in project["dependencies"]:
        assert named[software_bill.plain(each)]["scope"] == "required"
    for each in project["optional-dependencies"]["server"]:
        assert software_bill.plain(each) in named
    assert named["uvicorn"]["scope"] == "optional"
    assert not {"pytest", "mypy", "sphinx", "hypothesis"} & named.keys()
    assert all(re.fullmatch(r"pkg:(pypi|npm)/\S+@\S+", each["purl"]) for each in parts.values())


def test_every_edge_of_the_bill_ends_at_a_component():
    bill = software_bill.bill()
    known = {each["bom-ref"] for each in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    needed = {end for edge in bill["dependencies"] for end in edge["dependsOn"]}
    assert needed <= known and {edge["ref"] for edge in bill["dependencies"]} <= known
    python = {each["bom-ref"] for each in bill["components"] if each["purl"].startswith("pkg:pypi")}
    assert {edge["ref"] for edge in bill["dependencies"]} == python | {bill["metadata"]["component"]["bom-ref"]}


def test_pins_that_are_missing_stop_the_bill(monkeypatch):
    monkeypatch.setattr(software_bill, "pinned", lambda _: ({}, {}))
    with pytest.raises(SystemExit, match="does not pin"):
        software_bill.bill()


def test_what_the_pins_say_of_who_needs_whom():
    text = "a==1\n    # via hazemap (pyproject.toml)\nb-c==2\n    # via\n    #   a\n    #   d\nd==3\n    # via a\n"
    versions, needs = software_bill.pinned(text)
    assert versions == {"a": "1", "b-c": "2", "d": "3"}
    assert software_bill.reached(["a"], needs) == {"a", "b-c", "d"}
    assert software_bill.reached(["b_c".replace("_", "-")], needs) == {"b-c"}


CHANGES = """# Changelog

Text.

## [Unreleased]

A line.

### Added

- One.

## [0.1.0] - 2026-11-20

### Added

- Zero.
"""


def test_fragments_go_to_the_ends_of_their_headings(tmp_path):
    (tmp_path / "README.md").write_text("no fragment")
    (tmp_path / "two.added.md").write_text("Two\nlines.\n")
    (tmp_path / "b-3.fixed.md").write_text("Three.\n")
    text = changelog.assembled(CHANGES, changelog.fragments(tmp_path))
    new = "A line.\n\n### Added\n\n- One.\n- Two\n  lines.\n\n### Fixed\n\n- Three.\n\n## [0.1.0]"
    assert text == CHANGES.replace("A line.\n\n### Added\n\n- One.\n\n## [0.1.0]", new)
    assert changelog.assembled(text, changelog.fragments(tmp_path.parent)) == text, "no fragments, no change"
    version = changelog.released(text, "0.2.0", datetime.date(2026, 12, 1))
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\nA line." in version
    for wrong in ("0.1.0", "v2", "1.0"):
        with pytest.raises(SystemExit, match="choose another"):
            changelog.released(text, wrong, datetime.date(2026, 12, 1))
    assert "## [Unreleased]\n\n### Fixed\n\n- Three.\n\n## [0.2.0]" in changelog.assembled(
        version, changelog.fragments(tmp_path) | {"added": []}
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("two.md", "a"),
        ("two.broken.md", "a"),
        ("Two.added.md", "a"),
        ("a.added.md", ""),
        ("a.added.md", "a " * 61),
        ("a.added.md", "a\n### Fixed"),
    ],
)
def test_fragments_that_break_the_rules_are_refused_by_name(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit, match=re.escape(name)):
        changelog.fragments(tmp_path)
