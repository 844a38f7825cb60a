"""vdaf is a package of its own within hazemap: it and its tests run where nothing else of hazemap can be imported."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.vdaf.alone import Blocked

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/hazemap/vdaf", "tests/vdaf")
ALONE = ("-p", "tests.vdaf.alone", "-p", "no:cacheprovider", "--confcutdir=tests/vdaf", "-o", "filterwarnings=error")


def foreign(source: str) -> set[str]:
    """The modules of hazemap outside vdaf, and of research, that a file names in an import, at its top or inside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{each.name}" for each in node.names}
    apart = {name for name in found if name.partition(".")[0] in {"hazemap", "research"}}
    return {name for name in apart if not (name + ".").startswith("hazemap.vdaf.")}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=False, cwd=ROOT, capture_output=True, text=True)


def test_neither_vdaf_nor_its_tests_import_anything_else_of_hazemap():
    files = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.py")]
    assert len(files) > 35 and not {str(path): names for path in files if (names := foreign(path.read_text()))}
    assert foreign("def f():\n    from hazemap import errors\nimport hazemap.vdaf.idpf") == {"hazemap.errors"}


def test_what_imports_the_rest_of_hazemap_is_stopped_when_vdaf_runs_alone():
    blocked = Blocked()
    assert blocked.find_spec("hazemap.vdaf.idpf") is blocked.find_spec("numpy.linalg") is None
    for name in ("hazemap.errors", "hazemap.vdaf_of_another_kind"):
        with pytest.raises(ImportError, match=f"{name} is not of hazemap.vdaf"):
            blocked.find_spec(name)


@pytest.mark.slow
def test_every_module_and_test_of_vdaf_runs_with_the_rest_of_hazemap_blocked(tmp_path):
    names = [f"hazemap.vdaf.{path.stem}" for path in (ROOT / FOLDERS[0]).glob("[a-z]*.py")]
    imported = python("-c", f"from tests.vdaf import alone; alone.block(); import {', '.join(names)}")
    assert names and imported.returncode == 0, imported.stderr
    done = python("-m", "pytest", *ALONE, "-m", "not slow", "--basetemp", str(tmp_path / "tests"), "tests/vdaf")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
