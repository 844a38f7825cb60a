"""Documentation that cannot rot: what is public is explained, what is shown runs, what is linked is there."""

import ast
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import hazemap

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "distribution"))

import changelog  # noqa: E402

PACKAGE = ROOT / "src" / "hazemap"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]

FENCE = re.compile(r"(?P<mark><!-- runs -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
INCLUDED = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)
"""A fenced block, perhaps marked as one that runs; file and anchor of a link; a heading; a page in another one."""

NUMBER = r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?"
LEADING = rf"({NUMBER}) [^()]*\({NUMBER} % interval ({NUMBER}) … ({NUMBER})\)"
"""A number that leads, and its interval."""


class Block(NamedTuple):
    """The text of a fenced block, and the line it begins at."""

    text: str
    line: int


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, kind: str, marked: bool = False) -> list[Block]:
    text = page.read_text()
    return [
        Block(found["text"], text[: found.start("text")].count("\n") + 1)
        for found in FENCE.finditer(text)
        if found["kind"] == kind and (found["mark"] or not marked)
    ]


RUNNABLE = [page for page in PAGES if blocks(page, "python", marked=True)]
WITH_COMMANDS = [page for page in PAGES if blocks(page, "console")]


def unexplained(tree: ast.Module) -> list[str]:
    """Public modules, classes, functions and methods without a docstring; what is inside a function is private."""
    found = [] if ast.get_docstring(tree) else ["the module"]
    todo: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            name = prefix + node.name
            if not ast.get_docstring(node):
                found.append(name)
            if isinstance(node, ast.ClassDef):
                todo += [(f"{name}.", inner) for inner in node.body]
    return found


def test_everything_public_is_explained():
    assert not {str(path): found for path in MODULES if (found := unexplained(ast.parse(path.read_text())))}


def test_what_is_not_explained_is_found():
    source = '"""A module."""\nclass Cell:\n    """One."""\n    def area(self): ...\n    def _side(self): ...\n'
    assert unexplained(ast.parse(source)) == ["Cell.area"]


def test_every_public_name_is_on_the_page_of_the_interface():
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    assert not [name for name in hazemap.__all__ if not re.search(rf"\b{name}\b", page)]


def test_every_part_of_the_package_is_on_the_page_of_the_design():
    page = (ROOT / "docs" / "concepts" / "design.md").read_text()
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES} - {"__init__"}
    assert not [part for part in sorted(parts) if not re.search(rf"`{part}[`.]", page)]


def test_the_changelog_knows_the_version():
    assert f"\n## [{hazemap.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_fragments_of_the_changelog_become_a_part_of_it():
    found = changelog.fragments(ROOT / "changelog.d")
    text = changelog.assembled((ROOT / "CHANGELOG.md").read_text(), found)
    assert all(piece.replace("\n", "\n  ") in text for pieces in found.values() for piece in pieces)
    names = [name for pieces in found.values() for piece in pieces for name, _ in LINK.findall(piece)]
    assert not [name for name in names if not (ROOT / name).exists()]


def test_the_unreleased_changes_are_short_enough_to_read():
    text = (ROOT / "CHANGELOG.md").read_text()
    unreleased = text[text.index("## [Unreleased]") : text.index(f"## [{hazemap.__version__}]")]
    assert len(unreleased.split()) <= 1_500
    assert {"Added", "Changed", "Removed", "Fixed"} >= set(re.findall(r"^### (.*)$", unreleased, re.MULTILINE))


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link may name after its #: the headings of a page and of those in it, as GitHub and MyST spell them."""
    inner = [anchors(page.parent / other) for other in INCLUDED.findall(page.read_text())]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(prose(page))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}.union(*inner)


def broken(page: Path) -> list[str]:
    """The links of a page to files and headings that are not there."""
    found = []
    for name, anchor in LINK.findall(prose(page)):
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{name}#{anchor}")
    return found


def test_links_lead_somewhere():
    assert not {str(page): found for page in PAGES if (found := broken(page))}


def test_a_link_to_nowhere_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# A title: *this*\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-title-this) [b](other.md#that) [c](none.md) [d](#here)\n\n## Here\n")
    assert broken(page) == ["other.md#that", "none.md#"]


def test_every_page_is_in_the_contents_or_in_another_page():
    docs = ROOT / "docs"
    listed = {docs / "index.md", *docs.glob("decisions/*.md")}
    for page in PAGES:
        for tree in re.findall(r"^```\{toctree\}$(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            listed |= {page.parent / f"{line}.md" for line in tree.split() if not line.startswith(":")}
        listed |= {(page.parent / other).resolve() for other in INCLUDED.findall(page.read_text())}
    assert {page for page in PAGES if docs in page.parents} <= {page.resolve() for page in listed}


def test_every_error_is_on_the_page_of_the_interface_with_its_exit_code():
    from hazemap import errors

    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.HazemapError):
            kind = "" if error is errors.HazemapError else f" `{error.__base__.__name__}`"
            assert f"| `{name}` |{kind} | {error.exit_code} |" in page
    assert "`HazemapWarning`" in page


@pytest.fixture
def desk(tmp_path, monkeypatch, home, points):
    """A folder with two tables of people who do not exist, and a ledger of its own."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"user": points["person"], "lon": points["lon"], "lat": points["lat"]}
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    chance = np.random.default_rng(1)
    hour = chance.integers(0, 24, 60_000)
    columns = {
        "user": chance.integers(0, 5_000, 60_000),
        "lon": chance.normal(13.40, 0.03, 60_000),
        "lat": chance.normal(52.50, 0.02, 60_000),
        "ts": pa.array(1_700_000_000_000_000 + hour * 3_600_000_000, pa.timestamp("us")),
        "speed_kmh": chance.normal(30 - 8 * (hour == 8), 6),
    }
    pq.write_table(pa.table(columns), tmp_path / "rides.parquet")
    monkeypatch.chdir(tmp_path)
    return home


@pytest.mark.slow
@pytest.mark.usefixtures("looks")
def test_the_statistics_that_pages_show_first_tell_numbers(desk, capsys):
    """Of 5,000 people with 60,000 rides: no look stops them, and at least one place in ten is told of."""
    from hazemap.cli.main import main

    for page in ("README.md", "docs/how-to/values.md"):
        text = (ROOT / page).read_text().replace("\\\n", " ")
        [order] = re.findall(r"^\$ hazemap (stats .*-o speed.parquet)$", text, re.MULTILINE)
        Path("speed.parquet").unlink(missing_ok=True)
        assert main(shlex.split(order)) == 0
        told, places = re.search(r"is published for (\d+) of (\d+)", capsys.readouterr().out).groups()
        assert int(told) >= int(places) / 10
        for asked in re.findall(r"^\$ hazemap (ask speed.parquet .*)$", text, re.MULTILINE):
            assert main(shlex.split(asked)) == 0
        assert "95 % interval" in capsys.readouterr().out


def agrees(shown: str, said: str, exact: bool = False) -> bool:
    """Whether a line of a page (… is anything) is what a run with fresh noise says.

    Numbers with a standard error may be eight of both errors apart, others double or within ten, unless they are exact.
    One truth of twenty lies outside its interval, and the demo says so.
    """
    said = said.replace(", below 0 by noise alone,", "").rstrip().removesuffix("(outside)")
    shown, said = (" ".join(line.split()) for line in (shown, said))
    pieces = re.split(rf"(…|{NUMBER})", shown)
    as_said = {"…": ".*?"} if exact else {"…": ".*?"} | {piece: f"({NUMBER})" for piece in pieces[1::2] if piece != "…"}
    pattern = "".join(
        as_said[piece] if piece in as_said and i % 2 else re.escape(piece) for i, piece in enumerate(pieces)
    )
    if not (found := re.fullmatch(pattern, said)):
        return False
    numbers = [
        [float(text.replace(",", "")) for text in texts] for texts in (re.findall(NUMBER, shown), found.groups())
    ]
    if (one := re.search(LEADING, shown)) and (other := re.search(LEADING, said)):
        (value, low, high), (theirs, least, most) = (
            [float(text.replace(",", "")) for text in each.groups()] for each in (one, other)
        )
        return abs(value - theirs) <= 2 * (high - low + most - least)
    if re.search(rf"{NUMBER} ± {NUMBER}", shown):
        (value, error), (other, others) = (each[:2] for each in numbers)
        return abs(value - other) <= 8 * (error + others)
    return exact or all(abs(a - b) <= max(10, min(abs(a), abs(b))) for a, b in zip(*numbers, strict=True))


def test_numbers_that_no_run_prints_are_found():
    assert agrees("a: 17,656 cells, … done", "a: 17,971  cells, 12 more … done")
    assert not agrees("5,290 cells", "17,656 cells")
    assert agrees("99 ± 15 people", "-20 ± 1 people")
    assert agrees("99 people (95 % interval 69 … 129)", "20 people (95 % interval 0 … 50)")
    assert not agrees("99 people (95 % interval 97 … 101)", "120 people (95 % interval 118 … 122)")
    assert agrees("harbour 399 364 … 434 417", "harbour  470  426 … 514  417  (outside) ")
    assert not agrees("99 ± 1 people", "120 ± 1 people")
    assert not agrees("99 people", "99 rows")
    assert not agrees("99 people", "98 people", exact=True)


@pytest.mark.parametrize("page", RUNNABLE, ids=ids)
def test_marked_examples_run_and_print_what_they_show(page, desk, capsys):
    names: dict[str, object] = {"__name__": "example"}
    capsys.readouterr()
    marked = list(blocks(page, "python", marked=True))
    assert marked
    for block in marked:
        code = "\n" * (block.line - 1) + block.text  # so that a traceback names the page's line
        exec(compile(code, str(page), "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        for shown in re.findall(r"^print\(.*\)  # (.*\d.*)$", block.text, re.MULTILINE):
            assert any(agrees(shown, line) for line in printed), f"{shown!r} is not among {printed}"


@pytest.mark.slow
def test_the_tutorial_prints_what_a_run_of_it_prints(tmp_path, monkeypatch, home, capsys):
    from hazemap.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    for block in blocks(ROOT / "docs" / "tutorial.md", "console"):
        for command, *shown in (part.splitlines() for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]):
            words = shlex.split(command)[1:]
            main(words)
            streams = capsys.readouterr()
            said = iter((streams.out + streams.err).splitlines())
            for line in shown:
                assert any(agrees(line, other, exact=words[0] in ("plan", "ledger")) for other in said), (command, line)


def commands(page: Path) -> list[list[str]]:
    """Every `$ hazemap …` of a page, as words; a line that ends in a backslash goes on."""
    return [
        shlex.split(line.removeprefix("$ "), comments=True)[1:]
        for block in blocks(page, "console")
        for line in block.text.replace("\\\n", " ").splitlines()
        if re.match(r"\$ (?:\S+=\S+ )*hazemap\b", line)
    ]


def misunderstood(words: list[str]) -> str:
    """What the command line does not know of a command: a name or an option; empty where it knows it all."""
    from typer.main import get_command

    from hazemap.cli.main import app

    command = get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return words[0]
        command, words = command.commands[words[0]], words[1:]
    default = getattr(command, "default", None)
    if default and words[:1] not in (["--help"], ["-h"]) and (words or default == "map"):
        command = command.commands[default]  # `hazemap device --many …` is `hazemap device run --many …`
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    used = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return " ".join(option for option in used if option not in known)


def test_commands_are_ones_that_the_command_line_knows():
    assert not {
        str(page): wrong for page in WITH_COMMANDS for words in commands(page) if (wrong := misunderstood(words))
    }


@pytest.mark.parametrize(
    "wrong",
    ["realise a.parquet", "release a.parquet --epsylon=1", "ledger limit nyc 1", "demo-devices", "demo --shard=2"],
)
def test_a_command_that_is_not_there_is_found(wrong):
    assert misunderstood(wrong.split())


def test_the_page_of_http_names_every_route_and_no_other(tmp_path):
    pytest.importorskip("starlette")
    from hazemap.federated.server.campaign_store import CampaignStore
    from hazemap.federated.server.coordinator import Coordinator
    from hazemap.federated.server.device_endpoints import PLACE
    from hazemap.federated.server.device_enrolment import Admission
    from hazemap.federated.server.http_routes import Application
    from hazemap.privacy.ledger import Ledger

    page = (ROOT / "docs" / "reference" / "http.md").read_text()
    written = set(re.findall(r"`(GET|POST) (/v1/[a-z/{}]+)", page))
    session = "0" * 64
    below = ("", "/refusal", "/credentials")
    for way, path in [("GET", "/v1/tasks"), *(("POST", f"/v1/tasks/{{session}}{each}") for each in below)]:
        written.remove((way, path))
        assert path == "/v1/tasks" or PLACE.fullmatch(path.replace("{session}", session))
    assert "`GET /metrics`" in page
    store = CampaignStore(tmp_path / "server.sqlite")
    coordinator = Coordinator(store, tmp_path, Ledger(tmp_path / "ledger.sqlite"), Admission())
    every = [route for route in Application(coordinator, "first").routes if route.path != "/metrics"]
    coordinator.pool.shutdown()
    store.close()
    served = {(way, route.path) for route in every for way in route.methods - {"HEAD"}}
    assert written == served
