"""Faces: what is public is imported from a few modules, and everything behind them may change."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FACES = (
    "hazemap",
    "hazemap.methods",
    "hazemap.federated",
    "hazemap.recipes",
    "hazemap.draw",
    "hazemap.vdaf",
    "hazemap.lab",
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^\s*(?:from\s+(hazemap[\w.]*)\s+import|import\s+(hazemap[\w.]*))", re.MULTILINE)


def imported(text: str) -> set[str]:
    """The modules of hazemap that the Python of a page imports from."""
    return {one or other for block in BLOCK.findall(text) for one, other in IMPORT.findall(block)}


@pytest.mark.parametrize("face", FACES)
def test_every_public_name_of_a_face_is_there_and_in_order(face):
    module = import_module(face)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__) <= 80
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_the_kind'"):
        module.nothing_of_the_kind  # noqa: B018


def test_the_documentation_imports_from_faces_alone():
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
    found = {path: names for path in pages if (names := imported(path.read_text()))}
    assert len(found) > 15
    assert {str(path.relative_to(ROOT)): apart for path, names in found.items() if (apart := names - set(FACES))} == {}


def test_an_import_from_behind_a_face_is_found():
    page = "```python\nimport hazemap\nfrom hazemap.vdaf.idpf import x\n```\nfrom hazemap.cells import y\n"
    assert imported(page) - set(FACES) == {"hazemap.vdaf.idpf"}


def test_a_face_that_is_a_folder_loads_nothing_before_a_name_is_used():
    program = """if True:
        import sys
        import hazemap.federated, hazemap.vdaf, hazemap.lab
        print(sum(name.startswith("hazemap.") for name in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "3"
