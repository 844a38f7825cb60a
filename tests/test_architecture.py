"""The import graph is the privacy argument: whoever decides cannot see, whoever sees cannot decide."""

import ast
import re
from pathlib import Path

from tests.layout import cycles, graph, run_time_imports

PACKAGE = Path(__file__).parents[1] / "src" / "hazemap"

FLOORS = [
    "errors",
    "arrays | atomic_write | field_types | gdal | jit_cache | number_text | parallel_map | parquet_pages | sources",
    "jit",
    "hash_index",
    "cells",
    "cellmap",
    "spatial | temporal",
    "base_map | values",
    "tables",
    "engines",
    "readers",
    "encoders",
    "privacy",
    "algorithm_disclosure | noisy_queries",
    "codec",
    "algorithm_session",
    "estimate | protocols",
    "recipes",
    "algorithms | statement_builder | trust",
    "draw",
    "releases",
    "specs",
    "execution",
    "planning | publish",
    "compare | lab",
    "service",
    "aggregator | shuffler",
    "device | server",
    "federated | study",
    "audit | studio",
    "cli",
]
RANK = {name: rank for rank, floor in enumerate(FLOORS) for name in floor.split(" | ")}
ROWS = {"engines", "readers", "tables.person_cell_values"}
NOISE = {"privacy.samplers", "privacy.random_stream", "trust"}
NEVER = {
    "algorithms": ROWS | NOISE,
    "lab.methods": ROWS | NOISE,
    "estimate": ROWS | NOISE,
    "releases": ROWS | NOISE,
    "draw": {"tables", "engines", "readers", "privacy", "trust", "releases"},
    "device": {"algorithms", "estimate", "releases"},
    "server": ROWS | {"privacy.samplers"},
    "aggregator": ROWS | {"algorithms", "estimate", "releases", "trust"},
    "studio": {"privacy.samplers", "privacy.random_stream", "trust"},
    "study.searches": ROWS | NOISE,
    "shuffler": ROWS | {"algorithms", "estimate", "releases", "trust", "privacy.samplers"},
}
BESIDE = {"aggregator", "device", "federated", "protocols", "recipes", "server", "service", "shuffler", "study"}
BESIDE |= {"audit", "compare", "lab", "cli", "studio"}
NO_CHANCE = {"algorithms", "estimate", "lab.methods", "releases", "draw", "study.searches"}
CHANCE = {"random", "secrets", "time", "numpy.random"}
NETWORK = {"socket", "ssl", "http", "urllib", "asyncio", "httpx", "uvicorn", "starlette", "sqlite3"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imports(path: Path) -> set[str]:
    """Everything a file imports at run time, `import a.b` and `from a.b import c` alike (as a.b and a.b.c)."""
    names: set[str] = set()
    for node in run_time_imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def floor_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def astray(here: str, names: set[str]) -> list[str]:
    """What is wrong with modules of one floor, or of a folder of it, that import these names."""
    found, floor = [], here.partition(".")[0]
    for name in sorted(names):
        package, _, rest = name.partition(".")
        if package == "research":
            found.append(f"{here} imports {name}, which is not in the wheel")
        if package != "hazemap" or not rest or rest == "__version__":
            continue
        there = rest.split(".")[0]
        if there in RANK and there != floor and RANK[there] >= RANK[floor]:
            found.append(f"{here} imports {there}")
        found += [f"{here} imports {never}" for never in NEVER.get(here, ()) if (rest + ".").startswith(never + ".")]
    return found


def folders_of(path: Path) -> set[str]:
    """The floor of a file, and the folders of the floor that it is in, dotted."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    return {floor_of(path), *(".".join(folders[: depth + 1]) for depth in range(len(folders)))}


def test_modules_import_only_from_floors_below():
    floors = {floor_of(path) for path in MODULES}
    assert floors <= set(RANK), f"{floors - set(RANK)} has no floor: add it to FLOORS and to docs/concepts/design.md"
    assert NEVER.keys() | NO_CHANCE <= set().union(*map(folders_of, MODULES)), "a rule is for a folder that is no more"
    found = ((path, wrong) for path in MODULES for each in folders_of(path) for wrong in astray(each, imports(path)))
    assert not [f"{path}: {wrong}" for path, wrong in found]


def test_an_import_from_above_is_found():
    lowest, highest = min(RANK, key=RANK.__getitem__), max(RANK, key=RANK.__getitem__)
    assert astray(lowest, {f"hazemap.{highest}.x", "os"}) == [f"{lowest} imports {highest}"]
    assert not astray(highest, {f"hazemap.{lowest}", "hazemap", f"hazemap.{highest}"})
    assert astray(lowest, {"research.papers"})
    here, never = next((here, min(never)) for here, never in NEVER.items() if never)
    assert f"{here} imports {never}" in astray(here, {f"hazemap.{never}"})


def beside_the_table(package: str) -> bool:
    """Whether a module is of the devices' side or of the laboratory, or of what serves both sides."""
    floor, _, rest = package.partition(".")
    return floor in BESIDE or (floor == "trust" and rest.partition(".")[0] != "curator")


def test_the_tables_side_imports_nothing_of_the_devices_side_or_of_the_laboratory():
    edges = {name: others for name, others in graph().items() if name and not beside_the_table(name)}
    assert len(edges) > 300
    assert not {name: found for name, others in edges.items() if (found := set(filter(beside_the_table, others)))}


def test_whoever_decides_neither_draws_lots_nor_looks_at_the_clock():
    deciding = [path for path in MODULES if folders_of(path) & NO_CHANCE]
    assert deciding and not {str(path): found for path in deciding if (found := imports(path) & CHANCE)}


def test_every_file_is_short_enough_to_be_one_idea():
    assert not [str(path) for path in MODULES if len(path.read_text().splitlines()) > 800]


def test_protocols_and_trust_models_open_no_socket():
    apart = [path for path in MODULES if floor_of(path) in {"protocols", "trust"}]
    assert apart and not [str(path) for path in apart if {name.partition(".")[0] for name in imports(path)} & NETWORK]


GDAL = {"pyogrio", "rasterio", "fiona", "osgeo"}
OPENING = {"read_file", "to_file", "list_layers", "read_dataframe", "write_dataframe", "open_arrow"}


def gdal_calls(path: Path) -> list[str]:
    """Where a file imports what calls GDAL, or calls a function of geopandas that does."""
    names = {name for name in imports(path) if name.partition(".")[0] in GDAL or name.startswith("geopandas.io")}
    text = path.read_text()
    nodes = ast.walk(ast.parse(text)) if any(name in text for name in OPENING) else ()
    calls = [each for each in nodes if isinstance(each, ast.Attribute)]
    return [*sorted(names), *sorted(each.attr for each in calls if each.attr in OPENING)]


def test_gdal_is_called_behind_one_door():
    found = {floor_of(path) for path in MODULES if gdal_calls(path)}
    assert found == {"gdal"}


def test_no_files_import_each_other():
    assert cycles(graph()) == []


def test_a_cycle_is_found_around_any_number_of_corners():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d", "f"}, "f": {"e"}}
    assert cycles(edges) == [["a", "b", "c"], ["e", "f"]]


def test_no_folder_is_called_by_what_it_is_not():
    names = {part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "common", "misc", "helpers", "manager", "managers"}


def test_fault_7_exact_sums_of_rows_are_taken_by_trust_models_and_by_nobody_else():
    """What `publish` did: an encoder's sums of a table, outside the trust model that charges and adds noise."""
    asking = re.compile(r"\b(?!np\b)\w+\.total\((?:self\.)?_?(?:table|sample|rows)\b")
    found = {str(path.relative_to(PACKAGE).with_suffix("")) for path in MODULES if asking.search(path.read_text())}
    assert found == {
        *("trust/simulated_secure_aggregation", "trust/curator", "trust/local", "trust/report_batch"),
        *(
            "encoders/concatenation",
            "audit/evidence/noise_residuals",
        ),  # a sum of sums; tables of people who do not exist
    }


def test_no_call_unpacks_a_tuple_that_it_has_just_written():
    """`f(*(a, b), *(c,))` keeps lines short and hides which argument is which: they have names."""
    calls = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        if any(isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple) for each in node.args)
    ]
    assert calls == []
