"""Prints how the source is laid out: folders with their files and lines, floors, and cycles between files.

`python tests/layout.py` prints the tables; the architecture test fails where `cycles` finds any.
"""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "hazemap"


def module_of(path: Path, package: Path = PACKAGE) -> str:
    """The dotted name of a file: `spatial.quadtree`, and `spatial` for the `__init__.py` of a folder."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def run_time_imports(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The imports of a file, without what stands under `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text())
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return tuple(node for node in found if node not in typing_only)


def imports_of(path: Path, known: set[str], package: Path = PACKAGE) -> set[str]:
    """The files that a file imports at run time, at once or when a function is called; not for annotations alone."""
    found: set[str] = set()
    for node in run_time_imports(path):
        if isinstance(node, ast.Import):
            names = [alias.name.removeprefix(package.name + ".") for alias in node.names]
            found |= {name for name in names if name in known}
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package.name:
            base = node.module.removeprefix(package.name).removeprefix(".")
            for alias in node.names:
                inner_name = f"{base}.{alias.name}".removeprefix(".")
                found.add(inner_name if inner_name in known else base)
    return (found & known) - {module_of(path, package), ""}


def graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Who imports whom, by dotted names."""
    files = {module_of(path, package): path for path in sorted(package.rglob("*.py"))}
    known = set(files)
    return {name: imports_of(path, known, package) for name, path in files.items()}


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of files that import each other, around any number of corners (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in order:
            visit(name)
    return sorted(found)


def folders(package: Path = PACKAGE) -> dict[str, tuple[int, int]]:
    """Files and lines in each folder, those in folders of it left out."""
    counted: dict[str, tuple[int, int]] = {}
    for path in sorted(package.rglob("*.py")):
        folder = str(path.parent.relative_to(package))
        files, lines = counted.get(folder, (0, 0))
        counted[folder] = files + 1, lines + len(path.read_text().splitlines())
    return counted


def main() -> None:
    """Print folders, floors and cycles."""
    counted = folders()
    print(f"{'folder':<40}{'files':>6}{'lines':>8}")
    for folder, (files, lines) in counted.items():
        print(f"{folder:<40}{files:>6}{lines:>8}")
    print(f"{'all':<40}{sum(f for f, _ in counted.values()):>6}{sum(n for _, n in counted.values()):>8}")
    test = Path(__file__).with_name("test_architecture.py")
    floors = next(
        ast.literal_eval(node.value)
        for node in ast.parse(test.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS"
    )
    print("\nfloors, from the lowest:\n" + "\n".join(f"  {floor}" for floor in floors))
    found = cycles(graph())
    print(f"\ncycles between files: {len(found)}")
    for group in found:
        print("  " + ", ".join(group))


if __name__ == "__main__":
    main()
