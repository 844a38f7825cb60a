"""The import graph is the privacy argument: whoever decides cannot see, whoever sees cannot decide."""

import ast
import re
from pathlib import Path

from tests.layout import cycles, graph, module_of, run_time_imports

PACKAGE = Path(__file__).parents[1] / "src" / "hazemap"
DOCS = PACKAGE.parents[1] / "docs"

FLOORS = [
    "vdaf",
    "errors",
    "files",
    "field_types | gdal | machine_code | sources",
    "cells",
    "cellmap",
    "spatial | temporal",
    "base_map | values",
    "tables",
    "engines",
    "readers",
    "encoders",
    "privacy",
    "queries.algorithm_disclosure | queries.noisy_queries",
    "codec",
    "queries.algorithm_session",
    "estimate | federated.protocols",
    "federated.recipes",
    "algorithms | statement_builder | trust",
    "federated.trust",
    "draw",
    "releases",
    "specs",
    "execution",
    "planning | publish",
    "lab.compare | lab.methods",
    "federated.service",
    "federated.aggregator | federated.shuffler",
    "federated.device | federated.server",
    "federated.planning | federated.study",
    "lab.audit | methods | recipes | studio",
    "cli",
]
RANK = {name: rank for rank, floor in enumerate(FLOORS) for name in floor.split(" | ")}
ROWS = {"engines", "readers", "tables.person_cell_values"}
NOISE = {"privacy.samplers", "privacy.random_stream", "trust", "federated.trust"}
NEVER = {
    "algorithms": ROWS | NOISE,
    "lab.methods": ROWS | NOISE,
    "estimate": ROWS | NOISE,
    "releases": ROWS | NOISE,
    "draw": {"tables", "engines", "readers", "privacy", "trust", "releases"},
    "federated.device": {"algorithms", "estimate", "releases"},
    "federated.server": ROWS | {"privacy.samplers"},
    "federated.aggregator": ROWS | {"algorithms", "estimate", "releases", "federated.trust"},
    "studio": NOISE,
    "federated.study.searches": ROWS | NOISE,
    "federated.shuffler": ROWS | {"algorithms", "estimate", "releases", "federated.trust", "privacy.samplers"},
}
WINGS = {"federated", "lab", "queries"}
BESIDE = {"federated", "lab", "cli", "recipes", "studio"}
NO_CHANCE = {"algorithms", "estimate", "lab.methods", "releases", "draw", "federated.study.searches"}
CHANCE = {"random", "secrets", "time", "numpy.random"}
NETWORK = {"socket", "ssl", "http", "urllib", "asyncio", "httpx", "uvicorn", "starlette", "sqlite3"}
FRONTS = {PACKAGE / "__init__.py", *(PACKAGE / wing / "__init__.py" for wing in WINGS)}
MODULES = sorted(set(PACKAGE.rglob("*.py")) - FRONTS)


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
    return floor_named(path.relative_to(PACKAGE).with_suffix("").parts)


def floor_named(parts: tuple[str, ...]) -> str:
    """The floor of a dotted name in parts: a folder or module of the root, or a folder of a wing."""
    return ".".join(parts[:2] if parts[0] in WINGS else parts[:1])


def astray(here: str, names: set[str]) -> list[str]:
    """What is wrong with modules of one floor, or of a folder of it, that import these names."""
    found, floor = [], floor_named(tuple(here.split(".")))
    for name in sorted(names):
        package, _, rest = name.partition(".")
        if package == "research":
            found.append(f"{here} imports {name}, which is not in the wheel")
        if package != "hazemap" or not rest or rest == "__version__":
            continue
        there = floor_named(tuple(rest.split(".")))
        if {there, floor} <= RANK.keys() and there != floor and RANK[there] >= RANK[floor]:
            found.append(f"{here} imports {there}")
        found += [f"{here} imports {never}" for never in NEVER.get(here, ()) if (rest + ".").startswith(never + ".")]
    return found


def folders_of(path: Path) -> set[str]:
    """The floor of a file, and the folders that it is in, dotted."""
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
    return package.partition(".")[0] in BESIDE


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
    apart = [path for path in MODULES if floor_of(path) in {"federated.protocols", "federated.trust", "trust", "vdaf"}]
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


def written_modules(path: Path, known: set[str]) -> set[str]:
    """The modules that a file names, in texts too: it loads them when they are first asked for."""
    names = re.findall(r"[a-z_0-9]+(?:\.[a-z_0-9]+)*", path.read_text())
    heads = {name.removeprefix("hazemap.") for name in names}
    return heads & known | {f"{module_of(path)}.{name}" for name in heads} & known


def unreached(edges: dict[str, set[str]], roots: set[str]) -> set[str]:
    """The files that nobody comes to who begins at these; who comes to a file comes to its folder."""
    seen, ahead = set[str](), set(roots)
    while ahead:
        name = ahead.pop()
        seen.add(name)
        ahead |= (edges[name] | {name.rpartition(".")[0]}) & edges.keys() - seen
    return set(edges) - seen


def test_every_module_is_reached_from_the_command_line_or_from_what_is_documented():
    """What tests alone reach proves what the product does not run: oracles and doubles are in `tests/`."""
    edges = graph()
    lazy = [
        "__init__",
        "federated/__init__",
        "lab/__init__",
        "vdaf/__init__",
        "releases/__init__",
        "releases/base_release",
        "algorithms/comparators",
    ]
    for path in [*(PACKAGE / f"{name}.py" for name in lazy), PACKAGE / "federated" / "server" / "server_process.py"]:
        edges.setdefault(module_of(path), set())
        edges[module_of(path)] |= written_modules(path, set(edges))
    commands = {name for name in edges if re.fullmatch(r"cli(\.federated)?\.\w+", name)}
    pages = "\n".join(path.read_text() for folder in ("how-to", "reference") for path in (DOCS / folder).glob("*.md"))
    documented = set(re.findall(r"^\s*from hazemap\.([\w.]+) import ", pages, re.MULTILINE))
    documented |= set(re.findall(r"^\.\. auto\w+:: hazemap\.([\w.]+)\.\w+$", pages, re.MULTILINE))
    assert unreached(edges, {"", *commands, *documented & edges.keys()}) == set()


def test_a_module_that_nobody_comes_to_is_found():
    edges = {"": {"a.b"}, "a": set(), "a.b": {"c"}, "c": set(), "d": {"c"}}
    assert unreached(edges, {""}) == {"d"}


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
        *(
            "federated/trust/in_memory_secure_aggregation",
            "trust/curator",
            "federated/trust/local",
            "federated/trust/report_batch",
        ),
        *(
            "encoders/encoder",
            "lab/audit/evidence/noise_residuals",
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


def test_every_error_is_made_where_it_is_raised():
    """One that is kept as a constant grows with every traceback, and holds what their frames hold."""
    kept = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id.isupper()
    ]
    assert kept == []


SAME_NAMES = {"Parameter": "a word of recipes, in whose files it is written, and of methods, whose face exports it"}
"""Names that several public classes have, and whose words they are."""


def test_the_name_of_a_public_class_is_the_name_of_no_other():
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name for name, places in found.items() if len(places) > 1} == SAME_NAMES.keys()
