"""No file imports another that imports it: readers of releases hand back parts, and name the type for checkers alone."""
import re

R = "src/hazemap/releases/"
EDITS = [
    # UnknownMethod lives with what reads and writes methods
    (R + "map_release.py", '''@dataclass(frozen=True)
class UnknownMethod:
    """A method of a newer version, as its file names it: its numbers can be read, but it cannot be run."""

    data: Any


''', ""),
    (R + "map_release.py", "from hazemap.releases.estimates import Estimate, ", "from hazemap.releases.file_metadata import UnknownMethod\nfrom hazemap.releases.estimates import Estimate, "),
    (R + "map_release.py", "        return opened(Path(path))\n", "        return cls(*opened(Path(path)))\n"),
    (R + "file_metadata.py", "FORMAT, NEWEST = 1, 2\n", '''
@dataclass(frozen=True)
class UnknownMethod:
    """A method of a newer version, as its file names it: its numbers can be read, but it cannot be run."""

    data: Any


class MapContents(NamedTuple):
    """What a file of a map holds: the fields of a `Release`."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript


FORMAT, NEWEST = 1, 2
'''),
    (R + "file_metadata.py", "from typing import Any\n", "from typing import TYPE_CHECKING, Any, NamedTuple\n"),
    (R + "file_metadata.py", "-> Release:\n    \"\"\"A release from", "-> MapContents:\n    \"\"\"A release from"),
    (R + "file_metadata.py", "    return Release(\n", "    return MapContents(\n"),
    (R + "geotiff.py", "def read(path: Path) -> Release:", "def read(path: Path) -> MapContents:"),
    (R + "geotiff.py", "file_metadata import assemble", "file_metadata import MapContents, assemble"),
    (R + "map_geoparquet.py", "def read(path: Path) -> Release:", "def read(path: Path) -> MapContents:"),
    (R + "map_geoparquet.py", "file_metadata import assemble", "file_metadata import MapContents, assemble"),
    (R + "open_file.py", "def opened(path: Path) -> Release:", "def opened(path: Path) -> MapContents:"),
    (R + "open_file.py", "from hazemap.releases.map_release import Release\n", "from hazemap.releases.file_metadata import MapContents\n"),
    (R + "statistics_geoparquet.py", "def read(path: Path) -> Statistics:", "def read(path: Path) -> StatisticsContents:"),
    (R + "statistics_geoparquet.py", "            return Statistics(\n", "            return StatisticsContents(\n"),
    (R + "statistics_geoparquet.py", "from hazemap.releases.map_release import UnknownMethod\n", ""),
    (R + "statistics_geoparquet.py", "file_metadata import NEWEST, method_of", "file_metadata import NEWEST, UnknownMethod, method_of"),
    (R + "statistics_geoparquet.py", "from typing import TYPE_CHECKING, Any\n", "from typing import TYPE_CHECKING, Any, NamedTuple\n"),
    (R + "statistics_geoparquet.py", "def write(made: Statistics", '''class StatisticsContents(NamedTuple):
    """What a file of statistics holds: the fields of `Statistics`."""

    measurements: Measurements | KnownPeople
    value: str
    ranks: tuple[float, ...]
    statement: Statement
    algorithm: object
    transcript: Transcript


def write(made: Statistics'''),
    (R + "statistics_release.py", "return statistics_file.read(Path(path))", "return cls(*statistics_file.read(Path(path)))"),
    (R + "statistics_release.py", "from hazemap.releases.map_release import UnknownMethod", "from hazemap.releases.file_metadata import UnknownMethod"),
]
T = "tests/releases/test_map_geoparquet.py"
EDITS += [(T, "from hazemap.releases.map_release import UnknownMethod", "from hazemap.releases.file_metadata import UnknownMethod")]


def checkers_alone(tree, say):
    """`Release` (`Statistics`) in annotations of files that it imports: quoted, and imported for type checkers."""
    for name, module, files in (
        ("Release", "map_release", ("people_outside", "exports", "notebook_card", "rasterise", "geotiff", "map_geoparquet", "file_metadata")),
        ("Statistics", "statistics_release", ("statistics_geoparquet",)),
    ):
        for file in files:
            p = tree / R / f"{file}.py"
            text = p.read_text()
            line = re.search(rf"^from hazemap\.releases\.{module} import ([\w, ]+)\n", text, flags=re.M)
            if line is None: say(f"{file}: imports no {name}"); continue
            own = f"from hazemap.releases.{module} import {name}\n"
            text = text.replace(line[0], "" if file != "file_metadata" else "")
            text = re.sub(rf"Callable\[\[{name}, Path\], None\]", f'Callable[["{name}", Path], None]', text)
            text = re.sub(rf"(:|->) {name}\b(?!\")", rf'\1 "{name}"', text)
            if "if TYPE_CHECKING:\n" in text: text = text.replace("if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    " + own, 1)
            else:
                import ast
                last = [n for n in ast.parse(text).body if isinstance(n, (ast.Import, ast.ImportFrom))][-1].end_lineno
                lines = text.splitlines(keepends=True)
                lines.insert(last, "\nif TYPE_CHECKING:\n    " + own)
                text = "".join(lines)
                if "TYPE_CHECKING" not in text.split("\nif TYPE_CHECKING")[0]:
                    if re.search(r"^from typing import ", text, flags=re.M): text = re.sub(r"^from typing import ", "from typing import TYPE_CHECKING, ", text, count=1, flags=re.M)
                    else: text = text.replace(own, own, 1).replace("\nfrom ", "\nfrom typing import TYPE_CHECKING\nfrom ", 1) if "\nfrom " in text else text
            p.write_text(text)


def single_question(tree, say):
    """The run of a single question belongs to the process that runs it."""
    one, other = tree / "src/hazemap/audit/single_query_trials.py", tree / "src/hazemap/audit/subprocess_runs.py"
    text = one.read_text()
    at = text.find("\n\ndef asked(")
    if at < 0: say("single_query_trials.py has no asked"); return
    function = text[at:].replace("def asked(", "def _asked(")
    if function.count("\ndef ") != 1: say("asked is not the last function"); return
    one.write_text(text[:at].rstrip("\n") + "\n")
    text = other.read_text()
    line = "        from hazemap.audit.single_query_trials import asked\n\n"
    if line not in text: say("subprocess_runs.py does not import asked"); return
    text = text.replace(line, "").replace("[asked(order.setting", "[_asked(order.setting")
    function = function.replace("    from hazemap.readers.open_table import open_table\n", "    from hazemap.readers.open_table import open_table\n    from hazemap.trust.curator import Curator\n    from hazemap.trust.local import LocalReports\n")
    text, times = re.subn(r"audited_settings import (?!.*LOCAL)CURATOR,", "audited_settings import CURATOR, LOCAL,", text)
    if times != 1: say("subprocess_runs.py imports its settings otherwise")
    other.write_text(text.rstrip("\n") + "\n" + function)


EDITS += [
    ("tests/test_architecture.py", "import pytest\n", "import pytest\n\nfrom tests.layout import cycles, graph\n"),
    ("tests/test_architecture.py", "def test_no_folder_is_called_by_what_it_is_not():", '''def test_no_files_import_each_other():
    assert cycles(graph()) == []


def test_a_cycle_is_found_around_any_number_of_corners():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d", "f"}, "f": {"e"}}
    assert cycles(edges) == [["a", "b", "c"], ["e", "f"]]


def test_no_folder_is_called_by_what_it_is_not():'''),
]


def layout(tree, say):
    """The words of the code in the glossary."""
    from pathlib import Path
    here = Path(__file__).parents[1]
    p = tree / "docs/glossary.md"
    if "## In the code" not in p.read_text(): p.write_text(p.read_text().rstrip("\n") + "\n" + (here / "glossary.md").read_text())


FUNCTIONS = [layout]
AFTER = [checkers_alone, single_question]


def formulas(tree, say):
    """The two formulas that compiled loops and their light twins share, in a file of their own."""
    geo, merc = tree / "src/hazemap/spatial/geodesy.py", tree / "src/hazemap/spatial/web_mercator.py"
    text = geo.read_text()
    start, end = text.find("def longitude(x: Any)"), text.find("def latitudes(y:")
    if min(start, end) < 0: say("geodesy.py has other functions than were known"); return
    head = '"""Degrees of unit Web-Mercator coordinates: formulas for a number, which loops compile and others call."""\n\nimport math\nfrom typing import Any\n\nfrom hazemap.spatial.bounding_box import MERCATOR_LATITUDE\n\n\n'
    (tree / "src/hazemap/spatial/mercator_formulas.py").write_text(head + text[start:end].rstrip("\n") + "\n")
    text = text[:start] + text[end:]
    text = text.replace("from typing import Any\n", "").replace("from hazemap.spatial.bounding_box import MERCATOR_LATITUDE\n", "from hazemap.spatial.mercator_formulas import latitude, longitude\n")
    text = text.replace("\nFLATTENING = ", '\n__all__ = ["latitude", "latitudes", "longitude", "mercator_rectangles"]\n\nFLATTENING = ', 1)
    geo.write_text(text)
    merc.write_text(merc.read_text().replace("from hazemap.spatial import geodesy\n", "from hazemap.spatial import mercator_formulas\n").replace("geodesy.l", "mercator_formulas.l"))


AFTER = [checkers_alone, single_question, formulas]
