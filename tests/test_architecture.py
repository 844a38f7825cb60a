"""The import graph is the privacy argument: whoever decides cannot see, whoever sees cannot decide."""

import ast
import re
from pathlib import Path

import pytest
from tests.layout import cycles, graph, run_time_nodes

PACKAGE = Path(__file__).parents[1] / "src" / "hazemap"

FLOORS = [
    "errors",
    "arrays | atomic_write | field_types | jit_cache | parallel_map",
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
    "compare",
    "service",
    "aggregator | shuffler",
    "device | server",
    "study",
    "audit | studio",
    "cli",
]
RANK = {name: rank for rank, floor in enumerate(FLOORS) for name in floor.split(" | ")}
ROWS = {"engines", "readers", "tables.person_cell_samples", "tables.person_cell_values"}
NOISE = {"privacy.samplers", "privacy.random_stream", "trust"}
NEVER = {
    "algorithms": ROWS | NOISE,
    "estimate": ROWS | NOISE,
    "releases": ROWS | NOISE,
    "draw": {"tables", "engines", "readers", "privacy", "trust", "releases"},
    "device": {"algorithms", "estimate", "releases"},
    "server": ROWS | {"privacy.samplers"},
    "aggregator": ROWS | {"algorithms", "estimate", "releases", "trust"},
    "studio": {"privacy.samplers", "privacy.random_stream", "trust"},
    "shuffler": ROWS | {"algorithms", "estimate", "releases", "trust", "privacy.samplers"},
}
NO_CHANCE = {"algorithms", "estimate", "releases", "draw"}
CHANCE = {"random", "secrets", "time", "numpy.random"}
NETWORK = {"socket", "ssl", "http", "urllib", "asyncio", "httpx", "uvicorn", "starlette", "sqlite3"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imports(path: Path) -> set[str]:
    """Everything a file imports at run time, `import a.b` and `from a.b import c` alike (as a.b and a.b.c)."""
    names: set[str] = set()
    for node in run_time_nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def floor_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def ids(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_a_module_imports_only_from_floors_below(path):
    here = floor_of(path)
    assert here in RANK, f"{here} has no floor: add it to FLOORS and to docs/concepts/design.md"
    for name in imports(path):
        package, _, rest = name.partition(".")
        assert package != "research", f"{here} imports {name}, which is not in the wheel"
        if package != "hazemap" or not rest or rest == "__version__":
            continue
        there = rest.split(".")[0]
        if there in RANK:
            assert there == here or RANK[there] < RANK[here], f"{here} imports {there}"
        for forbidden in NEVER.get(here, ()):
            assert not (rest + ".").startswith(forbidden + "."), f"{here} imports {forbidden}"


@pytest.mark.parametrize("path", [p for p in MODULES if floor_of(p) in NO_CHANCE], ids=ids)
def test_whoever_decides_neither_draws_lots_nor_looks_at_the_clock(path):
    assert not imports(path) & CHANCE


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_a_file_is_short_enough_to_be_one_noun(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [p for p in MODULES if floor_of(p) in {"protocols", "trust"}], ids=ids)
def test_protocols_and_trust_models_open_no_socket(path):
    assert not {name.partition(".")[0] for name in imports(path)} & NETWORK


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
