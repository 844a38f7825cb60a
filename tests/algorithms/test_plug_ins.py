"""A method of another package: from its entry point to releases, plans, campaigns and files that open again."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.every_method import EVERY

from hazemap.algorithms import NamedMethod
from hazemap.algorithms.named_methods import LEVEL
from hazemap.algorithms.single_level import Flat
from hazemap.errors import InputError

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text()
ZOOM = re.search(r"```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
STRIPS = (Path(__file__).parents[2] / "docs" / "extend-trees.md").read_text()
BOX = "--box=13.2,52.4,13.6,52.6"


def installed(site: Path, package: str, code: str, name: str, module: str | None = None, value: str = "METHOD") -> Path:
    """A package with one entry point, as `pip install` leaves it in a folder of packages."""
    module = module or package.replace("-", "_")
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(code)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hazemap.methods]\n{name} = {module}:{value}\n")
    return site


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a table of people who do not exist."""
    chance = np.random.default_rng(1)
    columns = {
        "user": chance.integers(0, 5_000, 20_000),
        "lon": chance.normal(13.4, 0.05, 20_000),
        "lat": chance.normal(52.5, 0.03, 20_000),
    }
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path


def python(code: str, *arguments: object, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A Python process that finds the packages of a folder beside hazemap's own."""
    begin = f"import sys; sys.path.append({str(site)!r})\n" if site else ""
    command = [sys.executable, "-c", begin + code, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def hazemap(*arguments: object, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    return python("from hazemap.cli.main import main\nsys.exit(main(sys.argv[1:]))", *arguments, site=site or Path())


RELEASE = ("release", "visits.parquet", "--person", "user", "-e", "1", "--ledger", "ledger.sqlite")


@pytest.mark.slow
def test_the_method_of_the_page_is_released_asked_planned_and_opened_again(desk):
    site = installed(desk / "site", "hazemap-zoom", ZOOM, "zoom")
    done = hazemap(*RELEASE, BOX, "--method", "zoom:4", "-o", "map.parquet", site=site)
    assert done.returncode == 0, done.stderr
    said = hazemap("inspect", "map.parquet", site=site).stdout
    assert "zoom:4 of the plug-in hazemap-zoom 1.0" in " ".join(said.split())
    answer = hazemap("ask", "map.parquet", "--box=13.35,52.45,13.45,52.55", site=site)
    assert answer.returncode == 0 and "standard error" in answer.stdout
    planned = hazemap("plan", BOX, "--people", 5000, "-e", 1, "--method", "zoom", "--json", site=site)
    assert json.loads(planned.stdout)["method"]["name"] == "zoom"
    again = hazemap("inspect", "map.parquet", "--replay", site=site)
    assert again.returncode == 0, again.stderr
    made = python("import hazemap\nprint(hazemap.open('map.parquet').algorithm)", site=site).stdout
    assert made.startswith("Zoom(") and "fullest=4" in made


@pytest.mark.slow
def test_hexagons_of_a_box_that_is_found_are_cut_too(desk):
    site = installed(desk / "site", "hazemap-zoom", ZOOM, "zoom")
    done = hazemap(*RELEASE, "--cells", "h3:5-8", "--method", "zoom", "-o", "found.parquet", site=site)
    assert done.returncode == 0, done.stderr
    assert hazemap("ask", "found.parquet", site=site).returncode == 0


@pytest.mark.slow
def test_without_its_plug_in_a_file_and_a_name_are_refused_in_words(desk):
    site = installed(desk / "site", "hazemap-zoom", ZOOM, "zoom")
    assert hazemap(*RELEASE, BOX, "--method", "zoom", "-o", "map.parquet", site=site).returncode == 0
    assert hazemap("ask", "map.parquet").returncode == 0, "numbers need no method"
    done = hazemap("inspect", "map.parquet", "--replay")
    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "it holds a Zoom of the plug-in hazemap_zoom, which is not installed" in said
    done = hazemap(*RELEASE, BOX, "--method", "zoom", "-o", "other.parquet")
    assert done.returncode == 2 and "a method is one of" in " ".join(done.stderr.split())


FOREIGN = "from hazemap import NamedMethod\nfrom hazemap_zoom import Zoom\nMETHOD = NamedMethod('foreign', Zoom)"
UNTYPED = ZOOM.replace("tree: Tree", "tree: list").replace('"zoom"', '"untyped"')


UNUSABLE = [
    ("hazemap-flat", ZOOM.replace('"zoom"', '"flat"'), "flat", "one of hazemap's own"),
    ("hazemap-other", ZOOM, "zoom", "hazemap-other 1.0 and hazemap-zoom 1.0 both bring a method called 'zoom'"),
    ("hazemap-broken", "import nowhere", "broken", "could not be loaded"),
    ("hazemap-wrong", ZOOM, "wrong", "no NamedMethod of this name"),
    ("hazemap-foreign", FOREIGN, "foreign", "belongs to the package"),
    ("hazemap-untyped", UNTYPED, "untyped", "cannot be stored"),
]
EACH = """
from contextlib import redirect_stderr
from io import StringIO
from json import dumps
from hazemap.cli.main import main
for name in sys.argv[2:]:
    with redirect_stderr(StringIO()) as said:
        code = main([*sys.argv[1].split(), "--method", name])
    print(dumps([code, " ".join(said.getvalue().split())]))
"""


def test_plug_ins_that_cannot_be_used_are_refused_in_words_and_nothing_is_paid(desk):
    installed(desk / "site", "hazemap-zoom", ZOOM, "zoom")
    for package, code, name, _ in UNUSABLE:
        installed(desk / "site", package, code, name)
    asked = " ".join([*RELEASE, BOX, "-o", "map.parquet"])
    done = python(EACH, asked, *(name for _, _, name, _ in UNUSABLE), site=desk / "site")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(UNUSABLE), done.stderr
    for (code, told), (package, _, _, said) in zip(found, UNUSABLE, strict=True):
        assert code == 2 and said in told, (package, told)
    assert not (desk / "map.parquet").exists()
    assert not (desk / "ledger.sqlite").exists()


LOADED = """
import hazemap  # a broken plug-in is none of the business of other methods
from hazemap.cli.main import main
main(["--help"])
hazemap.release("visits.parquet", person="user", epsilon=1, box="13.2,52.4,13.6,52.6", method="flat:3",
                ledger=hazemap.Ledger("ledger.sqlite"), output="flat.parquet")
hazemap.open("flat.parquet")
print("hazemap_zoom" in sys.modules)
"""


@pytest.mark.slow
def test_a_plug_in_is_loaded_by_nobody_who_does_not_ask_for_it(desk):
    installed(desk / "site", "hazemap-broken", "import nowhere", "broken")
    site = installed(desk / "site", "hazemap-zoom", ZOOM, "zoom")
    assert python(LOADED, site=site).stdout.split()[-1] == "False"


TREE = "\n".join(re.findall(r"<!-- runs -->\n```python\n(.*?)^```", STRIPS, re.DOTALL | re.MULTILINE)[1:2])
STRIP_MAP = f"""
import numpy as np
from hazemap import AtMostRows, Box, Counts, Flat, Leaves, NamedMethod, Quadtree, Query, Reading
from hazemap.queries.algorithm_disclosure import counted
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.estimate import read
from hazemap.tables.contribution_bounding import Bounding
from hazemap.specs.method_from_name import around
{TREE}
@dataclass(frozen=True)
class StripMap:
    tree: Strips
    bounding: Bounding

    @property
    def disclosure(self):
        return counted()

    def rounds(self, prices):
        cells = with_nowhere(Leaves.at_level(self.tree, 5), self.bounding)
        query = Query(Counts(cells, self.bounding), 1)
        return read([(query, (yield query))], cells, Reading.UNBIASED)

def build_strips(tree, bounding):
    return StripMap(Strips(around(tree), 6), bounding)

METHOD = NamedMethod("strips", build_strips, types=(StripMap, Strips))
"""


@pytest.mark.slow
def test_a_plug_in_brings_a_tree_of_its_own_which_is_stored_opened_and_drawn(desk):
    site = installed(desk / "site", "hazemap-strips", STRIP_MAP, "strips")
    done = hazemap(*RELEASE, BOX, "--method", "strips", "-o", "map.parquet", site=site)
    assert done.returncode == 0, done.stderr
    asked = hazemap("ask", "map.parquet", "--box=13.2,52.4,13.4,52.6", site=site)
    assert asked.returncode == 0, asked.stderr
    drawn = hazemap("show", "map.parquet", "-o", "map.png", site=site)
    assert drawn.returncode == 0, drawn.stderr


DEVICE = """
from fractions import Fraction
import hazemap
from hazemap.algorithms.plug_ins import method_named, plug_in_type
from hazemap.codec import dumps, loads, MESSAGE, CLOSED_LIST, UNIONS
from hazemap.errors import HazemapError
from hazemap.federated.server.campaign_spec import Campaign, campaign_from
from hazemap.federated.server.privacy_statement import statement
from hazemap.specs.method_from_name import among_devices, method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import KNOWN, Task

box, rule, one = hazemap.Box(13.2, 52.4, 13.6, 52.6), hazemap.AtMostRows(1), hazemap.PureDP(1)
before = CLOSED_LIST, dict(UNIONS)
def campaign(name):
    method = among_devices(method_from_name(name, QuadtreeCells(8), box, rule), 100_000)
    return Campaign("homes", "a map", "town", method, one, Cohort(2_000, 1_000))
zoom = campaign("zoom")
assert campaign_from(dumps(zoom)) == zoom
assert "of the plug-in hazemap-zoom 1.0" in statement(zoom).text()
question = next(zoom.algorithm.rounds(hazemap.Curator(None).prices(one)))
task = Task("homes", "a map", 1, question, one.part(question.share), one, zoom.cohort)
assert loads(dumps(task), KNOWN, Task, MESSAGE) == task

strips = method_from_name("strips", QuadtreeCells(8), box, rule).tree  # its plug-in is loaded in this process
assert plug_in_type("hazemap_strips.Strips") is type(strips)
cells = hazemap.Leaves(strips, strips.root)
task = Task("homes", "a map", 1, hazemap.Query(hazemap.Counts(cells, rule), Fraction(1)), one, one, zoom.cohort)
for attempt in (lambda: loads(dumps(task), KNOWN, Task, MESSAGE), lambda: campaign("strips")):
    try:
        attempt()
    except HazemapError as error:
        print(error)
assert (CLOSED_LIST, dict(UNIONS)) == before
"""


def test_devices_decode_no_type_of_a_plug_in_even_where_it_is_installed_and_loaded(desk):
    installed(desk / "site", "hazemap-strips", STRIP_MAP, "strips")
    done = python(DEVICE, site=installed(desk / "site", "hazemap-zoom", ZOOM, "zoom"))
    assert done.returncode == 0, done.stderr
    refused, campaign = done.stdout.splitlines()
    assert "'hazemap_strips.Strips' is not on the closed list of what may travel" in refused
    assert "devices know hazemap's own cells and bounding rules only, not a Strips" in campaign


def test_no_code_of_devices_looks_for_plug_ins():
    done = python(
        "import hazemap.federated.device.device_process, hazemap.federated.device.agent\n"
        "import hazemap.federated.trust.device_tasks\n"
        "print('hazemap.algorithms.plug_ins' in sys.modules)",
        site=Path(),
    )
    assert done.stdout.split() == ["False"], done.stderr


def test_a_registration_is_complete_or_refused():
    for wrong in (
        {"name": "Zoom"},
        {"name": "a:b"},
        {"build": partial(Flat, level=1)},
        {"types": (int,)},
        {"parameter": "LEVEL"},
    ):
        with pytest.raises(InputError):
            NamedMethod(**{"name": "zoom", "build": Flat, **wrong})
    assert NamedMethod("zoom", Flat, parameter=LEVEL).argument("zoom:12") == "12"
    assert {name: each.name for name, each in EVERY.items()} == {name: name for name in EVERY}
