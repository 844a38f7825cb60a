"""docs/reference/cli has every command and option in the words of `--help`; docs/reference/cli.md every exit code."""

import re
import sys
from pathlib import Path

import pytest

from hazemap import errors
from hazemap.cli.main import main
from hazemap.specs.spec_fields import SCHEMAS

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from cli_reference import COMMANDS, FILES, FOLDER, page_of, part, refreshed, schema  # noqa: E402

PAGE = DOCS / "reference" / "cli.md"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_is_as_the_code_says(path):
    assert path.read_text() == refreshed(path.read_text()), "run python docs/cli_reference.py"


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_as_the_code_says(name):
    assert (DOCS / "reference" / f"{name}.schema.json").read_text() == schema(name), "run python docs/cli_reference.py"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_command_prints_the_schema_of_its_specification(name, capsys):
    assert main([{"statistics": "stats"}.get(name, name), "--schema"]) == 0
    assert capsys.readouterr().out == schema(name)


def test_every_command_has_its_section_help_options_and_an_example_on_its_page():
    for name, command in COMMANDS.items():
        text = page_of(name).read_text()
        found = re.search(rf"^##? `{name}`$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, f"{page_of(name).name} has no section about `{name}`"
        assert f"<!-- help: {name} -->" in found[1]
        if not hasattr(command, "commands"):
            assert f"<!-- options: {name} -->" in found[1]
            assert f"$ {name}" in found[1]


def test_no_page_and_no_section_is_about_a_command_that_is_not_there():
    assert {path.stem for path in FOLDER.glob("*.md")} == {page_of(name).stem for name in COMMANDS}
    written = [each for path in FOLDER.glob("*.md") for each in re.findall(r"^##? `(.*)`$", path.read_text(), re.M)]
    assert sorted(written) == sorted(COMMANDS)


def test_the_list_of_commands_is_whole():
    assert set(re.findall(r"\(cli/([a-z-]+)\.md\)", PAGE.read_text())) == {path.stem for path in FOLDER.glob("*.md")}


def test_an_option_is_a_row_with_its_default_and_whether_it_is_needed():
    rows = part("options", "hazemap campaign start").splitlines()
    assert any(row.startswith("| `--mode` |") and row.endswith(" (default: malicious) |") for row in rows)
    assert any(row.startswith("| `--name` |") and row.endswith("(required) |") for row in rows)


def test_every_exit_code_is_explained():
    written = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)}
    raised = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert written == raised | {0, 1, 2, 130}
